//! `docs/versions.md` has the numbers of the code, and the specification has a rule for each error of the runtime.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf_test::root;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The value of a constant.
fn constant(path: &str, name: &str) -> String {
    let text = text(path);
    let found = text.split_once(&format!("const {name}: ")).and_then(|(_, rest)| rest.split_once(" = "));
    let (value, _) = found.and_then(|(_, rest)| rest.split_once(';')).unwrap_or_else(|| panic!("{path}: no {name}"));
    value.to_owned()
}

#[test]
fn the_page_of_versions_has_the_numbers_of_the_code() {
    let page = text("docs/versions.md");
    let numbers = [
        ("[revision of a model](#models)", "metatf-parser/src/schema/mod.rs", "MODEL_REVISION"),
        ("[heap traces](#heap-traces)", "hatf-trace/src/heap/mod.rs", "VERSION"),
        ("[generated code](#programs-of-one-version)", "metatf/src/private/mod.rs", "CODEGEN_VERSION"),
        ("spool of a recording", "hatf-record/src/layout.rs", "VERSION"),
        ("buffers of telemetry", "metatf-telemetry/src/layout.rs", "VERSION"),
        ("[reports as JSON](#reports)", "metatf-cli/src/streams.rs", "JSON_VERSION"),
        ("model of allocation", "hatf-lab/src/model/file.rs", "VERSION"),
    ];
    for (name, path, constant_name) in numbers {
        let row = format!("| {name} | {} |", constant(path, constant_name));
        assert!(page.contains(&row), "docs/versions.md has no row {row:?}, the number of {path}");
    }
}

#[test]
fn each_error_of_the_runtime_has_its_rule() {
    let code = text("metatf-container/src/error.rs");
    let (_, rest) = code.split_once("pub enum ErrorKind {").unwrap();
    let (variants, _) = rest.split_once("\n}").unwrap();
    // Names of variants are indented once; fields twice, documentation begins with `/`.
    let name = |line: &str| {
        let name = line.strip_prefix("    ")?.split(['(', ',', ' ']).next()?;
        name.starts_with(char::is_uppercase).then(|| name.to_owned())
    };
    let variants: Vec<String> = variants.lines().filter_map(name).collect();
    let page = text("docs/specification.md");
    let (_, rest) = page.split_once("### 7.1").unwrap();
    let (table, _) = rest.split_once("### 7.2").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut rows: Vec<&str> = rows.map(|(name, _)| name).collect();
    rows.sort_unstable();
    let mut sorted = variants.clone();
    sorted.sort();
    assert!(variants.len() > 20, "{variants:?}");
    assert_eq!(rows, sorted, "errors of section 7.1, and those of the runtime");
}
