//! Recordings of real programs: every function, threads, fork, exec, signals, and all ways to end.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hatf_host::record::{Outcome, record};
use hatf_trace::event::{Call, Function, Tee, UserMetadata};
use hatf_trace::forms::TraceReader;
use hatf_trace::hatf10::Hatf10Writer;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::trace;
use hatf_trace::{Event, EventKind, EventSink, Result};
use metatf::container::WriteOptions;

/// A copied event with its name.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    kind: EventKind<'static>,
    name: String,
    time: u64,
    thread: u64,
    heap: u64,
}

#[derive(Default)]
struct Keep {
    events: Vec<Kept>,
    comments: Vec<String>,
    user_metadata: UserMetadata,
}

impl EventSink for Keep {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let Event { kind, time, thread, heap, stack, attributes } = *event;
        assert!(stack.is_empty() && attributes.is_empty());
        let (kind, name): (EventKind<'static>, &[u8]) = match kind {
            EventKind::Image { process, path } => (EventKind::Image { process, path: b"" }, path),
            EventKind::Call(call) => (EventKind::Call(call), b""),
            EventKind::Free { address } => (EventKind::Free { address }, b""),
            EventKind::ReallocBegin { old } => (EventKind::ReallocBegin { old }, b""),
            EventKind::ReallocEnd(call) => (EventKind::ReallocEnd(call), b""),
            EventKind::Failed(call) => (EventKind::Failed(call), b""),
            EventKind::ThreadStart { creator, task } => (EventKind::ThreadStart { creator, task }, b""),
            EventKind::ThreadEnd => (EventKind::ThreadEnd, b""),
            EventKind::ThreadName { name } => (EventKind::ThreadName { name: b"" }, name),
            EventKind::Exit { status } => (EventKind::Exit { status }, b""),
            EventKind::Killed { signal } => (EventKind::Killed { signal }, b""),
            other => panic!("{other:?} is not recorded"),
        };
        let name = String::from_utf8(name.to_vec()).unwrap();
        self.events.push(Kept { kind, name, time, thread, heap });
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.comments.push(String::from_utf8(text.to_vec()).unwrap());
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.user_metadata.extend(user_metadata.clone());
        Ok(())
    }
}

/// Compiles the program in `tests/programs` once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/heap.rs");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap");
        // If each test has its own process, several may compile at the same time.
        let folder = out.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&folder).expect("a folder");
        let own = folder.join("heap");
        let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
        let mut command = Command::new(if rustc.exists() { rustc } else { "rustc".into() });
        command.args(["--edition=2024", "-o"]).arg(&own).arg(source);
        assert!(command.status().expect("rustc").success());
        std::fs::rename(own, &out).expect("the program");
        let _ = std::fs::remove_dir_all(folder);
        out
    })
}

fn run_command(command: &[OsString]) -> (Outcome, Keep) {
    let mut keep = Keep::default();
    let outcome = record(command, &mut keep).unwrap();
    assert!(outcome.recorded.sink_error.is_none());
    assert_eq!(outcome.recorded.lost, 0);
    (outcome, keep)
}

fn run(arguments: &[&str]) -> (Outcome, Keep) {
    let mut command = vec![OsString::from(program())];
    command.extend(arguments.iter().map(OsString::from));
    let (outcome, keep) = run_command(&command);
    keep.check();
    (outcome, keep)
}

impl Keep {
    /// Checks that no block begins at the address of a live one, and that only live blocks are freed.
    fn check(&self) {
        let mut live: HashSet<u64> = HashSet::new();
        for event in &self.events {
            match event.kind {
                EventKind::Call(Call { old, address, .. }) => {
                    assert!(old == 0 || live.remove(&old), "{event:?}");
                    assert!(address == 0 || live.insert(address), "{event:?}");
                }
                EventKind::ReallocEnd(Call { address, .. }) => assert!(live.insert(address), "{event:?}"),
                EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                    assert!(live.remove(&address), "{event:?}");
                }
                EventKind::Image { .. } => live.clear(),
                _ => {}
            }
        }
    }

    fn calls(&self) -> impl Iterator<Item = (&Kept, Call)> {
        self.events.iter().filter_map(|kept| match kept.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => Some((kept, call)),
            _ => None,
        })
    }

    /// Returns the calls with this size.
    fn of_size(&self, wanted: u64) -> Vec<Call> {
        self.calls().map(|(_, call)| call).filter(|call| call.size == wanted).collect()
    }

    fn count(&self, of: impl Fn(&EventKind<'static>) -> bool) -> usize {
        self.events.iter().filter(|kept| of(&kept.kind)).count()
    }

    fn images(&self) -> usize {
        self.count(|kind| matches!(kind, EventKind::Image { .. }))
    }

    fn thread_starts(&self) -> usize {
        self.count(|kind| matches!(kind, EventKind::ThreadStart { .. }))
    }

    fn thread_ends(&self) -> usize {
        self.count(|kind| *kind == EventKind::ThreadEnd)
    }
}

