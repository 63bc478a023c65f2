//! Full spools and full disks. If a spool is full because `hatf` is stopped, the program continues, and the trace
//! reports how many events are missing. If a disk is full, the spool contains the events missing from the trace.
#![expect(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{self, hatf};
use hatf_trace::event::Call;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Disk, Folder};

/// Number of blocks that the program allocates, more than a 1 MiB spool holds.
const BLOCKS: u64 = 200_000;

/// The time that a program waits for a stopped recorder, by `--patience`.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends a signal to a child that has not been waited for.
fn signal(child: u32, signal: libc::c_int) {
    // SAFETY: a child of this process.
    assert_eq!(unsafe { libc::kill(libc::pid_t::try_from(child).unwrap(), signal) }, 0);
}

/// Compiles a C program that waits for a line and then allocates. Its argument is the number of blocks before it waits
/// for another line.
fn program(folder: &Folder) -> Option<PathBuf> {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        static void wait(const char *line) { puts(line); fflush(stdout); getchar(); }\n\
        int main(int count, char **arguments) { int pause = count > 1 ? atoi(arguments[1]) : -1; wait(\"ready\");\n\
        for (int n = 0; n < 200000; n++) { if (n == pause) wait(\"pause\"); void *volatile block = malloc(77); free(block); }\n\
        puts(\"done\"); return 7; }\n";
    folder.write("blocks.c", source);
    let out = folder.join("blocks");
    let built = Command::new("cc").arg("-O1").arg("-o").arg(&out).arg(folder.join("blocks.c")).status();
    built.is_ok_and(|status| status.success()).then_some(out)
}

/// Returns the number of the program's blocks in a trace, and the number of events reported as lost.
fn read(trace: &Path) -> (u64, u64) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut calls, mut lost) = (0, 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) if call.size == 77 => calls += 1,
            EventKind::Lost { events } => lost += events,
            _ => {}
        }
    }
    (calls, lost)
}

/// Records the program while `hatf` is stopped. Returns the messages and the time the program took.
fn stopped(program: &Path, trace: &Path, policy: &str) -> (String, Duration) {
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--spool-size", "1MiB", "--patience", "1s", "--when-full", policy, "-o"])
        .arg(trace)
        .arg("--")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = recorder.stdout.take().unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    signal(recorder.id(), libc::SIGSTOP);
    recorder.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let begun = Instant::now();
    // The program ends although nobody reads its events.
    output.read_exact(&mut [0; 5]).unwrap();
    let took = begun.elapsed();
    signal(recorder.id(), libc::SIGCONT);
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    (String::from_utf8(output.stderr).unwrap(), took)
}

#[test]
fn a_stopped_recorder_does_not_stop_the_program() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else {
        metatf_test::skip("no cc on this machine");
        return;
    };
    let trace = folder.join("trace.mtf");
    for policy in ["drop", "wait"] {
        let (messages, took) = stopped(&program, &trace, policy);
        assert!(messages.contains("events were lost"), "{messages}");
        // `a_stalled_recorder_is_waited_for_once` checks that `drop` does not wait.
        assert!(policy == "drop" || took >= PATIENCE, "{took:?}");
        let (calls, lost) = read(&trace);
        assert!(calls > 1000 && lost > 1000, "{calls} calls, {lost} lost");
        // Each block is two events, at most one block is half recorded, and the program loses a few other events.
        let all = 2 * calls + lost;
        assert!((2 * BLOCKS - 1..2 * BLOCKS + 20).contains(&all), "{calls} calls, {lost} lost");
    }
    let (messages, _) = stopped(&program, &trace, "stop");
    assert!(messages.contains("recording ended early: the spool was full"), "{messages}");
    assert!(messages.contains("later events are not counted") && !messages.contains("0 events"), "{messages}");
}

/// A program that allocates bursts of blocks, each more than a 1 MiB spool holds, while its recorder is stopped.
struct Bursts {
    program: Child,
    answers: BufReader<ChildStdout>,
    recorder: u32,
}

