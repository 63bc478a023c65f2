//! Statically linked allocators: either each call of the program is recorded, or the user is told that calls are not
//! recorded. Every program ends as it does by itself.
#![expect(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{hatf, invariants, source};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Sizes that only the programs request.
const SIZES: std::ops::Range<u64> = 7000..8000;

/// Compiles files from `tests/programs`. Returns `None` if there is no such compiler.
fn built(folder: &Folder, compiler: &str, flags: &[&str], files: &[&str]) -> Option<PathBuf> {
    let out = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(["-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-pthread", "-o"]).arg(&out).args(flags);
    let Ok(output) = command.args(files.iter().map(|file| source("linked").with_file_name(file))).output() else {
        skip(&format!("there is no {compiler}"));
        return None;
    };
    assert!(output.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(out)
}

const LINKED: [&str; 2] = ["linked.c", "linked_allocator.c"];

/// Returns the numbers of blocks of these sizes that began and ended in a trace, and the number of their stacks with
/// one frame.
fn blocks(trace: &Path) -> (u64, u64, u64) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut live, mut pending) = (HashMap::new(), HashMap::new());
    let (mut begun, mut ended, mut single) = (0, 0, 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let (begins, ends) = match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => (Some(call), call.old),
            EventKind::Free { address } => (None, address),
            EventKind::ReallocBegin { old } => {
                pending.insert(event.thread, old);
                (None, old)
            }
            _ => continue,
        };
        ended += u64::from(live.remove(&ends).is_some());
        if let Some(call) = begins.filter(|call| call.address != 0 && SIZES.contains(&call.size)) {
            begun += 1;
            single += u64::from(event.stack.len() == 1);
            assert!(live.insert(call.address, call.size).is_none(), "{call:?} is live");
        }
    }
    (begun, ended, single)
}

/// Parses the counts that a program prints.
fn counts(line: &str) -> (u64, u64) {
    let (begun, ended) = line.split_once(' ').unwrap();
    (begun.parse().unwrap(), ended.parse().unwrap())
}

/// Records a program and its forked child, and checks that each has as many blocks as it reports.
fn is_recorded(folder: &Folder, program: &Path, options: &[&str], what: &str) {
    let trace = folder.join("trace.mtf");
    let arguments = ["record", "-o", trace.to_str().unwrap()].into_iter().chain(options.iter().copied());
    let run = hatf(arguments.chain(["--", program.to_str().unwrap()])).exits(7);
    assert!(run.err.contains(" 0 lost") && !run.err.contains("linked allocator"), "{what}: {}", run.err);
    let said: Vec<_> = run.text().lines().map(counts).collect();
    let mut traces = vec![trace.clone()];
    if let Ok(others) = std::fs::read_dir(folder.join("trace.processes")) {
        traces.extend(others.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "mtf"));
    }
    assert_eq!(said.len(), traces.len(), "{what}");
    for (trace, said) in traces.iter().zip(said) {
        let (begun, ended, single) = blocks(trace);
        assert_eq!((begun, ended), said, "{what}: {}", trace.display());
        assert!(!options.contains(&"--stacks") || single == 0, "{what}: {single} stacks have one frame");
        assert_eq!(invariants::broken(trace), Vec::<String>::new(), "{what}");
    }
    std::fs::remove_dir_all(folder.join("trace.processes")).ok();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn each_call_is_recorded() {
    let folder = Folder::new();
    for (compiler, optimised) in [("gcc", &["-O0", "-O1", "-O2", "-O3", "-Os"][..]), ("clang", &["-O0", "-O2", "-Os"])]
    {
        for optimised in optimised {
            for names in [&["-DPREFIX=_rjem_", "-DJEMALLOC"][..], &["-DPREFIX=mi_", "-DMIMALLOC"], &[]] {
                let flags: Vec<_> = names.iter().copied().chain([*optimised]).collect();
                let Some(program) = built(&folder, compiler, &flags, &LINKED) else { continue };
                is_recorded(&folder, &program, &[], &format!("{compiler} {flags:?}"));
            }
        }
    }
}

