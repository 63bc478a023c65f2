//! Programs that do not load the recorder, which `hatf` reports before they run, and musl programs, which load it.
#![expect(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::{compiled, compiled_from, hatf, source};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Records a program and returns the output of both, in order.
fn printed(program: &str, trace: &str, options: &str) -> String {
    let script = format!("exec \"$0\" record {options} -o \"$1\" -- \"$2\" close 2>&1");
    let mut shell = Command::new("/bin/sh");
    metatf_test::run(shell.args(["-c", &script, env!("CARGO_BIN_EXE_hatf"), trace, program])).text()
}

fn is_said_first(printed: &str, why: &str) {
    let lines: Vec<_> = printed.lines().collect();
    let said: Vec<_> = lines.iter().filter(|line| line.contains("does not load the recorder")).collect();
    assert_eq!(said.len(), 1, "{printed}");
    assert!(lines[0].contains("does not load the recorder") && lines[0].contains(why), "{printed}");
    assert!(!printed.contains("did not load"), "{printed}");
}

#[test]
fn a_static_program() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "hazards", &["-static"]) else { return };
    is_said_first(&printed(program.to_str().unwrap(), &folder.path("trace.mtf"), ""), "hazards is statically linked");
    is_said_first(&printed(program.to_str().unwrap(), &folder.path("trace.mtf"), "-q"), "hazards is statically linked");
    // The program is the interpreter of a script.
    let script = folder.join("script");
    std::fs::write(&script, format!("#!{} close\n", program.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    is_said_first(&printed(script.to_str().unwrap(), &folder.path("trace.mtf"), ""), "hazards is statically linked");
}

/// Programs built with a sanitizer are recorded, or `hatf` first says why not.
#[test]
fn programs_with_sanitizers() {
    let folder = Folder::new();
    let path = folder.path("trace.mtf");
    folder.write(
        "blocks.c",
        "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 50; i++) { void *volatile p = malloc(77); free(p); } return 7; }\n",
    );
    for (flags, expected) in [
        (&["-fsanitize=address"][..], None),
        (&["-fsanitize=leak"], None),
        (&["-fsanitize=undefined"], None),
        (&["-fsanitize=address", "-static-libasan"], Some("is statically linked with the AddressSanitizer allocator")),
        (&["-fsanitize=thread"], Some("is built with ThreadSanitizer, which cannot be recorded")),
    ] {
        let program = folder.path("blocks");
        let mut compiler = Command::new("gcc");
        compiler.current_dir(folder.join("")).args(flags).args(["blocks.c", "-o", "blocks"]);
        if !compiler.output().is_ok_and(|output| output.status.success()) {
            skip(&format!("there is no gcc that takes {flags:?}"));
            continue;
        }
        let run = hatf(["record", "--stacks", "-o", &path, "--", &program]);
        if flags == ["-fsanitize=thread"] {
            run.exits(125).says(expected.unwrap());
            continue;
        }
        // Without permission, LeakSanitizer cannot search for leaks and ends the program.
        assert!(matches!(run.status, 7 | 1 | 23), "{flags:?}: {}", run.err);
        if let Some(expected) = expected {
            assert!(run.err.lines().next().unwrap().contains(expected), "{}", run.err);
            continue;
        }
        let mut reader = TraceReader::open(Path::new(&path)).unwrap();
        let mut blocks = 0;
        while let Some(item) = reader.next().unwrap() {
            if let Item::Event(event) = item
                && let EventKind::Call(call) = event.kind
            {
                blocks += u32::from(call.size == 77);
            }
        }
        assert_eq!(blocks, 50, "{flags:?}: {}", run.err);
    }
}

#[test]
fn a_program_that_runs_as_another() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "hazards", &[]) else { return };
    let owned = std::os::unix::fs::chown(&program, Some(65534), Some(65534));
    if owned.is_err() {
        return skip("only the superuser can make a program that runs as another user");
    }
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(folder.join(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    is_said_first(&printed(program.to_str().unwrap(), &folder.path("trace.mtf"), ""), "hazards is set-user-ID");
}

/// Programs with a different C library from that of `hatf` are recorded.
#[test]
fn a_program_of_musl() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        return skip("there is no musl-gcc");
    }
    let folder = Folder::new();
    let out = folder.path("musl");
    let built = Command::new("musl-gcc").args(["-g", "-pthread", "-o", &out]).arg(source("musl")).status().unwrap();
    assert!(built.success());
    let Some(glibc) = compiled_from(&source("musl"), &folder, "glibc", &[]) else { return };
    let bare = Command::new(&out).output().unwrap();
    let (musl, glibc) = (recorded(&out, &folder, &bare), recorded(glibc.to_str().unwrap(), &folder, &bare));
    // The C libraries' own blocks differ, but their sizes are not counted.
    assert_eq!(musl, glibc);
}

/// Returns the number of recorded blocks with sizes that only the program uses, of unfreed ones, of ended threads and
/// of processes.
fn recorded(program: &str, folder: &Folder, bare: &std::process::Output) -> (usize, usize, usize, usize) {
    let trace = folder.path("trace.mtf");
    let run = hatf(["record", "-o", &trace, "--", program]).exits(7);
    assert_eq!(run.out, bare.stdout);
    assert!(run.err.contains(" 0 lost"), "{}", run.err);
    let processes = std::fs::read_dir(folder.path("trace.processes")).unwrap();
    let (mut all, mut live, mut ends, mut traces) = (0, std::collections::HashMap::new(), 0, 0);
    let others = processes.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "mtf");
    for path in others.chain([Path::new(&trace).to_owned()]) {
        traces += 1;
        let mut reader = TraceReader::open(&path).unwrap();
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            match event.kind {
                EventKind::Call(call) | EventKind::ReallocEnd(call) if call.address != 0 => {
                    live.remove(&(traces, call.old));
                    if call.size % 100_000 == 77 {
                        all += 1;
                        assert!(live.insert((traces, call.address), call.size).is_none());
                    }
                }
                EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                    live.remove(&(traces, address));
                }
                EventKind::ThreadEnd => ends += 1,
                _ => {}
            }
        }
    }
    (all, live.len(), ends, traces)
}