impl Bursts {
    fn of(mut program: Child, recorder: u32) -> Self {
        let mut answers = BufReader::new(program.stdout.take().unwrap());
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { program, answers, recorder }
    }

    /// Checks whether the program waits for space in a burst.
    ///
    /// A waiting program waits for `PATIENCE`, however fast the machine is. Any other program waits for at most 50 ms,
    /// 10 ms at a time.
    fn expect(&mut self, waits: bool, options: &[&str]) {
        signal(self.recorder, libc::SIGSTOP);
        let begun = Instant::now();
        writeln!(self.program.stdin.as_mut().unwrap(), "burst").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let took = begun.elapsed();
        signal(self.recorder, libc::SIGCONT);
        let count: u64 = line.trim().parse().unwrap();
        assert!(if waits { took >= PATIENCE } else { count < 30 }, "{options:?}: {count} waits in {took:?}");
    }
}

/// A program started by `hatf` waits for its recorder only once while the recorder does not catch up.
#[test]
fn a_stalled_recorder_is_waited_for_once() {
    let folder = Folder::new();
    let Some(program) = common::compiled(&folder, "bursts", &["-O1"]) else { return };
    for (options, waits) in [
        (&[][..], true),
        (&["--when-full", "drop"], false),
        (&["--sample", "1"], false),
        (&["--sample", "1", "--when-full", "wait"], true),
    ] {
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
        recorder
            .args(["record", "-q", "--spool-size", "1MiB", "--patience", "1s", "-o", &folder.path("trace.mtf")])
            .args(options)
            .arg("--")
            .arg(&program);
        let recorder = recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let id = recorder.id();
        let mut bursts = Bursts::of(recorder, id);
        bursts.expect(waits, options);
        // The recorder has freed a few chunks, and stalls again.
        std::thread::sleep(Duration::from_millis(200));
        bursts.expect(false, options);
        drop(bursts.program.stdin.take());
        assert_eq!(bursts.program.wait().unwrap().code(), Some(7));
    }
}

/// A program to which `hatf` attaches waits only if `--when-full wait` is given.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_that_was_attached_to_does_not_wait() {
    let folder = Folder::new();
    let Some(program) = common::compiled(&folder, "bursts", &["-O1"]) else { return };
    let program = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut bursts = Bursts::of(program, 0);
    for (options, waits) in [(&[][..], false), (&["--when-full", "wait"], true)] {
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
        recorder.args(["record", "--spool-size", "1MiB", "--patience", "1s", "-o", &folder.path("trace.mtf")]);
        recorder.args(options);
        let mut recorder =
            recorder.args(["--pid", &bursts.program.id().to_string()]).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(recorder.stderr.take().unwrap());
        let mut said = String::new();
        messages.read_line(&mut said).unwrap();
        assert!(said.contains("recording process"), "{said}");
        bursts.recorder = recorder.id();
        bursts.expect(waits, options);
        signal(recorder.id(), libc::SIGINT);
        messages.read_to_string(&mut said).unwrap();
        assert_eq!(recorder.wait().unwrap().code(), Some(if waits { 125 } else { 0 }), "{said}");
        assert!(said.contains("events were lost"), "{said}");
    }
    drop(bursts.program.stdin.take());
    assert_eq!(bursts.program.wait().unwrap().code(), Some(7));
}

/// The inner recording belongs to its program, and no call is recorded twice.
#[test]
fn a_recording_inside_a_recording() {
    let folder = Folder::new();
    let (outer, inner) = (folder.path("outer.mtf"), folder.path("inner.mtf"));
    let own = env!("CARGO_BIN_EXE_hatf");
    hatf(["record", "-o", &outer, "--", own, "record", "-o", &inner, "--", "/bin/sh", "-c", "exit 3"]).exits(3);
    let mut reader = TraceReader::open(Path::new(&inner)).unwrap();
    let (mut live, mut calls) = (HashSet::new(), 0);
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(Call { old, address, .. }) => {
                calls += 1;
                assert!(old == 0 || live.remove(&old), "{event:?}");
                assert!(address == 0 || live.insert(address), "{event:?}");
            }
            EventKind::Free { address } => assert!(live.remove(&address), "{event:?}"),
            _ => {}
        }
    }
    assert!(calls > 5);
    hatf(["report", &outer]).exits(0).prints("total heap usage: ");
}

