//! If the program, `hatf record` or both are killed at a random time, the trace contains every event up to the last of
//! each thread.
//!
//! `METATF_KILLS` is the number of kills of each kind.
#![expect(clippy::unwrap_used)]

use crate::common::invariants;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{compiled_from, hatf};
use hatf_trace::event::Call;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, PATIENCE, skip};

/// Threads of the program.
const THREADS: usize = 3;
/// Size that the first thread requests. The other threads use the sizes after it.
const SIZE: u64 = 7001;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Program,
    Recorder,
    Both,
}

/// Compiles the program.
fn program(folder: &Folder) -> PathBuf {
    let out = folder.join("heap");
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let mut command = Command::new(if rustc.exists() { rustc } else { "rustc".into() });
    command.args(["--edition=2024", "-O", "-o"]).arg(&out);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/heap.rs"));
    assert!(command.status().unwrap().success());
    out
}

/// Reads the progress that the program reports: its process ID, and the number of blocks of each thread.
fn progress(path: &Path) -> (i32, Vec<u64>) {
    let bytes = fs::read(path).unwrap();
    let word = |n: usize| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().unwrap());
    (i32::try_from(word(0)).unwrap(), (1..=THREADS).map(word).collect())
}

fn kill(process: u32) {
    // SAFETY: a child that has not been waited for, or its child, which only this test ends.
    unsafe { libc::kill(i32::try_from(process).unwrap(), libc::SIGKILL) };
}

fn is_there(process: i32) -> bool {
    // A zombie counts as gone.
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Waits until the condition holds.
fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of mallocs of each thread's size. Checks that blocks begin at addresses without a live block, and
/// that only live blocks end.
fn mallocs(trace: &Path, stacks: bool) -> Vec<u64> {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut counts, mut live) = (vec![0; THREADS], HashSet::new());
    let mut number = 0;
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        number += 1;
        if let EventKind::Call(_) = event.kind {
            assert_eq!(!event.stack.is_empty(), stacks, "event {number}: {event:?}");
        }
        match event.kind {
            EventKind::Call(Call { size, old, address, .. })
            | EventKind::ReallocEnd(Call { size, old, address, .. }) => {
                assert!(old == 0 || live.remove(&old), "event {number}: {event:?}");
                assert!(address == 0 || live.insert(address), "event {number}: {event:?}");
                if let Some(count) = size.checked_sub(SIZE).and_then(|n| counts.get_mut(usize::try_from(n).unwrap())) {
                    *count += 1;
                }
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                assert!(live.remove(&address), "event {number}: {event:?}");
            }
            // Each thread may lose the event it was writing.
            EventKind::Lost { events } => assert!(events <= THREADS as u64, "event {number}: {event:?}"),
            _ => {}
        }
    }
    counts
}

