//! `hatf convert --to memprof-yaml`: LLVM reads the file and marks the allocations in it.
#![expect(clippy::unwrap_used)]
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::hatf;
use metatf_test::{Folder, run, skip};

/// Compiler flags that keep tail calls in the stack.
const FLAGS: [&str; 3] = ["-O1", "-g", "-fno-optimize-sibling-calls"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Builds `hot_cold.cpp` with counted accesses, records it and makes a profile. Returns `None` if the compiler is
/// missing.
fn profiled(folder: &Folder, compiler: &str) -> Option<String> {
    profiled_with(folder, compiler, &FLAGS)
}

fn profiled_with(folder: &Folder, compiler: &str, flags: &[&str]) -> Option<String> {
    Command::new(compiler).arg("--version").output().ok().filter(|output| output.status.success())?;
    let (program, trace, profile) = (folder.path("hot_cold"), folder.path("t.mtf"), folder.path("p.mtf"));
    let source = source("hot_cold.cpp").display().to_string();
    let command = ["cc", compiler, &source, "-o", &program, "-Wl,--build-id"];
    hatf(command.into_iter().chain(flags.iter().copied())).exits(0);
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(0);
    hatf(["profile", &trace, "-o", &profile]).exits(0);
    Some(profile)
}

#[test]
fn frames_are_as_a_compiler_has_them() {
    let folder = Folder::new();
    let Some(profile) = profiled(&folder, "clang++") else { return skip("there is no clang++") };
    let yaml = hatf(["convert", "--to", "memprof-yaml", &profile]).exits(0).text();
    let hot = "\
      - Callstack:
          - { Function: _Z4makem, LineOffset: 1, Column: 12, IsInlineFrame: false }
          - { Function: _ZL3hotv, LineOffset: 1, Column: 12, IsInlineFrame: false }
          - { Function: main, LineOffset: 5, Column: 22, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 100
          TotalAccessCount: 6406400
";
    assert!(yaml.contains(hot), "{yaml}");
    let inlined = "\
          - { Function: _ZL10in_betweenv, LineOffset: 1, Column: 19, IsInlineFrame: true }
          - { Function: main, LineOffset: 2, Column: 18, IsInlineFrame: false }
";
    // One allocation in each function, and one call in the outer function.
    assert_eq!(yaml.matches(inlined).count(), 3, "{yaml}");
    // `main` calls a C library function, whose accesses to its block are unknown.
    let unknown = yaml.split("Function: main, LineOffset: 12,").nth(1).unwrap();
    let block = unknown.split("  - ").next().unwrap();
    assert!(block.contains("AllocCount: 1\n") && !block.contains("Lifetime:"), "{block}");
    let all = hatf(["convert", "--to", "memprof-yaml", &profile, "--unknown-is-unused"]).exits(0).text();
    assert_eq!(all.matches("TotalLifetime:").count(), yaml.matches("TotalLifetime:").count() + 1);
    // A context of the C++ library has no debug information and is omitted.
    hatf(["convert", "--to", "memprof-yaml", "--strict", &profile]).exits(1).says(" of ");

    // The debug information is in a separate file.
    let (program, debug) = (folder.path("hot_cold"), folder.join("debug"));
    let modules = hatf(["profile", "show", &profile, "--format", "json"]).exits(0).text();
    let modules: serde_json::Value = serde_json::from_str(&modules).unwrap();
    let module = modules["modules"].as_array().unwrap().iter().find(|module| module["path"] == program).unwrap();
    let (first, rest) = module["build_id"].as_str().unwrap().split_at(2);
    std::fs::create_dir_all(debug.join(".build-id").join(first)).unwrap();
    let separate = debug.join(".build-id").join(first).join(format!("{rest}.debug"));
    let objcopy = |options: &[&str]| assert!(Command::new("objcopy").args(options).status().unwrap().success());
    objcopy(&["--only-keep-debug", "--compress-debug-sections", &program, separate.to_str().unwrap()]);
    objcopy(&["--strip-debug", &program]);
    let folders = ["--symbols", debug.to_str().unwrap()];
    let separate = hatf([&["convert", "--to", "memprof-yaml", &profile][..], &folders].concat()).exits(0).text();
    assert!(separate == yaml);
    hatf(["convert", &profile, &folder.path("p.memprof.yaml")]).exits(1).says("compile the program with -g");
    assert!(!folder.join("p.memprof.yaml").exists());
    std::fs::remove_file(&program).unwrap();
    hatf(["convert", "--to", "memprof-yaml", &profile]).exits(1).says("hot_cold does not exist");
    // For a trace, the profile is made with the default settings of `hatf profile`.
    let trace = folder.path("t.mtf");
    hatf(["convert", "--to", "memprof-yaml", &trace]).exits(1).says("hot_cold does not exist");
}

/// With line tables only, as in LLVM's documentation, functions come from the symbol table and begin on the line of
/// their first instruction.
#[test]
fn frames_of_line_tables() {
    let exported = |flags: &[&str]| {
        let folder = Folder::new();
        let profile = profiled_with(&folder, "clang++", &[&FLAGS[..1], &FLAGS[2..], flags].concat())?;
        Some(hatf(["convert", "--to", "memprof-yaml", &profile]).exits(0).says("4 of 5 contexts").text())
    };
    let (Some(whole), Some(lines)) = (exported(&["-g"]), exported(&["-gmlt"])) else {
        return skip("there is no clang++");
    };
    let stacks = |yaml: &str| -> Vec<String> {
        let frames = yaml.lines().filter(|line| line.contains("- { Function:"));
        let mut frames: Vec<String> = frames.map(|line| line.trim().to_owned()).collect();
        frames.sort();
        frames.dedup();
        frames
    };
    // For inlined functions, neither the linker name nor the first line is known.
    let inlined = |frame: &String| frame.replace("_ZL10in_betweenv, LineOffset: 1,", "in_between, LineOffset: 19,");
    let mut wanted: Vec<String> = stacks(&whole).iter().map(inlined).collect();
    wanted.sort();
    assert!(wanted.len() > 5 && whole != lines);
    assert_eq!(stacks(&lines), wanted);
    let with_names = exported(&["-gmlt", "-fdebug-info-for-profiling"]).unwrap();
    assert_eq!(stacks(&with_names), stacks(&whole));
}

/// Returns the suffix of LLVM's programs, such as `-22`. The YAML format requires LLVM 21.
fn llvm() -> Option<&'static str> {
    let found = ["", "-21", "-22", "-23", "-24"].into_iter().find(|suffix| {
        let version = Command::new(format!("llvm-profdata{suffix}")).arg("merge").arg("--version").output();
        let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let version = text.split("LLVM version ").nth(1).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        version.is_some_and(|version| version >= 21)
    });
    if found.is_none() {
        // This is not a failure even if all tools are required: Debian's package is in a repository that not every
        // machine uses.
        eprintln!("SKIPPED: there is no llvm-profdata of LLVM 21 or later");
    }
    found
}

/// Clang distinguishes the two contexts of one `new`.
#[test]
fn clang_marks_allocations() {
    let folder = Folder::new();
    let Some(suffix) = llvm() else { return };
    let compiler = format!("clang++{suffix}");
    let Some(profile) = profiled(&folder, &compiler) else { return eprintln!("SKIPPED: there is no {compiler}") };
    let (yaml, indexed) = (folder.path("p.memprof.yaml"), folder.path("p.memprofdata"));
    hatf(["convert", &profile, &yaml]).exits(0).says("4 of 5 contexts");
    run(Command::new(format!("llvm-profdata{suffix}")).args(["merge", &yaml, "-o", &indexed])).exits(0);
    let mut clang = Command::new(compiler);
    clang.args(["-O2", "-g", "-S", "-emit-llvm", "-o", "-", "-mllvm", "-memprof-ave-lifetime-cold-threshold=0"]);
    let code = run(clang.arg(format!("-fmemory-profile-use={indexed}")).arg(source("hot_cold.cpp"))).exits(0).text();
    let of_make: Vec<&str> =
        code.lines().filter(|line| line.contains("@_Znam(") && line.contains("!memprof")).collect();
    assert_eq!(of_make.len(), 1, "{code}");
    let number = of_make[0].split("!memprof !").nth(1).unwrap().split(',').next().unwrap();
    // The list of contexts, each context, and its kind.
    let node = |number: &str| code.lines().find_map(|line| line.strip_prefix(&format!("!{number} = "))).unwrap();
    let parts = |node: &str| -> Vec<String> {
        let inner = node.trim_start_matches("!{").trim_end_matches('}');
        inner.split(", ").map(|part| part.trim_start_matches('!').to_owned()).collect()
    };
    let mut kinds: Vec<String> = parts(node(number)).iter().map(|context| parts(node(context))[1].clone()).collect();
    kinds.sort();
    assert_eq!(kinds, ["\"cold\"", "\"notcold\""]);
    assert!(code.contains("!callsite"));
}

/// Returns the records of a profile, independent of their order.
fn records(suffix: &str, indexed: &str) -> BTreeMap<String, [Vec<String>; 2]> {
    let shown = run(Command::new(format!("llvm-profdata{suffix}")).args(["show", "--memory", indexed])).exits(0).text();
    let shown = shown.replace("\n...", "");
    let record = |text: &str| {
        let (function, rest) = text.split_once('\n').unwrap();
        let (allocations, calls) = rest.split_once("CallSites:").unwrap_or((rest, ""));
        let parts = |text: &str, at: &str| {
            let mut parts: Vec<String> = text.split(at).skip(1).map(|part| part.trim().to_owned()).collect();
            parts.sort();
            parts
        };
        (function.trim().to_owned(), [parts(allocations, "- Callstack:"), parts(calls, "- Frames:")])
    };
    shown.split("  - GUID:").skip(1).map(record).collect()
}

/// LLVM itself makes the same records from a raw profile.
#[test]
fn the_same_as_of_llvm() {
    let folder = Folder::new();
    let Some(suffix) = llvm() else { return };
    let (program, at) = (folder.path("inlined"), |name: &str| folder.path(name));
    let mut clang = Command::new(format!("clang++{suffix}"));
    clang.args(["-O2", "-g", "-fmemory-profile", "-Wl,--build-id", "-o", &program]).arg(source("inlined.cpp"));
    if !clang.output().is_ok_and(|output| output.status.success()) {
        return eprintln!("SKIPPED: clang++{suffix} has no library of its memory profiler");
    }
    let options = format!("log_path={}", at("raw"));
    assert!(Command::new(&program).env("MEMPROF_OPTIONS", options).output().unwrap().status.success());
    let files = std::fs::read_dir(folder.join("")).unwrap().map(|file| file.unwrap().path().display().to_string());
    let raw = files.into_iter().find(|path| path.contains("/raw.")).unwrap();
    hatf(["convert", &raw, "--binary", &program, &at("p.prof.mtf")]).exits(0);
    hatf(["convert", &at("p.prof.mtf"), &at("p.memprof.yaml")]).exits(0);
    let merge = |from: &[&str], to: &str| {
        let options = ["merge", "--memprof-full-schema", "-o", to];
        run(Command::new(format!("llvm-profdata{suffix}")).args(options).args(from)).exits(0);
    };
    merge(&[&at("p.memprof.yaml")], &at("ours"));
    merge(&[&raw, "--profiled-binary", &program], &at("theirs"));
    let (ours, theirs) = (records(suffix, &at("ours")), records(suffix, &at("theirs")));
    assert!(theirs.len() > 10, "{theirs:?}");
    assert_eq!(ours, theirs);
}
