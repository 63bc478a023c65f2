//! Programs that may break a recorder inside them end as they do without it, and are recorded to the end.
#![expect(clippy::unwrap_used)]

use crate::common;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Size of the last blocks that the programs allocate.
const LAST_SIZE: u64 = 7777;
const LAST: u64 = 500;

fn program(folder: &Folder) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hazards.c");
    let out = folder.join("hazards");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&out).arg(source);
    let Ok(output) = compiler.output() else {
        metatf_test::skip("no cc on this machine");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(out)
}

/// Returns the number of blocks of the last size in a trace, and the number of all blocks.
fn blocks(trace: &str) -> (u64, u64) {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    let (mut last, mut all) = (0, 0);
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item
            && let EventKind::Call(call) = event.kind
        {
            last += u64::from(call.size == LAST_SIZE);
            all += 1;
        }
    }
    (last, all)
}

#[test]
fn programs_are_recorded_to_the_end() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let program = program.display().to_string();
    for (hazard, least) in [
        ("last", 1500),
        ("jumps", 1_500),
        ("vfork", 11_500),
        ("closed", 101_500),
        ("chroot", 101_500),
        ("cleaned", 2500),
        ("limited", 2500),
    ] {
        // A jump out of malloc may corrupt the C library's heap, with and without a recorder. The program then aborts.
        let tries = if hazard == "jumps" { 20 } else { 1 };
        let bare = || Command::new(&program).arg(hazard).status().unwrap().code();
        assert!((0..tries).any(|_| bare() == Some(7)), "{hazard}");
        let trace = folder.path("trace.mtf");
        for stacks in [None, Some("--stacks")] {
            let command = ["record", "-o", &trace].into_iter().chain(stacks).chain(["--", &program, hazard]);
            let record = || hatf(command.clone());
            let run = (1..tries).map(|_| record()).find(|run| run.status == 7).unwrap_or_else(record).exits(7);
            // A jump may leave a reserved slot unwritten.
            assert!(hazard == "jumps" || run.err.contains(" 0 lost"), "{hazard}: {}", run.err);
            let (last, all) = blocks(&trace);
            assert_eq!(last, LAST, "{hazard}, {stacks:?}: {}", run.err);
            assert!(all >= least, "{hazard}, {stacks:?}: {all} blocks");
        }
    }
}

/// Programs with threads, signals and few permissions end as they do alone, and all of their blocks are recorded.
#[test]
fn each_block_is_recorded() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "hazards_of_threads", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    for hazard in [
        "cancelled",
        "destructors",
        "threads",
        "huge",
        "alternate",
        "coroutines",
        "raw_clone",
        "dumpable",
        "filtered",
        "confined",
        "sealed",
        "limited",
    ] {
        assert_eq!(Command::new(&program).arg(hazard).output().unwrap().status.code(), Some(7), "{hazard}");
        for options in [&[][..], &["--profile", "debug"]] {
            let command = ["record", "-o", &trace].into_iter().chain(options.iter().copied());
            let run = hatf(command.chain(["--", &program, hazard])).exits(7);
            assert!(run.err.contains(" 0 lost"), "{hazard}, {options:?}: {}", run.err);
            let given: u64 = run.text().trim().parse().unwrap();
            assert_eq!(blocks(&trace).0, given, "{hazard}, {options:?}: {}", run.err);
        }
    }
}

/// Under a filter that kills the program if it blocks signals, stacks are still recorded, and those on the main stack
/// are complete.
#[cfg(target_arch = "x86_64")]
#[test]
fn stacks_under_a_filter() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "hazards_of_threads", &["-O1", "-fno-builtin", "-fno-omit-frame-pointer"])
    else {
        return;
    };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    hatf(["record", "--stacks", "-o", &trace, "--", &program, "sealed"]).exits(7);
    let mut reader = TraceReader::open(Path::new(&trace)).unwrap();
    let mut deepest = 0;
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item
            && let EventKind::Call(call) = event.kind
            && call.size == LAST_SIZE
        {
            deepest = deepest.max(event.stack.len());
        }
    }
    // Twenty calls, the allocating function, `sealed`, `main` and its caller.
    assert!(deepest >= 24, "{deepest} frames");
}