/// Returns the number of readable events in a possibly truncated trace, the number of the program's blocks among them,
/// and the number of events reported as lost.
fn readable(trace: &Path) -> (u64, u64, u64) {
    let (mut events, mut calls, mut lost) = (0, 0, 0);
    let Ok(mut reader) = TraceReader::open(trace) else { return (0, 0, 0) };
    while let Ok(Some(item)) = reader.next() {
        let Item::Event(event) = item else { continue };
        events += 1;
        match event.kind {
            EventKind::Call(call) if call.size == 77 => calls += 1,
            EventKind::Lost { events } => lost += events,
            _ => {}
        }
    }
    (events, calls, lost)
}

/// Returns the number before a string in a message.
fn number_before(message: &str, behind: &str) -> u64 {
    let (before, _) = message.split_once(behind).unwrap_or_else(|| panic!("{message}"));
    before.rsplit(|c: char| !c.is_ascii_digit()).find(|text| !text.is_empty()).unwrap().parse().unwrap()
}

/// If the disk of the trace is full, events missing from the trace are in the spool, which is kept.
#[test]
fn a_full_disk_loses_nothing() {
    let folder = Folder::new();
    let Some(program) = program(&folder) else {
        metatf_test::skip("no cc on this machine");
        return;
    };
    let Some(disk) = Disk::new("64k") else {
        metatf_test::skip("this user cannot make a disk");
        return;
    };
    let output = disk.join("trace.mtf");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
    recorder.args(["record", "--profile", "fast", "--group", "20000", "--spool"]).arg(&*folder);
    let message = metatf_test::run(recorder.arg("-o").arg(&output).arg("--").arg(&program)).exits(7).err;
    assert!(message.contains("No space left on device"), "{message}");
    let (_, spool) = message.split_once("`hatf recover ").unwrap_or_else(|| panic!("{message}"));
    let (spool, _) = spool.split_once('`').unwrap();
    // The readable part of the trace is as long as the message says, but incomplete.
    let (events, calls, _) = readable(&output);
    let said = number_before(&message, " of them");
    assert!((said..said + 40_000).contains(&events), "{events}: {message}");
    assert!(calls > 10_000 && calls < BLOCKS, "{calls}");
    let whole = folder.path("whole.mtf");
    hatf(["recover", spool, "-o", &whole]).exits(0).says(", 0 lost");
    let (calls, lost) = read(Path::new(&whole));
    // Recording ended when the disk was full. All events recorded by then are recovered.
    assert!(lost == 0 && 2 * calls > events, "{calls} of {BLOCKS}, {lost} lost");
    assert!(number_before(&message, " records,") <= readable(Path::new(&whole)).0 + 1, "{message}");
    assert!(!Path::new(spool).exists());
}