/// Kills once. Returns the number of blocks that the program allocated. If `rotates`, the trace consists of segments.
fn once(program: &Path, kind: Kind, delay: Duration, rotates: bool) -> u64 {
    let folder = Folder::new();
    let (mut trace, words, spools) = (folder.join("trace.mtf"), folder.join("progress"), folder.join("spools"));
    fs::write(&words, [0; 4096]).unwrap();
    fs::create_dir(&spools).unwrap();
    // Every other recording has stacks.
    let stacks = cfg!(target_arch = "x86_64") && delay.as_micros().is_multiple_of(2);
    let mut recorder: Child = Command::new(env!("CARGO_BIN_EXE_hatf"))
        // With small groups, parts of the trace are written and chunks are reused while the program runs.
        .args(["record", "--quiet", "--group", "5000"])
        .args(stacks.then_some("--stacks"))
        .args(rotates.then_some("--rotate=64KiB"))
        .arg("--spool")
        .arg(&spools)
        .arg("-o")
        .arg(&trace)
        .arg("--")
        .arg(program)
        .arg("progress")
        .arg(&words)
        .arg(THREADS.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the program has not begun", || progress(&words).0 != 0);
    std::thread::sleep(delay);
    let process = u32::try_from(progress(&words).0).unwrap();
    match kind {
        Kind::Program => kill(process),
        Kind::Recorder => {
            recorder.kill().unwrap();
            // The program continues and is recorded.
            std::thread::sleep(delay / 4);
            kill(process);
        }
        Kind::Both => {
            kill(process);
            recorder.kill().unwrap();
        }
    }
    let status = recorder.wait().unwrap();
    until("the program has not ended", || !is_there(process.cast_signed()));
    let (_, done) = progress(&words);
    // A recorder may finish before it is killed.
    let finished = status.code().is_some();
    assert!(kind == Kind::Both || finished == (kind == Kind::Program), "{kind:?}: {status}");
    if finished {
        assert_eq!(status.code(), Some(137));
        assert_eq!(fs::read_dir(&spools).unwrap().count(), 0);
    } else {
        let spool = fs::read_dir(&spools).unwrap().next().unwrap().unwrap().path();
        let recovered = Command::new(env!("CARGO_BIN_EXE_hatf")).arg("recover").arg(&spool).output().unwrap();
        let message = String::from_utf8(recovered.stderr).unwrap();
        assert!(recovered.status.success(), "{message}");
        let lost: usize =
            message.trim_end().strip_suffix(" lost").and_then(|text| text.rsplit(' ').next()?.parse().ok()).unwrap();
        assert!(lost <= THREADS, "{message}");
        // The name differs if `hatf` was killed before its trace identified the recording.
        let (_, named) = message.split_once(" records in ").unwrap();
        trace = named.split_once(", ").unwrap().0.into();
        if rotates {
            trace.pop();
        }
        assert!(!spool.exists());
    }
    if rotates {
        let names = fs::read_dir(&trace).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(names.filter(|name| name.extension().is_none_or(|extension| extension != "mtf")).count(), 0);
    }
    let found = mallocs(&trace, stacks);
    assert_eq!(invariants::broken(&trace), [""; 0], "{kind:?} after {delay:?}");
    for (found, done) in found.iter().zip(&done) {
        // One more block may be recorded that the program has not yet counted.
        assert!((*done..=*done + 1).contains(found), "{kind:?} after {delay:?}: {found} of {done} blocks");
    }
    done.iter().sum()
}

#[test]
fn nothing_that_was_recorded_is_lost() {
    let folder = Folder::new();
    let program = program(&folder);
    let times: u64 = std::env::var("METATF_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut random = u64::from(std::process::id()) << 32 | 0x9e37_79b9;
    let kinds = [Kind::Program, Kind::Recorder, Kind::Both];
    for (kind, rotates) in kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let mut blocks = 0;
        // A recording that lasts longer has several segments.
        let longest = if rotates { 80_000 } else { 8_000 };
        for _ in 0..times {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            blocks += once(&program, kind, Duration::from_micros(random % longest), rotates);
        }
        println!("{kind:?}, rotated: {rotates}: {times} kills, {blocks} blocks, none missing");
    }
}

/// A memory cgroup, which is removed on drop.
struct MemoryCgroup(PathBuf);

impl MemoryCgroup {
    /// Creates a cgroup with a limit. Returns `None` if this user cannot create one.
    fn new(limit: &str) -> Option<Self> {
        let name = format!("hatf-test-{}", std::process::id());
        let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        places.into_iter().find_map(|(mount, file)| {
            let folder = Path::new(mount).join(&name);
            fs::create_dir(&folder).ok()?;
            let cgroup = Self(folder);
            fs::write(cgroup.0.join(file), limit).ok().map(|()| cgroup)
        })
    }

    /// Returns a command that runs in the cgroup.
    fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let enter = format!("echo $$ > {} && exec \"$@\"", self.0.join("cgroup.procs").display());
        let mut command = Command::new("sh");
        command.args(["-c", &enter, "sh", env!("CARGO_BIN_EXE_hatf")]).args(words);
        command
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        let begun = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// After an OOM kill, the trace shows the heap at the end, even if `hatf record` was killed, too, and only the spool on a
/// volume remains.
#[test]
fn the_oom_killer() {
    let folder = Folder::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/samples/cache.c");
    let Some(program) = compiled_from(source.as_ref(), &folder, "cache", &[]) else { return };
    let Some(cgroup) = MemoryCgroup::new("100663296") else { return skip("no permission to create a cgroup") };
    let (program, trace, volume) = (program.to_str().unwrap(), folder.path("cache.mtf"), folder.path("volume"));
    fs::create_dir(&volume).unwrap();
    let record = ["record", "-q", "--stacks", "--spool", &volume, "-o", &trace, "--", program];
    assert_eq!(cgroup.command(record).status().unwrap().code(), Some(128 + libc::SIGKILL));
    let report = hatf(["report", &trace]).exits(0).text();
    let killed = "Killed by the kernel's OOM killer after ";
    assert!(report.contains(killed) && report.contains("; its cgroup is limited to 96.0 MiB."), "{report}");
    assert!(!report.contains("never freed;"), "{report}");
    let live = |report: &str| {
        let (_, rest) = report.split_once("At most ").unwrap();
        rest.split_once(" MiB were live").unwrap().0.parse::<f64>().unwrap()
    };
    assert!((60.0..96.0).contains(&live(&report)), "{report}");

    let mut recorder = cgroup.command(record).spawn().unwrap();
    let begun = Instant::now();
    let children = format!("/proc/{0}/task/{0}/children", recorder.id());
    let program = loop {
        let child = fs::read_to_string(&children).unwrap_or_default();
        let child = child.split_whitespace().next().and_then(|child| child.parse().ok());
        if let Some(child) = child.filter(|_| begun.elapsed() > Duration::from_millis(500)) {
            break child;
        }
        assert!(begun.elapsed() < PATIENCE, "the program did not start");
        std::thread::sleep(Duration::from_millis(10));
    };
    kill(recorder.id());
    recorder.wait().unwrap();
    while is_there(program) {
        assert!(begun.elapsed() < PATIENCE, "the program was not killed");
        std::thread::sleep(Duration::from_millis(10));
    }
    let spool = fs::read_dir(&volume).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let recovered = folder.path("recovered.mtf");
    hatf(["recover", spool.to_str().unwrap(), "-o", &recovered]);
    let report = hatf(["report", &recovered]).exits(0).text();
    assert!((60.0..96.0).contains(&live(&report)), "{report}");
    assert!(report.contains("it does not show how the program ended"), "{report}");
}