/// If a program locks its memory, the recorder's memory is not locked, and the call succeeds whenever it does without a
/// recorder.
#[test]
fn programs_that_lock_their_memory() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "locks", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    let numbers = |text: &str| text.split_whitespace().map(|n| n.parse::<i64>().unwrap()).collect::<Vec<_>>();
    for limit in [None, Some("limited")] {
        let bare = metatf_test::run(Command::new(&program).args(limit));
        if bare.status == 6 || bare.err.contains("mlockall") {
            skip("this user may not lock memory, or give up to be the superuser");
            continue;
        }
        let bare = numbers(&bare.exits(7).text());
        for stacks in [None, Some("--stacks")] {
            let command = ["record", "-o", &trace].into_iter().chain(stacks).chain(["--", &program]).chain(limit);
            let run = hatf(command).exits(7);
            assert_eq!(blocks(&trace).0, 22_000, "{limit:?}, {stacks:?}: {}", run.err);
            assert!(run.err.contains(" 0 lost"), "{}", run.err);
            let locked = numbers(&run.text());
            // The recorder's code, variables and small allocations.
            assert!((bare[0]..bare[0] + 8192).contains(&locked[0]), "{limit:?}, {stacks:?}: {bare:?}, {locked:?}");
            assert_eq!(locked[1] - locked[0], bare[1] - bare[0], "{limit:?}, {stacks:?}");
        }
    }
}

/// A program with a small main stack runs as it does by itself.
#[test]
fn a_small_main_stack() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "hazards_of_threads", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    // The environment takes more than half of the smallest stack.
    for (kilobytes, environment) in [(64, 1), (64, 36_000), (100, 1), (128, 1)] {
        let command = format!("export FILL=$(printf %0{environment}d 0); ulimit -s {kilobytes}; exec {program} none");
        let shell = ["/bin/sh", "-c", &command];
        if metatf_test::run(Command::new(shell[0]).args(&shell[1..])).status != 7 {
            skip("a program does not run with so small a stack here");
            continue;
        }
        for stacks in [None, Some("--stacks")] {
            let command = ["record", "-o", &trace].into_iter().chain(stacks).chain(["--"]).chain(shell);
            let run = hatf(command).exits(7);
            assert_eq!(blocks(&trace).0, 512, "{kilobytes} KiB: {}", run.err);
        }
    }
}

/// An invalid pointer to a limit is an error, as without a recorder.
#[test]
fn a_limit_that_is_nowhere() {
    let folder = Folder::new();
    let source = folder.join("nowhere.c");
    std::fs::write(
        &source,
        "#include <errno.h>\n#include <sys/resource.h>\nint main(void) { for (int of = 0; of < 16; of++) if (setrlimit(of, (void *)8) != -1 || \
         errno != EFAULT) return 8; return 7; }\n",
    )
    .unwrap();
    let Some(program) = common::compiled_from(&source, &folder, "nowhere", &["-w"]) else { return };
    hatf(["record", "-q", "-o", &folder.path("trace.mtf"), "--", program.to_str().unwrap()]).exits(7);
}