/// Linkers omit uncalled functions, as of mimalloc in Rust. Even `malloc` may be missing.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_part_of_an_allocator() {
    let folder = Folder::new();
    folder.write(
        "part.c",
        r#"#include <stdio.h>
        static char pool[1 << 20], *next = pool;
        __attribute__((noinline)) void *mi_malloc_aligned(unsigned long size, unsigned long align)
        {
            next += (align - (unsigned long)next % align) % align + size;
            return next - size;
        }
        __attribute__((noinline)) void mi_free(void *block) { __asm__ volatile("" : : "r"(block), "r"(next)); }
        int main(void)
        {
            for (int i = 0; i < 100; i++)
                mi_free(mi_malloc_aligned(7000 + i, 64));
            puts("100 100");
            return 7;
        }"#,
    );
    let file = folder.path("part.c");
    let Some(program) = built(&folder, "gcc", &["-O2"], &[&file]) else { return };
    is_recorded(&folder, &program, &["--stacks"], "a part");
    // The trace identifies the allocator, and the allocator is the baseline for comparisons.
    let trace = folder.path("part.mtf");
    hatf(["record", "--quiet", "-o", &trace, "--", &program.display().to_string()]).exits(7);
    let whatif = hatf(["whatif", &trace, "--format", "json"]).exits(0).text();
    let whatif: serde_json::Value = serde_json::from_str(&whatif).unwrap();
    assert_eq!(whatif["now"]["allocator"], "mimalloc", "{}", whatif["now"]);
    assert_eq!(whatif["now"]["known_by"]["linked_in"], "mi_malloc_aligned", "{}", whatif["now"]);
}

/// Recording works in programs at fixed addresses, with and without marks for indirect branches, and with sections far
/// apart, even with stacks.
#[test]
#[cfg(target_arch = "x86_64")]
fn however_it_is_linked() {
    let folder = Folder::new();
    for flags in [
        &["-no-pie"][..],
        &["-fcf-protection=full"],
        &["-fcf-protection=none", "-fno-stack-protector"],
        &["-Wl,-z,max-page-size=0x200000"],
        &["-ffunction-sections", "-Wl,-z,noseparate-code"],
        &["-static-libgcc", "-rdynamic"],
    ] {
        let all: Vec<_> = ["-O2"].iter().chain(flags).copied().collect();
        let Some(program) = built(&folder, "gcc", &all, &LINKED) else { return };
        is_recorded(&folder, &program, &["--stacks"], &format!("{flags:?}"));
    }
}

/// Recording preserves each register that the allocator's function preserves, and exceptions pass through it.
#[test]
#[cfg(target_arch = "x86_64")]
fn registers_and_exceptions() {
    let folder = Folder::new();
    if let Some(program) = built(&folder, "gcc", &["-O1", "-DSTATE"], &["linked_enemies.c"]) {
        for options in [&[][..], &["--preset", "debug"]] {
            is_recorded(&folder, &program, options, "registers");
        }
    }
    let operators = ["linked_operators.cpp", "linked_allocator.c"];
    if let Some(program) = built(&folder, "g++", &["-O1", "-fpermissive", "-w"], &operators) {
        is_recorded(&folder, &program, &["--stacks"], "operators");
    }
}

/// Functions whose first instructions cannot be moved stay unchanged, and `hatf` says so before the program runs.
#[test]
fn what_is_refused_is_said() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    for (flags, why) in [
        ("-DLOOPS", "tc_malloc contains a branch to its second instruction"),
        ("-DCALLS", "tc_malloc begins with an instruction that cannot be moved"),
        ("-DSHORT", "tc_malloc overlaps another function"),
        ("-DJUMPED", "tc_malloc contains a branch to its second instruction"),
    ] {
        let Some(program) = built(&folder, "gcc", &["-O1", flags], &["linked_enemies.c"]) else { return };
        let run = hatf(["record", "-o", &trace, "--", program.to_str().unwrap()]).exits(7);
        let first = run.err.lines().next().unwrap();
        assert!(
            first.contains("has a statically linked allocator (tc_malloc), whose calls are not recorded"),
            "{}",
            run.err
        );
        assert!(cfg!(not(target_arch = "x86_64")) || first.contains(why), "{}", run.err);
        assert_eq!(run.err.matches("linked allocator").count(), 1, "{}", run.err);
        assert_eq!(blocks(Path::new(&trace)).0, 0);
    }
}

