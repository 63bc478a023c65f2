//! Attaching to running processes, detaching and attaching again while they work.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use crate::common;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, PATIENCE, skip};

/// A running program that works on request.
pub(crate) struct Running {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Running {
    pub(crate) fn start(program: &mut Command) -> Self {
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child, answers };
        assert_eq!(running.answer(), "ready\n");
        running
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    /// Has the program do one round of work.
    pub(crate) fn works(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap(), "work").unwrap();
        assert_eq!(self.answer(), "done\n");
    }

    /// Ends the program. Checks its exit status and that no block is corrupt.
    pub(crate) fn ends(mut self) {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.answers.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), self.child.wait().unwrap().code()), ("0 damaged\n", Some(7)));
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `hatf record --pid` that has begun to record.
pub(crate) struct Recording {
    child: Child,
    messages: BufReader<std::process::ChildStderr>,
    /// Messages of `hatf` so far.
    said: String,
}

impl Recording {
    pub(crate) fn of(process: &str, trace: &str, options: &[&str]) -> Self {
        Self::by(Command::new(env!("CARGO_BIN_EXE_hatf")).args(["record", "--pid", process, "-o", trace]).args(options))
    }

    fn by(hatf: &mut Command) -> Self {
        let mut child = hatf.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        messages.read_line(&mut said).unwrap();
        assert!(said.contains("recording process"), "{said}");
        Self { child, messages, said }
    }

    /// Ends the recording as a user does.
    pub(crate) fn interrupted(mut self) {
        self.gets(libc::SIGINT);
        self.ended();
    }

    fn gets(&self, signal: libc::c_int) {
        // SAFETY: this child has not been waited for.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    fn ended(&mut self) {
        self.messages.read_to_string(&mut self.said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.said);
        assert!(self.said.contains(" 0 lost"), "{}", self.said);
    }
}

/// Counts of the blocks in a trace whose sizes only the program uses.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    blocks: usize,
    ends: usize,
    /// Frees of blocks whose allocation was not recorded.
    from_before: usize,
    twice: usize,
    stackless: usize,
}

fn found(trace: &str) -> Found {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    let (mut found, mut live) = (Found::default(), HashMap::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) if call.address != 0 => {
                let was_ours = live.remove(&call.old).is_some();
                found.ends += usize::from(was_ours);
                found.twice += usize::from(live.insert(call.address, call.size).is_some());
                if call.size % 1000 == 77 {
                    found.blocks += 1;
                    found.stackless += usize::from(event.stack.is_empty());
                } else {
                    live.remove(&call.address);
                }
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => match live.remove(&address) {
                Some(_) => found.ends += 1,
                None => found.from_before += 1,
            },
            _ => {}
        }
    }
    found
}

pub(crate) fn program(folder: &Folder, name: &str) -> Option<Command> {
    let program = compiled(folder, name, &["-rdynamic"])?;
    let plugin = folder.join("plugin.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&plugin)
        .arg(common::source("attached_plugin"))
        .status();
    assert!(built.unwrap().success());
    let mut command = Command::new(program);
    command.arg(plugin);
    Some(command)
}

/// Blocks per round: 100 from `malloc` and 100 from `realloc` in each of four threads, and one in a module.
const ROUND: usize = 4 * 200 + 1;

#[test]
fn a_program_with_threads_again_and_again() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    running.works();
    for options in [&[][..], &["--stacks=8"], &["--stacks=8"], &["--sample", "16"]] {
        let recording = Recording::of(&running.id(), &trace, options);
        running.works();
        running.works();
        recording.interrupted();
        // This round is not recorded.
        running.works();
        let found = found(&trace);
        let stackless = if options.iter().any(|option| option.starts_with("--stacks")) { 0 } else { 2 * ROUND };
        assert_eq!((found.blocks, found.twice, found.stackless), (2 * ROUND, 0, stackless), "{options:?}: {found:?}");
        // Each thread keeps one block from each round to the next.
        assert_eq!(found.ends, 2 * ROUND - 4, "{options:?}: {found:?}");
        // A sample contains only the frees of sampled blocks.
        assert!(found.from_before >= 4 || options.contains(&"--sample"), "{options:?}: {found:?}");
        if stackless == 0 {
            // All frames are in modules, also in a second recording.
            let sites =
                hatf(["sites", "--symbols", "none", &trace, "--by", "allocated", "--group", "stack"]).exits(0).text();
            assert!(sites.contains("attached+0x") && sites.contains("libc.so") && !sites.contains("  0x"), "{sites}");
        }
    }
    running.ends();
}