/// `hatf record` counts children that it cannot record and gives the reason. It reports no ended child as running.
#[test]
fn children_that_cannot_follow() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "cut_off", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace, root) = (program.display().to_string(), folder.path("trace.mtf"), folder.path("root"));
    std::fs::create_dir(&root).unwrap();
    for (how, followed, said) in [
        ("plain", 2, None),
        ("user", 0, Some("2 other processes not recorded: they ran as another user")),
        ("effective", 0, Some("1 other process not recorded: they ran as another user")),
        ("root", 0, Some("1 other process not recorded: they had a different root directory")),
        ("environment", 1, None),
        ("files", 0, Some("1 other process not recorded: they had no free file descriptors")),
        ("size", 0, Some("2 other processes not recorded: there was not enough space for their spools")),
        ("failed", 0, None),
    ] {
        let bare = metatf_test::run(Command::new(&program).args([how, &root]));
        if bare.status == 6 {
            skip(&format!("{how}: {}", bare.err));
            continue;
        }
        assert_eq!(bare.status, 7, "{how}");
        let run = hatf(["record", "-o", &trace, "--", &program, how, &root]).exits(7);
        let more = run
            .err
            .lines()
            .find(|line| line.contains(" more process"))
            .map_or(0, |line| line.split(' ').nth(1).unwrap().parse().unwrap());
        assert_eq!(more, followed, "{how}: {}", run.err);
        match said {
            Some(said) => assert!(run.err.contains(said), "{how}: {}", run.err),
            None => assert!(!run.err.contains("not recorded"), "{how}: {}", run.err),
        }
        assert!(!run.err.contains("still running"), "{how}: {}", run.err);
        assert!(!run.err.contains("never reported"), "{how}: {}", run.err);
    }
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("there is no strace");
    }
    let run = hatf(["record", "-o", &trace, "--", "strace", "-f", "-o", &folder.path("calls"), &program, "plain"]);
    assert!(!run.exits(7).err.contains("go on"));
}

/// The dynamic linker prints no error in a program's output: another user can open the recorder, and so can a program
/// that starts after `hatf record` was killed.
#[test]
fn the_dynamic_linker_finds_the_recorder() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let other_user = ["setpriv", "--reuid", "65534", "--clear-groups", "/bin/echo", "hello"];
    let bare = Command::new(other_user[0]).args(&other_user[1..]).output();
    if bare.is_ok_and(|bare| bare.status.success()) {
        let run = hatf(["record", "-o", &trace, "--"].into_iter().chain(other_user)).exits(0);
        assert!(!run.err.contains("ld.so"), "{}", run.err);
        assert!(run.err.contains("1 process executed a program that did not load the recorder or could not open"));
    } else {
        skip("no setpriv, or not the superuser");
    }

    let source = common::source("launcher");
    let Some(launcher) = common::compiled_from(&source, &folder, "launcher", &["-static"]) else { return };
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "-q", "-o", &trace, "--spool", &folder.path(""), "--"])
        .args([launcher.to_str().unwrap(), "/bin/echo", "hello"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(recorder.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let spool = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    let spool = spool.into_iter().find(|path| path.join("library").exists()).unwrap();
    let library = PathBuf::from(std::fs::read_to_string(spool.join("library")).unwrap());
    recorder.kill().unwrap();
    let (mut input, mut errors) = (recorder.stdin.take().unwrap(), recorder.stderr.take().unwrap());
    recorder.wait().unwrap();
    input.write_all(b"x").unwrap();
    let (mut rest, mut complaints) = (String::new(), String::new());
    output.read_to_string(&mut rest).unwrap();
    errors.read_to_string(&mut complaints).unwrap();
    assert_eq!(rest, "hello\n");
    assert!(!complaints.contains("ld.so"), "{complaints}");
    // Recovery removes the recording's other files with its spool.
    assert!(library.exists(), "{}", library.display());
    hatf(["recover", spool.to_str().unwrap()]);
    assert!(!spool.exists() && !library.parent().unwrap().exists(), "{}", spool.display());
}

/// The recorder frees its memory for a thread when the thread ends, even if the C library created the thread itself,
/// as for a timer.
#[test]
fn threads_of_the_c_library_leave_nothing_behind() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "created_by_libc", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    for stacks in [None, Some("--stacks")] {
        let command = ["record", "-o", &trace].into_iter().chain(stacks).chain(["--", &program]);
        let run = hatf(command).exits(7);
        assert!(blocks(&trace).0 >= 400, "{}", run.err);
        let grown: i64 = run.text().trim().parse().unwrap();
        // 300 threads with 94 KiB each would need 27 MiB.
        assert!(grown < 4096, "{stacks:?}: {grown} KiB");
    }
}

/// Other names of `malloc` and `free` in the C library and in C23 are recorded.
#[test]
fn other_names() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "other_names", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    for stacks in [None, Some("--stacks")] {
        hatf(["record", "-o", &trace].into_iter().chain(stacks).chain(["--", &program])).exits(7);
        let report: serde_json::Value =
            serde_json::from_str(&hatf(["report", "--format", "json", &trace]).exits(0).text()).unwrap();
        assert_eq!(blocks(&trace).0, 60, "{stacks:?}");
        let sizes = sizes(&trace);
        assert_eq!((sizes.get(&7777), sizes.values().sum::<i64>()), (Some(&0), 0), "{sizes:?}\n{report}");
    }
}

