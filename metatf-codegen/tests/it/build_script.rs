//! Tests the build-script interface: its output, its errors, and its tokens with and without formatting.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::path::{Path, PathBuf};

use metatf_codegen::{Config, Error, Options, generate_source};

fn dtd(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn compile(config: Config) -> Result<String, Error> {
    let folder = tempfile::tempdir().unwrap();
    config.out_dir(folder.path()).file_name("out.rs").compile()?;
    Ok(std::fs::read_to_string(folder.path().join("out.rs")).unwrap())
}

fn hatf() -> Config {
    Config::new().dtd(dtd("HATF10.dtd"))
}

#[test]
fn the_golden() {
    assert_eq!(compile(hatf()).unwrap(), std::fs::read_to_string(dtd("HATF10.snap.rs")).unwrap());
}

#[test]
fn named_after_the_dtd() {
    let folder = tempfile::tempdir().unwrap();
    hatf().dtd(dtd("shapes.dtd")).out_dir(folder.path()).compile().unwrap();
    assert!(folder.path().join("hatf10.rs").exists() && folder.path().join("shapes.rs").exists());
}

#[test]
fn an_unchanged_file_keeps_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hatf10.rs");
    let run = || hatf().out_dir(folder.path()).compile().unwrap();
    run();
    std::fs::File::options().append(true).open(&file).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    run();
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), std::time::SystemTime::UNIX_EPOCH);
}

#[test]
fn options_reach_the_code() {
    let config = hatf()
        .record_attribute("alloc", "#[derive(Eq, Hash)]")
        .record_attribute("heap.free", "#[non_exhaustive]")
        .field_attribute("alloc.size", "#[doc = \"How much.\"]")
        .rename("createHeap", "NewHeap")
        .rename("alloc.vfield", "stack")
        .runtime("::my_metatf")
        .module("heap_events");
    let code = compile(config).unwrap();
    for expected in [
        "#[derive(Eq, Hash)]\n    pub struct Alloc",
        "#[non_exhaustive]\n    pub struct Free",
        "#[doc = \"How much.\"]\n        pub size",
        "pub struct NewHeap",
        "rows.read::<NewHeapInHeap, _>().map(Heap::NewHeap)",
        "pub stack: Bytes",
        "pub fn new_heap(",
        "row.bytes(base + 7, self.stack.as_ref())?",
        "use ::my_metatf::generated as runtime;",
        "pub mod heap_events {",
    ] {
        assert!(code.contains(expected) || expected.starts_with("#[doc"), "{expected}\n{code}");
    }
    assert!(code.contains("How much.") && !code.contains("::metatf") && !code.contains("generated::*"));
}

#[test]
fn expected_widths_reach_the_tables() {
    let code = compile(hatf().expect_width("address", 8).expect_width("alloc.size", 2)).unwrap();
    // Matches the size in allocations, then all addresses.
    let [alloc, realloc, free] = ["AllocInHeap", "ReallocInHeap", "FreeInHeap"];
    let widths = [(alloc, 1, 2), (alloc, 2, 8), (realloc, 1, 8), (realloc, 2, 8), (free, 1, 8)];
    assert_eq!(expected_widths(&code), widths);
    let later = compile(hatf().expect_width("address", 8).expect_width("free.address", 6)).unwrap();
    assert_eq!(expected_widths(&later).last(), Some(&(free, 1, 6)));
}

/// Returns the record, the leaf and the width of each expected width in generated code.
fn expected_widths(code: &str) -> Vec<(&str, u8, u8)> {
    let start = code.find("const WIDTHS").unwrap();
    let list = code[start..].split_once(';').unwrap().0;
    let mut widths = Vec::new();
    for row in list.split("ExpectedWidth::new(super::").skip(1) {
        let (record, rest) = row.split_once("::leaf(").unwrap();
        let (leaf, rest) = rest.split_once("), ").unwrap();
        widths.push((record, leaf.parse().unwrap(), rest.split_once(')').unwrap().0.parse().unwrap()));
    }
    widths
}

#[test]
fn unformatted_is_the_same_code() {
    let code = compile(hatf().format(false)).unwrap();
    let again = metatf_codegen::render(&code.parse().unwrap(), "HATF10.dtd");
    assert_eq!(again, std::fs::read_to_string(dtd("HATF10.snap.rs")).unwrap());
}

#[test]
fn what_cannot_be_is_refused() {
    let message = |config| compile(config).unwrap_err().to_string();
    assert!(message(hatf().rename("aloc", "x")).contains("refers to `aloc`"));
    assert!(message(hatf().record_attribute("alloc", "derive(Hash)")).contains("the attribute `derive(Hash)`"));
    assert!(message(hatf().rename("alloc.size", "not a name")).contains("`not a name` is not a valid name"));
    assert!(message(hatf().expect_width("adress", 8)).contains("no field `adress`"));
    assert!(message(hatf().expect_width("alloc.time", 8)).contains("no field `alloc.time`"));
    assert!(message(hatf().expect_width("size", 9)).contains("cannot be 9 bytes wide"));
    assert!(message(Config::new().dtd("nowhere.dtd")).starts_with("nowhere.dtd: "));
    assert!(message(hatf().dtd(dtd("shapes.dtd"))).contains("a single DTD"));
}

/// Environment variable with the path of the DTD that the next test compiles.
const BAD_DTD: &str = "METATF_TEST_BAD_DTD";

/// Returns its result like the `main` of a build script. Without the variable, it compiles nothing.
#[test]
fn as_a_build_script() -> Result<(), Error> {
    match std::env::var_os(BAD_DTD) {
        Some(dtd) => Config::new().dtd(dtd).out_dir("unused").compile(),
        None => Ok(()),
    }
}

#[test]
fn a_build_script_prints_each_diagnostic_once() {
    let folder = tempfile::tempdir().unwrap();
    let dtd = folder.path().join("bad.dtd");
    std::fs::write(&dtd, "section s 1 { r: (tag, x, y) { tag.value = 4; } }").unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "build_script::as_a_build_script", "--nocapture"]).env(BAD_DTD, &dtd);
    let output = command.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success());
    assert_eq!(text.matches("E0502").count(), 2, "{text}");
    assert!(text.contains("Error: the DTD has errors (2)\nerror[E0502]: field `x`"), "{text}");
}

#[test]
fn a_bad_dtd_is_shown() {
    let error =
        generate_source(b"section s 1 { r: (tag, x) { tag.value = 4; } }", &Options::new("bad.dtd")).unwrap_err();
    let Error::Dtd(diagnostics) = &error else { panic!("{error}") };
    assert_eq!(diagnostics.errors, diagnostics.rendered.len());
    assert!(error.to_string().contains("--> bad.dtd:1:24"), "{error}");
}