/// Returns the mapped bytes of a process and the number of its mappings.
fn mapped(process: &str) -> (u64, usize) {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let bytes = maps.lines().map(|line| {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        u64::from_str_radix(to, 16).unwrap() - u64::from_str_radix(from, 16).unwrap()
    });
    (bytes.sum(), maps.lines().count())
}

/// Recording starts and ends while threads never pause. No live address is allocated again, and memory left in the
/// process does not grow from one recording to the next.
#[test]
fn in_the_middle_of_its_work() {
    let folder = Folder::new();
    let Some(program) = program(&folder, "attached") else { return };
    let path = program.get_program().to_owned();
    let running = Running::start(Command::new(path).args(["always", "x"]));
    let trace = folder.path("trace.mtf");
    let mut left = Vec::new();
    for number in 0..8 {
        // By default, events are dropped while the recorder gets no CPU time.
        let mut options = vec!["--when-full", "wait", "--patience", "600s"];
        options.extend((number % 2 == 1).then_some("--stacks=4"));
        let recording = Recording::of(&running.id(), &trace, &options);
        std::thread::sleep(Duration::from_millis(50));
        recording.interrupted();
        let found = found(&trace);
        assert!(found.blocks > 100 && found.twice == 0, "{number}: {found:?}");
        left.push(mapped(&running.id()));
    }
    // The first recordings with and without stacks leave memory behind, and so does the library for each thread.
    let (first, last) = (left[3], left[7]);
    assert!(last.0 <= first.0 + (64 << 10) && last.1 <= first.1, "{left:?}");
    running.ends();
}

/// Modules loaded during a recording are recorded.
#[test]
fn a_module_that_is_loaded_later() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    let recording = Recording::of(&running.id(), &trace, &[]);
    writeln!(running.child.stdin.as_mut().unwrap(), "load").unwrap();
    assert_eq!(running.answer(), "loaded\n");
    // The hooks check for new modules every 20 ms.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(100) {
        running.works();
    }
    writeln!(running.child.stdin.as_mut().unwrap(), "plug").unwrap();
    assert_eq!(running.answer(), "plugged\n");
    recording.interrupted();
    let mut reader = TraceReader::open(Path::new(&trace)).unwrap();
    let mut plugged = 0;
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(hatf_trace::Event { kind: EventKind::Call(call), .. }) = item {
            plugged += usize::from(call.size == 123_456);
        }
    }
    assert_eq!(plugged, 10);
    // `hatf` also detaches if the program has unloaded a module.
    let recording = Recording::of(&running.id(), &trace, &[]);
    writeln!(running.child.stdin.as_mut().unwrap(), "unload").unwrap();
    assert_eq!(running.answer(), "unloaded\n");
    running.works();
    recording.interrupted();
    running.ends();
}

/// If `hatf` is killed, the process continues, its trace can be recovered, and another recording can take over.
#[test]
fn killed_while_it_records() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    for _ in 0..3 {
        let spools = folder.path("spools");
        std::fs::create_dir_all(&spools).unwrap();
        let mut recording = Recording::of(&running.id(), &trace, &["--spool", &spools]);
        running.works();
        // Another `hatf` already records the process.
        hatf(["record", "--pid", &running.id(), "-o", &folder.path("other.mtf")])
            .exits(125)
            .says("is already being recorded");
        assert!(!Path::new(&folder.path("other.mtf")).exists());
        recording.child.kill().unwrap();
        recording.child.wait().unwrap();
        running.works();
        let spool = std::fs::read_dir(&spools).unwrap().next().unwrap().unwrap().path();
        let spool = spool.to_str().unwrap();
        hatf(["recover", spool]).exits(1).says("is still running");
        // The next recording ends the previous one.
        let next = folder.path("next.mtf");
        let recording = Recording::of(&running.id(), &next, &[]);
        running.works();
        recording.interrupted();
        assert_eq!(found(&next).blocks, ROUND);
        hatf(["recover", spool]).exits(0);
        assert_eq!(found(&trace).blocks, 2 * ROUND);
    }
    running.ends();
}

