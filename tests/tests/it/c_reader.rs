//! The C reader of `examples/c-reader`, written from the text of the specification, passes the vectors of level
//! *plain*, reports the required level of the others, and survives damage.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use metatf_test::root;
use metatf_tests::conformance::{Vector, levels, vectors};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STRICT: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"];
const SANITIZED: &[&str] = &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];

/// Compiles the reader. Returns `None` and prints the reason if no suitable compiler is available.
fn compiled(folder: &Path, options: &[&str]) -> Option<PathBuf> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let program = folder.join("plain");
    let source = root().join("examples/c-reader/plain.c");
    let run = Command::new(&compiler).args(STRICT).args(options).arg("-o").arg(&program).arg(source).output();
    match run {
        Ok(run) if run.status.success() => Some(program),
        Ok(run) if options.is_empty() => panic!("{}", String::from_utf8_lossy(&run.stderr)),
        Ok(run) => {
            eprintln!("skipped: {compiler} has no sanitizers: {}", String::from_utf8_lossy(&run.stderr));
            None
        }
        Err(error) => {
            eprintln!("skipped: no C compiler {compiler}: {error}");
            None
        }
    }
}

/// Runs the reader. `bounded` limits its memory to the file, the meaning of a DTD (at most 256 MiB), a record, and
/// little more.
fn run(program: &Path, bounded: bool, all: bool, [trace, dtd]: [&Path; 2]) -> Output {
    let all = all.then_some("--all");
    let limit = if bounded { "ulimit -v 400000; " } else { "" };
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(program).args(all).args([trace, dtd]);
    command.env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap()
}

fn lines(run: &Output) -> Vec<String> {
    String::from_utf8(run.stdout.clone()).unwrap().lines().map(str::to_owned).collect()
}

fn of_vectors() -> Vec<Vector> {
    vectors().into_iter().filter(|vector| !vector.name.starts_with("models/")).collect()
}

#[test]
fn it_passes_the_vectors_of_its_level() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), &[]) else { return };
    let mut complaints = Vec::new();
    let mut passed = 0;
    for vector in of_vectors() {
        let [some, all] = [false, true].map(|all| run(&program, true, all, [&vector.trace_file(), &vector.dtd_file()]));
        let said = String::from_utf8_lossy(&some.stderr).into_owned();
        let levels = levels(&vector);
        if levels.is_empty() {
            let failed = some.status.code() != Some(0);
            complaints.extend(vector.complaints(&[(lines(&some), failed), (lines(&all), failed)]));
            passed += 1;
        } else {
            // It must be refused by the name of a required level, unless the reader finds another error first.
            let named = levels.iter().any(|level| said.contains(&format!("level {}", level.name())));
            if some.status.code() != Some(1)
                || !named && vector.name.contains("/good/") && vector.is_trace() && !vector.name.contains("/salvage-")
            {
                complaints.push(format!("{}: {said}", vector.name));
            }
        }
        assert!(matches!(some.status.code(), Some(0 | 1)), "{}: {said}", vector.name);
        assert!(some.status.success() || said.contains("offset ") || said.contains("format.dtd:"), "{said}");
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(passed > 100, "{passed}");
}

/// Changes bytes of traces and DTDs, and truncates files.
#[test]
fn it_stands_damage() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), SANITIZED) else { return };
    let (damaged, dtd) = (folder.path().join("damaged"), folder.path().join("format.dtd"));
    let mut state = 1_u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % n.max(1)
    };
    for vector in of_vectors().iter().filter(|vector| levels(vector).is_empty()) {
        let (trace, text) = (std::fs::read(vector.trace_file()).unwrap(), std::fs::read(vector.dtd_file()).unwrap());
        for of_text in [false, false, true] {
            let (mut trace, mut text) = (trace.clone(), text.clone());
            let bytes = if of_text { &mut text } else { &mut trace };
            for _ in 0..=below(3) {
                let at = below(bytes.len());
                match below(4) {
                    0 => bytes.truncate(at),
                    1 if of_text => bytes.insert(at, b"(){};*.=,0\"-'<"[below(14)]),
                    _ if bytes.is_empty() => {}
                    _ => bytes[at] = [0, 255, 1, 128, 32 | bytes[at] ^ 5][below(5)],
                }
            }
            std::fs::write(&damaged, &trace).unwrap();
            std::fs::write(&dtd, &text).unwrap();
            let run = run(&program, false, of_text, [&damaged, &dtd]);
            let said = String::from_utf8_lossy(&run.stderr);
            let whole = matches!(run.status.code(), Some(0 | 1))
                && !said.contains("Sanitizer")
                && !said.contains("runtime error");
            assert!(whole, "{}: {:?}\n{said}\n{}", vector.name, run.status, String::from_utf8_lossy(&text));
        }
    }
}