/// Without symbols, an allocator is identified by its messages.
#[test]
fn a_stripped_program() {
    let folder = Folder::new();
    let (trace, file) = (folder.path("trace.mtf"), folder.path("stripped.c"));
    folder.write(
        "stripped.c",
        "const char *volatile text = \"<jemalloc>: Out of memory\"; int main(void) { return text ? 7 : 1; }",
    );
    for (flags, is_said) in [(&["-s"][..], true), (&[], false)] {
        let Some(program) = built(&folder, "gcc", flags, &[&file]) else { return };
        let run = hatf(["record", "-o", &trace, "--", program.to_str().unwrap()]).exits(7);
        assert_eq!(run.err.contains("not recorded: its symbols are stripped"), is_said, "{}", run.err);
    }
}

/// Returns the traces of all processes of the recording in `trace.mtf`.
fn traces(folder: &Folder) -> Vec<PathBuf> {
    let others = std::fs::read_dir(folder.join("trace.processes")).into_iter().flatten();
    let others = others.map(|entry| entry.unwrap().path());
    let others = others.filter(|path| path.extension().is_some_and(|extension| extension == "mtf"));
    others.chain([folder.join("trace.mtf")]).collect()
}

/// Calls are recorded in each process, however it was started. Programs started at the same time share a plan.
#[test]
#[cfg(target_arch = "x86_64")]
fn each_process_is_recorded() {
    let folder = Folder::new();
    folder.write(
        "start.c",
        r#"#include <spawn.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        int main(int count, char **arguments)
        {
            int status;
            pid_t child;
            if (!strcmp(arguments[1], "spawn"))
                posix_spawn(&child, arguments[2], NULL, NULL, arguments + 2, environ);
            else if ((child = !strcmp(arguments[1], "vfork") ? vfork() : fork()) == 0) {
                execv(arguments[2], arguments + 2);
                _exit(99);
            }
            return count == 3 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
        }"#,
    );
    let Some(program) = built(&folder, "gcc", &["-O2", "-DPREFIX=_rjem_", "-DJEMALLOC"], &LINKED) else { return };
    let (first, program) = (folder.join("first"), program.to_str().unwrap().to_owned());
    std::fs::copy(&program, &first).unwrap();
    let Some(start) = built(&folder, "gcc", &[], &[&folder.path("start.c")]) else { return };
    // The compiler has replaced the program.
    std::fs::rename(&start, folder.join("start")).unwrap();
    std::fs::rename(&first, &program).unwrap();
    let start = folder.path("start");
    let trace = folder.path("trace.mtf");
    for (command, processes) in [
        (&["sh", "-c", "\"$0\"; exit 7", &program][..], 2),
        (&["sh", "-c", "exec \"$0\"", &program], 2),
        (&["env", "A=B", &program], 2),
        (&["sh", "-c", "\"$0\" & \"$0\" & \"$0\" & wait; sh -c \"$0; exit 7\"", &program], 8),
        (&[&start, "fork", &program], 2),
        (&[&start, "vfork", &program], 2),
        (&[&start, "spawn", &program], 2),
        (&[&program], 2),
    ] {
        // The other options matter neither for how a process starts nor for the plan.
        let options = [&[][..], &["--stacks"], &["--keep", "600s"]];
        for options in &options[..if processes == 8 { 3 } else { 1 }] {
            let what = format!("{command:?} {options:?}");
            let run = hatf([&["record", "-o", &trace], *options, &["--"], command].concat()).exits(7);
            assert!(!run.err.contains("linked allocator") && !run.err.contains("ld.so"), "{what}: {}", run.err);
            let mut said: Vec<_> = run.text().lines().map(counts).collect();
            let found = traces(&folder).into_iter().map(|trace| (blocks(&trace), trace)).collect::<Vec<_>>();
            let recorded = found.iter().filter(|((begun, ..), _)| *begun > 0);
            let mut held: Vec<_> = recorded.map(|((begun, ended, _), _)| (*begun, *ended)).collect();
            said.sort_unstable();
            held.sort_unstable();
            assert_eq!((held.len(), held), (processes, said), "{what}");
            for ((begun, ..), trace) in found {
                assert_eq!(invariants::broken(&trace), Vec::<String>::new(), "{what}");
                let trace = trace.to_str().unwrap();
                let report = hatf(["report", trace]).exits(0).text();
                assert!(!report.contains("are missing, because"), "{what}: {report}");
                let whatif = hatf(["whatif", trace, "--format", "json"]).exits(0).text();
                let whatif: serde_json::Value = serde_json::from_str(&whatif).unwrap();
                let is_named = whatif["now"]["known_by"]["linked_in"] == "_rjem_malloc";
                assert_eq!(is_named, begun > 0, "{what}: {}", whatif["now"]);
            }
            std::fs::remove_dir_all(folder.join("trace.processes")).ok();
        }
    }
}