/// A sleeping program is released at once, whenever the interrupt comes.
#[test]
fn interrupts_at_any_time() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let mut times = Vec::new();
    for round in 0..50 {
        let recording = Recording::of(&running.id(), &folder.path("trace.mtf"), &[]);
        std::thread::sleep(Duration::from_millis(round * 7));
        let begun = Instant::now();
        recording.interrupted();
        times.push(begun.elapsed());
    }
    // Writing the trace to a busy disk takes time, too.
    assert!(times.iter().all(|time| *time < Duration::from_secs(5)), "{times:?}");
    running.works();
    running.ends();
}

/// The trace of a process that sleeps until the recording ends shows how long it slept.
#[test]
fn the_end_of_the_recording_has_its_time() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    let recording = Recording::of(&running.id(), &trace, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    recording.interrupted();
    let report: serde_json::Value =
        serde_json::from_slice(&hatf(["report", "--format", "json", &trace]).exits(0).out).unwrap();
    assert!(report["duration"].as_u64() >= Some(1_400_000_000), "{report}");
    running.works();
    running.ends();
}

/// If the process ends during the recording, `hatf` writes the trace and exits with the status of the process.
#[test]
fn it_ends_first() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    let mut recording = Recording::of(&running.id(), &trace, &[]);
    running.works();
    drop(running.child.stdin.take());
    assert_eq!(running.child.wait().unwrap().code(), Some(7));
    recording.messages.read_to_string(&mut recording.said).unwrap();
    assert_eq!(recording.child.wait().unwrap().code(), Some(7), "{}", recording.said);
    assert_eq!(found(&trace).blocks, ROUND);
    let report = hatf(["report", &trace]).exits(0).text();
    assert!(report.contains("recording was off once"), "{report}");
}

#[test]
fn what_is_refused() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let refused = |process: &str, why: &str| {
        hatf(["record", "--pid", process, "-o", &trace]).exits(125).says(why);
        assert!(!Path::new(&trace).exists());
    };
    refused(&i32::MAX.to_string(), "there is no process");
    hatf(["record", "--pid", "1", "ls"]).exits(2);
    if let Some(program) = compiled(&folder, "attached", &["-static"]) {
        let running = Running::start(&mut Command::new(program));
        refused(&running.id(), "statically linked");
    }
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    // SAFETY: this child has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGSTOP) };
    std::thread::sleep(Duration::from_millis(50));
    refused(&running.id(), "is stopped");
    // SAFETY: as above.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGCONT) };
    // SAFETY: the request accesses no memory.
    unsafe { libc::ptrace(libc::PTRACE_SEIZE, running.child.id(), 0, 0) };
    refused(&running.id(), "is traced by process");
    // SAFETY: as above. The process is stopped when `waitpid` returns.
    unsafe {
        libc::ptrace(libc::PTRACE_INTERRUPT, running.child.id(), 0, 0);
        let mut status = 0;
        libc::waitpid(running.child.id().cast_signed(), &raw mut status, libc::__WALL);
        libc::ptrace(libc::PTRACE_DETACH, running.child.id(), 0, 0);
    }
    running.works();
    running.ends();
}

/// An interpreter with threads can be recorded.
#[test]
fn python() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        return skip("there is no python3");
    }
    let folder = Folder::new();
    let script = common::source("attached").with_extension("py");
    let mut running = Running::start(Command::new(python).arg(script).env("PYTHONMALLOC", "malloc"));
    for options in [&[][..], &["--stacks=8"]] {
        let trace = folder.path("trace.mtf");
        let recording = Recording::of(&running.id(), &trace, options);
        running.works();
        recording.interrupted();
        running.works();
        let found = found(&trace);
        assert!(found.blocks >= 20 && found.twice == 0, "{found:?}");
    }
    running.ends();
}