/// Returns the number of unfreed blocks of each size that only the program uses.
fn sizes(trace: &str) -> std::collections::BTreeMap<u64, i64> {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    let (mut left, mut live) = (std::collections::BTreeMap::new(), std::collections::HashMap::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let (begins, ends) = match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => (Some(call), call.old),
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => (None, address),
            _ => continue,
        };
        if let Some(size) = live.remove(&ends) {
            *left.entry(size).or_default() -= 1;
        }
        if let Some(call) = begins.filter(|call| matches!(call.size, 7777..=7799)) {
            assert!(live.insert(call.address, call.size).is_none(), "{call:?} is live");
            *left.entry(call.size).or_default() += 1;
        }
    }
    left
}

/// If the program must not read the clock, nothing more is recorded. The program continues, and the user is warned.
#[test]
fn a_program_that_confines_itself() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let program = program.display().to_string();
    assert_eq!(Command::new(&program).arg("strict").status().unwrap().code(), Some(7));
    let trace = folder.path("trace.mtf");
    hatf(["record", "-o", &trace, "--", &program, "strict"])
        .exits(7)
        .says("recording ended early: the program dropped permissions");
    assert!(blocks(&trace).1 >= 1000);
}

/// Starts a program that counts its signals, and waits until it is ready. `before` is called in the recorder process
/// before `exec`.
fn counting(folder: &Folder, program: &Path, mut before: impl FnMut() + Send + Sync + 'static) -> std::process::Child {
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
    recorder
        .args(["record", "-q", "-o", &folder.path("trace.mtf"), "--"])
        .args([program.as_os_str(), "counts".as_ref()])
        .stdout(Stdio::piped());
    // SAFETY: the callers only make system calls, as a child of `fork` may.
    unsafe {
        recorder.pre_exec(move || {
            before();
            Ok(())
        })
    };
    let mut recorder = recorder.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    recorder
}

/// `hatf record` passes on a signal to itself alone, even if the signal was ignored at its start, as in background
/// commands of a shell script, because the program has its own handler. A signal to the group also reaches the program
/// directly; two simultaneous ones count as one.
#[test]
fn signals_are_passed_on() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    for (signal, number) in [("INT", libc::SIGINT), ("TERM", libc::SIGTERM)] {
        for (whom, group, action, most) in [
            ("the recorder", "", libc::SIG_DFL, 1),
            ("the recorder, ignored at first", "", libc::SIG_IGN, 1),
            ("the group", "-", libc::SIG_DFL, 2),
            ("the group, ignored at first", "-", libc::SIG_IGN, 2),
        ] {
            let mut recorder = counting(&folder, &program, move || {
                // SAFETY: the arguments are integers.
                unsafe {
                    libc::setpgid(0, 0);
                    libc::signal(number, action);
                }
            });
            let sent = Command::new("kill").args(["-s", signal, "--", &format!("{group}{}", recorder.id())]).status();
            assert!(sent.unwrap().success());
            // The exit status is the number of signals.
            let came = ended(&mut recorder);
            assert!(came.is_some_and(|came| (1..=most).contains(&came)), "{signal} to {whom}: {came:?}");
        }
    }
}