#[test]
fn every_function() {
    let (outcome, keep) = run(&["calls"]);
    assert_eq!(outcome.exit_code(), 0);
    use Function::{AlignedAlloc, Calloc, Malloc, Memalign, PosixMemalign, Pvalloc, Realloc, Reallocarray, Valloc};
    // Size, function, detail, and whether the function was given a block.
    let expected = [
        (1_000_001, Malloc, 0, false),
        (3_000_006, Calloc, 3, false),
        (5_000_015, Reallocarray, 5, false),
        (1_000_004, Realloc, 0, false),
        (1_000_005, Memalign, 64, false),
        (1_000_006, PosixMemalign, 128, false),
        (1_000_192, AlignedAlloc, 256, false),
        (1_000_007, Valloc, 0, false),
        (1_000_008, Pvalloc, 0, false),
        (2_000_001, Realloc, 0, true),
        (14_000_021, Reallocarray, 7, true),
    ];
    for (size, function, detail, given) in expected {
        let of_size = keep.of_size(size);
        let found: Vec<_> = of_size.iter().map(|call| (call.function, call.detail, call.old != 0)).collect();
        assert_eq!(found, [(function, detail, given)], "size {size}");
    }
    assert_eq!(keep.of_size(0).iter().filter(|call| call.old_is_gone() && call.address == 0).count(), 1);
    assert_eq!(keep.count(|kind| matches!(kind, EventKind::Failed(_))), 3);
    let image = keep.events.iter().find(|kept| matches!(kept.kind, EventKind::Image { .. })).unwrap();
    assert!(image.name.ends_with("/heap"), "{image:?}");
    assert_eq!(keep.images(), 1);
    assert_eq!(keep.events.last().unwrap().kind, EventKind::Exit { status: 0 });
    let command = keep.user_metadata["command"].as_array().unwrap();
    assert_eq!(command.last().unwrap(), "calls");
    assert_eq!(keep.user_metadata["lost"], 0);
}

#[test]
fn threads_and_the_order_of_their_events() {
    let (outcome, keep) = run(&["threads", "4", "40000"]);
    assert_eq!((outcome.exit_code(), outcome.recorded.images), (0, 1));
    assert_eq!((keep.thread_starts(), keep.thread_ends()), (5, 4));
    let threads: HashSet<u64> = keep.events.iter().map(|kept| kept.thread).collect();
    assert_eq!(threads, HashSet::from([1, 2, 3, 4, 5]));
    // A thread has no events before its start.
    let mut begun = HashSet::new();
    for kept in &keep.events {
        if matches!(kept.kind, EventKind::ThreadStart { .. }) {
            begun.insert(kept.thread);
        }
        assert!(begun.contains(&kept.thread), "{kept:?}");
    }
    let mallocs = keep.calls().filter(|(kept, call)| kept.thread > 1 && call.function == Function::Malloc);
    assert!(mallocs.count() >= 160_000);
    assert!(keep.events.iter().all(|kept| kept.time < 600_000_000_000));
}

#[test]
fn a_thread_that_calls_pthread_exit() {
    let (outcome, keep) = run(&["pthread_exit"]);
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(keep.of_size(1_000_001).len(), 1);
    assert_eq!((keep.thread_starts(), keep.thread_ends()), (2, 1));
}

#[test]
fn a_forked_child_is_not_recorded() {
    let (outcome, keep) = run(&["fork", "3"]);
    assert_eq!((outcome.exit_code(), outcome.not_followed.count), (0, 3));
    assert_eq!(keep.of_size(1_000_001).len(), 3);
    assert_eq!(keep.of_size(1_000_002).len(), 3);
    assert_eq!(keep.of_size(3_000_001).len(), 0);
    let (_, keep) = run(&["raw_fork"]);
    assert_eq!(keep.of_size(1_000_002).len(), 1);
    assert_eq!(keep.of_size(3_000_001).len(), 0);
}

#[test]
fn an_image_that_execs_another() {
    let (outcome, keep) = run(&["exec", "3"]);
    assert_eq!((outcome.exit_code(), outcome.recorded.images), (0, 4));
    for (image, size) in (1..).zip([1_000_004, 1_000_003, 1_000_002, 1_000_001]) {
        let (kept, _) = keep.calls().find(|(_, call)| call.size == size).unwrap();
        assert_eq!(kept.heap, image);
    }
    assert_eq!((keep.images(), keep.thread_starts()), (4, 1));
}