/// If `hatf` is killed at any time while attaching, even while a thread of the process calls functions for it, the
/// process continues.
#[test]
fn killed_while_it_attaches() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut random = u64::from(std::process::id());
    for _ in 0..5 {
        let mut running = Running::start(&mut program);
        for _ in 0..6 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let trace = folder.path("trace.mtf");
            let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
            hatf.args(["record", "-q", "--pid", &running.id(), "-o", &trace, "--spool", &folder.path("")]);
            let mut hatf = hatf.stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random >> 49));
            hatf.kill().unwrap();
            hatf.wait().unwrap();
            running.works();
        }
        running.ends();
    }
}

/// If a program limits its address space, the recorder releases addresses, and the program maps memory there. Attaching
/// again leaves that memory unchanged.
#[test]
fn memory_of_the_program_where_stacks_were() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "place", &["-O1", "-fno-builtin"]) else { return };
    let mut first = Command::new(env!("CARGO_BIN_EXE_hatf"));
    first.args(["record", "-q", "--stacks", "-o", &folder.path("first.mtf"), "--"]).arg(&program);
    let mut running = Running::start(&mut first);
    running.works();
    let children = format!("/proc/{0}/task/{0}/children", running.id());
    let Ok(children) = std::fs::read_to_string(children) else { return skip("the kernel does not list children") };
    let process = children.trim().to_owned();
    // SAFETY: this child has not been waited for.
    unsafe { libc::kill(running.child.id().cast_signed(), libc::SIGKILL) };
    let recording = Recording::of(&process, &folder.path("second.mtf"), &["--stacks"]);
    running.works();
    recording.interrupted();
    running.works();
    let recording = Recording::of(&process, &folder.path("third.mtf"), &["--stacks"]);
    drop(running.child.stdin.take());
    let mut rest = String::new();
    running.answers.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "0 damaged\n");
    let Recording { mut child, .. } = recording;
    child.wait().unwrap();
}

/// If `hatf` is interrupted at any time while attaching, even while a thread of the process calls functions for it, the
/// process continues and can load libraries.
#[test]
fn interrupted_while_it_attaches() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let (trace, spools) = (folder.path("trace.mtf"), folder.path("spools"));
    std::fs::create_dir(&spools).unwrap();
    let mut random = u64::from(std::process::id());
    for _ in 0..12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        hatf.args(["record", "-q", "--pid", &running.id(), "-o", &trace, "--spool", &spools]).stderr(Stdio::null());
        // A shell may have started the tests with the signal ignored, which would lose it before `hatf` handles it.
        // SAFETY: `signal` may be called between fork and exec.
        unsafe {
            hatf.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut hatf = hatf.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random >> 47));
        // SAFETY: this child has not been waited for.
        unsafe { libc::kill(hatf.id().cast_signed(), libc::SIGINT) };
        hatf.wait().unwrap();
        running.works();
        for (command, answer) in [("load", "loaded\n"), ("unload", "unloaded\n")] {
            writeln!(running.child.stdin.as_mut().unwrap(), "{command}").unwrap();
            assert_eq!(running.answer(), answer);
        }
    }
    assert_eq!(std::fs::read_dir(&spools).unwrap().count(), 0);
    let recording = Recording::of(&running.id(), &trace, &[]);
    running.works();
    recording.interrupted();
    assert_eq!(found(&trace).blocks, ROUND);
    running.ends();
}