/// A terminal sends an interrupt to the recorder and to the program. The program receives it once, because many
/// programs exit immediately at the second.
#[test]
fn an_interrupt_from_a_terminal_comes_once() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else { return };
    let (mut master, mut slave) = (0, 0);
    // SAFETY: the results have valid locations, and the name and settings are null. The descriptors are new and have no
    // other owner.
    let (mut terminal, side) = unsafe {
        assert_eq!(libc::openpty(&raw mut master, &raw mut slave, null_mut(), null_mut(), null_mut()), 0);
        (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    };
    let mut recorder = counting(&folder, &program, move || {
        // SAFETY: the arguments are integers. This creates a session with this terminal and the recorder's group in the
        // foreground.
        unsafe {
            libc::setsid();
            libc::ioctl(side.as_raw_fd(), libc::TIOCSCTTY, 0);
        }
    });
    terminal.write_all(b"\x03").unwrap();
    assert_eq!(ended(&mut recorder), Some(1));
}

/// Returns the exit status of a recording, or `None` if it does not end.
fn ended(recorder: &mut std::process::Child) -> Option<i32> {
    let begun = std::time::Instant::now();
    while begun.elapsed() < metatf_test::PATIENCE {
        if let Some(status) = recorder.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: the group of a child that has not been waited for.
    unsafe { libc::kill(-recorder.id().cast_signed(), libc::SIGKILL) };
    recorder.wait().unwrap();
    None
}

/// Signals ignored when the recorder starts are ignored in the program.
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let show = "while read name value; do [ $name = SigIgn: ] && echo $value; done < /proc/self/status; :";
    let script = format!("trap '' PIPE INT HUP; sh -c '{show}'; \"$0\" record -q -o \"$1\" -- sh -c '{show}'");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_hatf"), &folder.path("trace.mtf")]);
    let shown = metatf_test::run(&mut shell).exits(0).text();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, lines[1]), "{shown}");
}

/// A library loaded with `RTLD_DEEPBIND` calls the C library before all others, but its blocks are recorded.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_library_that_binds_deeply() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "deep_bind", &["-O1", "-fno-builtin"]) else { return };
    let source = common::source("deep_bind");
    let Some(library) = common::compiled_from(
        &source,
        &folder,
        "library.so",
        &["-O1", "-fno-builtin", "-shared", "-fPIC", "-DLIBRARY"],
    ) else {
        return;
    };
    let (program, library, trace) =
        (program.display().to_string(), library.display().to_string(), folder.path("trace.mtf"));
    for stacks in [None, Some("--stacks")] {
        let command = ["record", "-o", &trace].into_iter().chain(stacks).chain(["--", &program, &library]);
        let run = hatf(command).exits(7);
        assert_eq!(blocks(&trace).0, 1000, "{}", run.err);
        let report = hatf(["report", "--format", "json", &trace]).exits(0).text();
        for none in ["unmatched_frees", "allocs_of_live_blocks"] {
            assert!(report.contains(&format!("\"{none}\": 0")), "{report}");
        }
    }
}