#[test]
fn signal_handlers() {
    let (_, keep) = run(&["signal"]);
    assert_eq!(keep.of_size(1_000_003).len(), 10);
    let (outcome, keep) = run(&["timer"]);
    assert_eq!(outcome.exit_code(), 0);
    assert!(keep.of_size(100).len() >= 300_000);
    let failed =
        |kind: &EventKind<'_>| matches!(kind, EventKind::Failed(call) if call.function == Function::Reallocarray);
    assert!(keep.count(failed) > 0);
}

#[test]
fn every_way_to_end() {
    let (exit, abort, kill) =
        (EventKind::Exit { status: 7 }, EventKind::Killed { signal: 6 }, EventKind::Killed { signal: 9 });
    for (mode, code, end) in [("_exit", 7, exit), ("abort", 134, abort), ("kill", 137, kill)] {
        let (outcome, keep) = run(&[mode]);
        assert_eq!(outcome.exit_code(), code, "{mode}");
        assert_eq!(keep.of_size(1_000_001).len(), 1, "{mode}");
        assert_eq!(keep.events.last().unwrap().kind, end, "{mode}");
    }
}

#[test]
fn more_events_than_the_ring_holds() {
    let (outcome, keep) = run(&["pairs", "500000"]);
    assert_eq!(outcome.exit_code(), 0);
    assert!(keep.of_size(64).len() >= 500_000);
}

/// With either DTD, the events read from a trace are those written to it, in order.
#[test]
fn a_trace_and_back() {
    let folder = metatf_test::Folder::new();
    let paths = ["heap.mtf", "hatf10.mtf"].map(|name| folder.join(name));
    let mut keep = Keep::default();
    let [mut one, mut other] = paths.each_ref().map(|path| trace::create(path).unwrap());
    let mut heap = HeapWriter::new(&mut one, &HeapOptions::default()).unwrap();
    let mut hatf10 = Hatf10Writer::new(&mut other, &WriteOptions::default()).unwrap();
    let command = [program().into(), "threads".into(), "3".into(), "20000".into()];
    record(&command, &mut Tee(&mut keep, &mut Tee(&mut heap, &mut hatf10))).unwrap();
    for losses in [heap.finish().unwrap(), hatf10.finish().unwrap()] {
        assert!(losses.is_empty(), "{losses}");
    }
    for (path, file) in paths.iter().zip([one, other]) {
        assert_eq!(trace::written(file, path).unwrap(), path.metadata().unwrap().len());
        let mut again = Keep::default();
        hatf_trace::copy(&mut TraceReader::open(path).unwrap(), &mut again).unwrap();
        assert_eq!(keep.events.len(), again.events.len());
        for (kept, read) in keep.events.iter().zip(&again.events) {
            // Threads in HATF 1.0 have no heap.
            let heap = if read.heap == 0 { 0 } else { kept.heap };
            assert_eq!(Kept { heap, ..kept.clone() }, *read);
        }
    }
}

/// A sink that fails, as on a full disk.
struct Full(u32);

impl EventSink for Full {
    fn event(&mut self, _: &Event<'_>) -> Result<()> {
        self.0 += 1;
        if self.0 > 100 { Err(hatf_trace::Error::Trace("full".into())) } else { Ok(()) }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_failing_sink_does_not_stop_the_program() {
    let command = [program().into(), "pairs".into(), "1000000".into()];
    let outcome = record(&command, &mut Full(0)).unwrap();
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.recorded.sink_error.unwrap().to_string(), "full");
}

/// A sink that panics.
struct Faulty;

impl EventSink for Faulty {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if matches!(event.kind, EventKind::Call(_)) { panic!("a fault of the sink") } else { Ok(()) }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_of_a_sink_reaches_who_records() {
    let command = [program().into(), "pairs".into(), "1000000".into()];
    let panic = std::panic::catch_unwind(|| record(&command, &mut Faulty)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"a fault of the sink"));
}

#[test]
fn a_program_that_is_not_there() {
    let error = record(&["/no/such/program".into()], &mut Keep::default()).unwrap_err();
    assert!(matches!(error, hatf_trace::Error::Start(..)));
}

#[test]
fn a_shell_script_with_children() {
    let shell = Path::new("/bin/sh");
    if !shell.exists() {
        metatf_test::skip("no /bin/sh on this machine");
        return;
    }
    let script = "ls / > /dev/null; ls / > /dev/null; exit 3";
    let (outcome, keep) = run_command(&["/bin/sh".into(), "-c".into(), script.into()]);
    keep.check();
    assert_eq!((outcome.exit_code(), outcome.recorded.images), (3, 1));
    assert!(outcome.not_followed.count >= 2, "{outcome:?}");
}