/// If a statically linked allocator holds its lock nearly always, recording is refused, and the process loads libraries
/// as before.
#[test]
fn an_allocator_that_is_locked() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "locked_allocator", &["-rdynamic"]) else { return };
    let counter = folder.path("loads");
    let loads = || u64::from_ne_bytes(std::fs::read(&counter).unwrap().try_into().unwrap());
    let loads_more = || {
        let (begun, before) = (Instant::now(), loads());
        while begun.elapsed() < PATIENCE && loads() < before + 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        loads() >= before + 2
    };
    // A sleeping thread, too, may be in its allocator at every attempt.
    let by_allocator = "its allocator, which is in ";
    for (what, reasons) in
        [("sleeps", &[" did not return in thread ", by_allocator][..]), ("computes", &[by_allocator])]
    {
        std::fs::write(&counter, [0; 8]).unwrap();
        let mut child = Command::new(&program).args([what, &counter]).spawn().unwrap();
        assert!(loads_more());
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        hatf.args(["record", "--pid", &child.id().to_string(), "-o", &folder.path("trace.mtf")]);
        let mut hatf = hatf.stderr(Stdio::piped()).spawn().unwrap();
        let mut refused = String::new();
        let mut messages = BufReader::new(hatf.stderr.take().unwrap());
        while messages.read_line(&mut refused).unwrap() > 0 && !refused.contains("recording process") {}
        let goes_on = loads_more();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(hatf.wait().unwrap().code(), Some(125), "{what}: {refused}");
        assert!(reasons.iter().any(|why| refused.contains(why)), "{refused}");
        assert!(refused.contains("start the program with `hatf record`"), "{refused}");
        assert!(goes_on, "{what}: {refused}");
    }
}

/// A thread in `vfork` cannot be stopped. Recording begins after its child has ended, or is refused for that reason.
#[test]
fn a_program_in_vfork() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "vforks", &[]) else { return };
    let trace = folder.path("trace.mtf");
    let running = Running::start(Command::new(&program).arg("1000"));
    Recording::of(&running.id(), &trace, &[]).interrupted();
    running.ends();
    let running = Running::start(Command::new(&program).arg("20000"));
    let refused = hatf(["record", "--pid", &running.id(), "-o", &trace]).exits(125).err;
    let child = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id())).unwrap_or_default();
    assert!(refused.contains("is in vfork or posix_spawn") && refused.contains(child.trim()), "{refused}");
    if let Ok(child) = child.trim().parse() {
        // SAFETY: the child of a program that waits for it.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    running.ends();
}

/// Attaching leaves the memory below a nearly exhausted stack unchanged.
#[test]
fn a_stack_without_room() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "low_stack", &["-Wl,-z,now"]) else { return };
    let running = Running::start(&mut Command::new(program));
    Recording::of(&running.id(), &folder.path("trace.mtf"), &[]).interrupted();
    running.ends();
}

/// A program that keeps the addresses of hooks may call them before and after a recording. These calls are not
/// recorded, and no live address is recorded twice.
#[test]
fn hooks_that_the_program_keeps() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "kept_hooks", &[]) else { return };
    let mut running = Running::start(&mut Command::new(program));
    let trace = folder.path("trace.mtf");
    for number in 0..4 {
        let recording = Recording::of(&running.id(), &trace, &[]);
        if number == 0 {
            writeln!(running.child.stdin.as_mut().unwrap(), "keep").unwrap();
            assert_eq!(running.answer(), "a hook\n");
        }
        std::thread::sleep(Duration::from_millis(20));
        recording.interrupted();
        writeln!(running.child.stdin.as_mut().unwrap(), "hooks").unwrap();
        assert_eq!(running.answer(), "0 hooks\n");
        let found = found(&trace);
        assert!(found.blocks > 100 && found.twice == 0, "{number}: {found:?}");
    }
    running.ends();
}

/// A shell script ignores interrupts in its background commands, but `hatf` handles an interrupt sent to it. It does
/// ignore a hangup that `nohup` ignores.
#[test]
fn an_interrupt_that_a_shell_ignores() {
    let folder = Folder::new();
    let Some(mut program) = program(&folder, "attached") else { return };
    let mut running = Running::start(&mut program);
    let trace = folder.path("trace.mtf");
    let script = "trap '' INT QUIT HUP; exec \"$0\" record --pid \"$1\" -o \"$2\"";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_hatf"), &running.id(), &trace]);
    let recording = Recording::by(&mut shell);
    recording.gets(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(100));
    running.works();
    recording.interrupted();
    assert_eq!(found(&trace).blocks, ROUND);
    running.ends();
}