/// If `hatf record` is killed, which removes the recorder, programs that the program starts later do not look for it.
#[test]
fn no_program_looks_for_a_recorder_that_is_gone() {
    let folder = Folder::new();
    let start = [
        ("sh", "read line; /bin/echo by execve", "by execve\n"),
        (
            "perl",
            "my $line = <STDIN>; system('/bin/echo', 'by execvp'); system('/bin/echo by execl; :')",
            "by execvp\nby execl\n",
        ),
    ];
    for (program, script, said) in start {
        let option = if program == "sh" { "-c" } else { "-e" };
        if Command::new(program).args([option, ""]).status().is_err() {
            metatf_test::skip(&format!("there is no {program}"));
            continue;
        }
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
            .args(["record", "-q", "-o", &folder.path("trace.mtf"), "--spool", &folder.path(""), "--", program, option])
            .args([format!("{}{script}", if program == "sh" { "echo ready; " } else { "$| = 1; print \"ready\\n\";" })])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(recorder.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        recorder.kill().unwrap();
        let (mut input, mut errors) = (recorder.stdin.take().unwrap(), recorder.stderr.take().unwrap());
        recorder.wait().unwrap();
        input.write_all(b"go on\n").unwrap();
        let (mut rest, mut complaints) = (String::new(), String::new());
        output.read_to_string(&mut rest).unwrap();
        errors.read_to_string(&mut complaints).unwrap();
        assert_eq!((rest.as_str(), complaints.as_str()), (said, ""), "{program}");
    }
}

/// Limits for the program apply to the recorder, too, which needs little or names the limit before the program runs.
#[test]
fn small_limits() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "sample", &["-O1"]) else { return };
    let trace = folder.path("trace.mtf");
    let own = env!("CARGO_BIN_EXE_hatf");
    for (limit, code) in [("-s 150", 0), ("-d 64000", 0), ("-v 500000", 0), ("-n 12", 0), ("-n 5", 125)] {
        let script = format!(
            "ulimit {limit}; exec {own} record --stacks --no-follow -o {trace} -- {} 100000",
            program.display()
        );
        let mut shell = Command::new("/bin/sh");
        // Files that other tests have open at this time do not count toward `ulimit -n`.
        // SAFETY: the function only makes a system call, as a child of `fork` may.
        unsafe {
            shell.pre_exec(|| {
                libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed());
                Ok(())
            })
        };
        let run = metatf_test::run(shell.args(["-c", &script]));
        assert_eq!(run.status, code, "{limit}: {}", run.err);
        if code == 0 {
            assert!(blocks(&trace).1 > 200_000, "{limit}");
        } else {
            assert!(run.err.contains("raise the limit (ulimit -n)"), "{}", run.err);
        }
    }
}

/// Creates a control group with this memory limit, like that of a container. Returns `None` if this process may not.
fn group_of_memory(bytes: u64) -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let of_line = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let (root, limit) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let folder = Path::new(root).join(group.trim_start_matches('/')).join(format!("hatf-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let is_limited = folder.join(limit).exists() && std::fs::write(folder.join(limit), bytes.to_string()).is_ok();
        if !is_limited {
            let _ = std::fs::remove_dir(&folder);
        }
        is_limited.then_some(folder)
    };
    groups.lines().find_map(of_line)
}

/// Chunks are returned even if each one ends in the middle of a realloc, so a spool that holds only a part of the
/// events is enough.
#[test]
fn a_small_spool() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "sample", &["-O1"]) else { return };
    let trace = folder.path("trace.mtf");
    for option in ["--usable", "--stacks"] {
        let own = ["record", "--no-follow", option, "--spool-size", "4MiB", "-o", &trace, "--"];
        let run = hatf(own.into_iter().chain([program.to_str().unwrap(), "100000"])).exits(0);
        assert!(run.err.contains(" 0 lost"), "{option}: {}", run.err);
    }
}

/// The program and the recorder run in the memory of a container, though the machine has more.
#[test]
fn little_memory_in_a_container() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "sample", &["-O1"]) else { return };
    let Some(group) = group_of_memory(150 << 20) else { return skip("no control group can be made here") };
    let (trace, own) = (folder.path("trace.mtf"), env!("CARGO_BIN_EXE_hatf"));
    for option in ["--usable", "--stacks"] {
        let script = format!(
            "echo $$ > {}/cgroup.procs; exec {own} record --no-follow {option} --patience 600s -o {trace} -- {} 300000",
            group.display(),
            program.display()
        );
        let run = metatf_test::run(Command::new("/bin/sh").args(["-c", &script]));
        assert_eq!(run.status, 0, "{option}: {}", run.err);
        assert!(blocks(&trace).1 > 600_000 && run.err.contains(" 0 lost"), "{option}: {}", run.err);
    }
    std::fs::remove_dir(group).unwrap();
}