/// If the disk is full, every command that writes a file names it, keeps its old content and creates no other file.
#[test]
fn outputs_on_a_full_disk() {
    let folder = Folder::new();
    let Some(disk) = Disk::new("64k") else {
        metatf_test::skip("this user cannot make a disk");
        return;
    };
    let (trace, model) = (folder.path("ls.mtf"), folder.path("ls.model"));
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", "ls", "-lR", env!("CARGO_MANIFEST_DIR")]).exits(0);
    hatf(["model", "fit", "-m", "cdf", &trace, "-o", &model]).exits(0);
    let old = "what was there before";
    let output = disk.path("output");
    disk.write("output", old);
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let names = || -> Vec<_> { std::fs::read_dir(&**disk).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    let before = names();
    let runs: &[&[&str]] = &[
        &["tour", "--output", &output],
        &["profile", &trace, "-o", &output],
        &["report", &trace, "-o", &output],
        &["report", "--format", "html", &trace, "-o", &output],
        &["report", &trace, "--svg", &output],
        &["sites", "--format", "svg", &trace, "-o", &output],
        &["symbolize", &trace, "-o", &output],
        &["convert", "--to", "hatf10", &trace, &output],
        &["convert", "--to", "jsonl", &trace, &output],
        &["model", "fit", "-m", "cdf", &trace, "-o", &output],
        &["model", "generate", &model, "--events", "100000", "-o", &output],
    ];
    for run in runs {
        let failed = hatf(*run).exits(1);
        failed.says("output: No space left on device");
        assert_eq!(disk.read("output"), old.as_bytes(), "{run:?}");
        assert_eq!(names(), before, "{run:?}");
    }
    // Either all manual pages and completions are written, or none.
    let share = disk.join("share");
    for folder in ["man/man1", "bash-completion/completions", "fish/vendor_completions.d", "zsh/site-functions"] {
        let _ = std::fs::create_dir_all(share.join(folder));
    }
    hatf(["--install-docs", &disk.path("share")]).exits(1).says("No space left on device");
    let files = metatf_test::run(std::process::Command::new("find").arg(&share).args(["-type", "f"])).text();
    assert_eq!(files, "");
}

/// If a trace is truncated after chunks of the spool were reused, the recovered trace counts the missing events.
#[test]
fn what_a_shortened_trace_misses() {
    // Records per group.
    const GROUP: u64 = 5_000;
    // Number of 16-byte events in a 1 MiB spool.
    const SPOOL: u64 = 65_536;
    // Events before the recorder is killed. The spool holds the later ones.
    const BEFORE: u64 = 2 * (BLOCKS - 1000);
    let folder = Folder::new();
    let Some(program) = program(&folder) else {
        metatf_test::skip("no cc on this machine");
        return;
    };
    let trace = folder.join("trace.mtf");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--group", &GROUP.to_string(), "--spool-size", "1MiB", "--patience", "600s", "--spool"])
        .arg(&*folder)
        .arg("-o")
        .arg(&trace)
        .arg("--")
        .arg(program)
        .arg((BEFORE / 2).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (recorder.stdin.take().unwrap(), recorder.stdout.take().unwrap());
    output.read_exact(&mut [0; 6]).unwrap();
    input.write_all(b"\n").unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    let begun = Instant::now();
    while readable(&trace).0 + 3 * GROUP < BEFORE {
        assert!(begun.elapsed() < metatf_test::PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    input.write_all(b"\n").unwrap();
    output.read_to_end(&mut Vec::new()).unwrap();
    let (events, _, dropped) = readable(&trace);
    let file = std::fs::File::options().write(true).open(&trace).unwrap();
    // On a busy machine, half of the bytes can contain almost all events, which are not equally compressible.
    let mut left = events;
    while left + SPOOL + 1000 >= events {
        file.set_len(trace.metadata().unwrap().len() / 2).unwrap();
        left = readable(&trace).0;
    }
    let spool = std::fs::read_dir(&*folder).unwrap().map(|entry| entry.unwrap().path());
    let spool = spool.into_iter().find(|path| path.join("events").exists()).unwrap();
    let message = hatf([OsStr::new("recover"), spool.as_os_str()]).exits(1).err;
    let (calls, lost) = read(&trace);
    assert_eq!(number_before(&message, " lost"), lost, "{message}");
    // Each block is two events. The program adds a few others, and `hatf` one per write. A chunk holds 2,000 events.
    let all = 2 * BLOCKS - 2..2 * BLOCKS + 1000;
    assert!(all.contains(&(2 * calls + lost)), "{calls} calls, {lost} lost: {message}");
    // An event is in the trace, in the spool, or lost. A truncated group is lost completely.
    assert!(lost + left + SPOOL >= BEFORE, "{lost}, {left} of {events}");
    assert!(lost <= events + dropped - left + GROUP * 5 / 4, "{lost}, {left} of {events}");
}