/// A starting program waits only briefly for a plan from a killed or stopped `hatf`, and runs as it does by itself.
#[test]
#[cfg(target_arch = "x86_64")]
fn nobody_writes_a_plan() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "gcc", &["-O2", "-DPREFIX=_rjem_"], &LINKED) else { return };
    let other = folder.join("other");
    std::fs::copy(&program, &other).unwrap();
    for (signal, longest) in [(libc::SIGKILL, 5), (libc::SIGSTOP, 20)] {
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"))
            .args(["record", "--patience", "100ms", "--spool", &folder.path(""), "-o", &folder.path("trace.mtf")])
            .args(["--", "sh", "-c"])
            .arg("echo ready; read go; \"$0\"; \"$1\"; \"$0\"; echo over; read go; exit 7")
            .args([&program, &other])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(hatf.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "ready");
        let mut input = hatf.stdin.take().unwrap();
        let send = |signal| {
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(hatf.id().try_into().unwrap(), signal) };
        };
        // Otherwise, nothing in the spool shows yet that `hatf` was killed.
        std::thread::sleep(Duration::from_millis(500));
        send(signal);
        let begun = Instant::now();
        input.write_all(b"go\n").unwrap();
        let said: Vec<_> = lines.by_ref().take_while(|line| line != "over").map(|line| counts(&line)).collect();
        assert_eq!(said.len(), 6, "{said:?}");
        assert!(said.iter().all(|(begun, ended)| *ended > 1000 && begun > ended), "{said:?}");
        assert!(begun.elapsed() < Duration::from_secs(longest), "{:?}", begun.elapsed());
        send(libc::SIGCONT);
        input.write_all(b"go\n").unwrap();
        let ended = hatf.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert!(!err.contains("ld.so"), "{err}");
        let said = "program has a statically linked allocator (_rjem_malloc), whose calls are not recorded";
        assert_eq!(err.contains(said), signal == libc::SIGSTOP, "{err}");
    }
}

/// The functions stay unchanged with `--no-linked-in`, in all processes.
#[test]
fn what_is_not_recorded_is_said() {
    let folder = Folder::new();
    let (path, trace) = (folder.path("trace.mtf"), folder.join("trace.mtf"));
    let Some(program) = built(&folder, "gcc", &["-O1", "-DPREFIX=_rjem_"], &LINKED) else { return };
    let program = program.to_str().unwrap();
    let said = "has a statically linked allocator (_rjem_malloc), whose calls are not recorded";
    let run = hatf(["record", "--no-linked-in", "-o", &path, "--", program]).exits(7).says(said);
    assert!(run.err.contains("because of --no-linked-in"), "{}", run.err);
    assert_eq!(blocks(&trace).0, 0);
    let report = hatf(["report", &path]).exits(0).text();
    assert!(report.contains("are missing, because it has a statically linked allocator (_rjem_malloc)"), "{report}");
    assert!(!report.contains("Everything was freed"), "{report}");
    let twice = format!("{program}; {program}; exit 7");
    let run = hatf(["record", "--no-linked-in", "-o", &path, "--", "sh", "-c", &twice]).exits(7).says(said);
    assert!(run.err.contains("because of --no-linked-in; 4 processes executed the program\n"), "{}", run.err);
    assert_eq!(run.err.matches("linked allocator").count(), 1, "{}", run.err);
}

/// In programs that other programs start, too, functions that cannot be patched stay unchanged, and `hatf` says so.
#[test]
fn what_is_refused_in_a_child_is_said() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let Some(program) = built(&folder, "gcc", &["-O1", "-DLOOPS"], &["linked_enemies.c"]) else { return };
    let run = hatf(["record", "-o", &trace, "--", "sh", "-c", "\"$0\"; exit 7", program.to_str().unwrap()]).exits(7);
    let said =
        "has a statically linked allocator (tc_malloc), whose calls are not recorded: tc_malloc contains a branch";
    assert!(cfg!(not(target_arch = "x86_64")) || run.err.contains(said), "{}", run.err);
    assert_eq!(run.err.matches("linked allocator").count(), 1, "{}", run.err);
}

/// `hatf` reports processes that execute a program without loading the recorder.
#[test]
fn programs_without_the_recorder() {
    let folder = Folder::new();
    let path = folder.path("trace.mtf");
    let Some(program) = built(&folder, "gcc", &["-O1", "-static", "-DPREFIX=_rjem_"], &LINKED) else { return };
    let program = program.to_str().unwrap();
    let said = "1 process executed a program that did not load the recorder";
    for command in [&["sh", "-c", "exec \"$0\"", program][..], &["env", "-i", program]] {
        hatf(["record", "-o", &path, "--"].iter().chain(command)).exits(7).says(said);
    }
    // An `exec` that fails, and one that keeps the recorder.
    for command in [
        &["sh", "-c", "exec /nowhere; exit 7"][..],
        &["env", "sh", "-c", "exit 7"],
        &["env", "-i", "sh", "-c", "exit 7"],
    ] {
        let run = hatf(["record", "-o", &path, "--"].iter().chain(command));
        assert!(!run.err.contains("did not load the recorder"), "{}", run.err);
    }
}

/// The report names the program that replaced a recorded one, with its memory.
#[test]
fn unrecorded_programs_are_named() {
    let folder = Folder::new();
    let path = folder.path("trace.mtf");
    folder.write(
        "large.c",
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(void) { memset(malloc(30 << 20), 1, 30 << 20); usleep(300000); return 0; }",
    );
    let Some(program) = built(&folder, "gcc", &["-static"], &[&folder.path("large.c")]) else { return };
    let program = program.to_str().unwrap();
    let run = hatf(["record", "-q", "-o", &path, "--", "sh", "-c", "\"$0\"; true", program]).exits(0);
    let said = format!("{program} was not recorded, because it is statically linked; at most 3");
    assert!(run.err.contains(&said) && run.err.contains(" MiB of its memory were resident"), "{}", run.err);
    let run = hatf(["record", "-q", "-o", &path, "--", "sh", "-c", "x=$(echo 1); exec \"$0\"", program]).exits(0);
    assert!(run.err.contains(&said) && !run.err.contains("Possible reasons"), "{}", run.err);
    let report = hatf(["report", &path]).exits(0).text();
    let name = program.rsplit('/').next().unwrap();
    let said =
        format!("The process then executed {name}, which was not recorded because it is statically linked; at most 3");
    assert!(report.contains(&said) && report.contains(" MiB of its memory were resident."), "{report}");
    assert!(report.contains(&format!("were live when the process executed {name}")), "{report}");
    assert!(!report.contains("never freed;"), "{report}");
}
