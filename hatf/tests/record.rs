//! Programs recorded for real: every function, threads, fork, exec, signals, and all ways to end.
#![expect(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hatf::record::{Outcome, record};
use hatf::trace::{TraceReader, TraceWriter};
use hatf::{EventSink, Record, Result, Tee, What};

/// A record with its attributes, kept.
#[derive(Debug)]
struct Kept {
    what: What,
    time: u64,
    thread: u64,
    heap: u64,
    attributes: String,
}

#[derive(Default)]
struct Keep {
    records: Vec<Kept>,
    comments: Vec<String>,
}

impl EventSink for Keep {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let Record { what, time, thread, heap, attributes } = *record;
        let attributes = String::from_utf8(attributes.to_vec()).unwrap();
        self.records.push(Kept { what, time, thread, heap, attributes });
        Ok(())
    }

    fn comment(&mut self, text: &str) -> Result<()> {
        self.comments.push(text.to_owned());
        Ok(())
    }
}

/// The program of `tests/programs`, compiled once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/heap.rs");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap");
        let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
        let mut command = Command::new(if rustc.exists() { rustc } else { "rustc".into() });
        command.args(["--edition=2024", "-o"]).arg(&out).arg(source);
        assert!(command.status().expect("rustc").success());
        out
    })
}

fn run_command(command: &[OsString]) -> (Outcome, Keep) {
    let mut keep = Keep::default();
    let outcome = record(command, &mut keep).unwrap();
    assert!(outcome.sink_error.is_none());
    assert_eq!(outcome.lost, 0);
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
    /// No block begins where one is live; each free is of a live block.
    fn check(&self) {
        let mut live: HashMap<u64, u64> = HashMap::new();
        for record in &self.records {
            match record.what {
                What::Alloc { address, .. } => {
                    assert_eq!(live.insert(address, record.heap), None, "{record:?}");
                }
                What::Free { address } => {
                    assert!(live.remove(&address).is_some(), "{record:?}");
                }
                What::Realloc { old, address } => {
                    assert!(live.remove(&old).is_some(), "{record:?}");
                    assert_eq!(live.insert(address, record.heap), None, "{record:?}");
                }
                What::DestroyHeap => live.retain(|_, heap| *heap != record.heap),
                _ => {}
            }
        }
    }

    /// The attributes of the allocs and reallocs of a size.
    fn of_size(&self, wanted: u64) -> Vec<&str> {
        let of_size = self.records.iter().filter(|record| match record.what {
            What::Alloc { size, .. } => size == wanted,
            What::Realloc { .. } => record.attributes.ends_with(&format!("size={wanted}")),
            _ => false,
        });
        of_size.map(|record| record.attributes.as_str()).collect()
    }

    fn names(&self, name: &str) -> usize {
        self.records.iter().filter(|record| record.what.name() == name).count()
    }
}

#[test]
fn every_function() {
    let (outcome, keep) = run(&["calls"]);
    assert_eq!(outcome.exit_code(), 0);
    let expected = [
        (1_000_001, ""),
        (3_000_006, "calloc count=3"),
        (5_000_015, "reallocarray count=5"),
        (1_000_004, "realloc"),
        (1_000_005, "memalign align=64"),
        (1_000_006, "posix_memalign align=128"),
        (1_000_192, "aligned_alloc align=256"),
        (1_000_007, "valloc"),
        (1_000_008, "pvalloc"),
        (2_000_001, "size=2000001"),
        (14_000_021, "reallocarray count=7 size=14000021"),
    ];
    for (size, attributes) in expected {
        assert_eq!(keep.of_size(size), [attributes], "size {size}");
    }
    let to_zero = keep.records.iter().filter(|r| matches!(r.what, What::Free { .. }));
    assert_eq!(to_zero.filter(|r| r.attributes == "realloc").count(), 1);
    let failed: Vec<_> = keep.comments.iter().filter(|text| text.contains(" failed: ")).collect();
    assert_eq!(failed.len(), 3, "{failed:?}");
    assert!(keep.comments.iter().any(|text| text.ends_with("heap calls")));
    assert_eq!(keep.names("createHeap"), 1);
    assert!(keep.records.last().unwrap().attributes.starts_with("exit=0 "));
}

#[test]
fn threads_and_the_order_of_their_events() {
    let (outcome, keep) = run(&["threads", "4", "40000"]);
    assert_eq!((outcome.exit_code(), outcome.images), (0, 1));
    assert_eq!(keep.names("createThread"), 5);
    assert_eq!(keep.names("destroyThread"), 4);
    let threads: HashSet<u64> = keep.records.iter().map(|record| record.thread).collect();
    assert_eq!(threads, HashSet::from([1, 2, 3, 4, 5]));
    // Nothing of a thread comes before its beginning.
    let mut begun = HashSet::new();
    for record in &keep.records {
        if record.what == What::CreateThread {
            begun.insert(record.thread);
        }
        assert!(begun.contains(&record.thread), "{record:?}");
    }
    let allocs = keep.records.iter().filter(|r| r.thread > 1 && r.attributes.is_empty());
    assert!(allocs.filter(|r| matches!(r.what, What::Alloc { .. })).count() >= 160_000);
    assert!(keep.records.iter().all(|r| r.time < 600_000_000_000));
}

#[test]
fn a_thread_that_calls_pthread_exit() {
    let (outcome, keep) = run(&["pthread_exit"]);
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(keep.of_size(1_000_001).len(), 1);
    assert_eq!((keep.names("createThread"), keep.names("destroyThread")), (2, 1));
}

#[test]
fn a_forked_child_is_not_recorded() {
    let (outcome, keep) = run(&["fork", "3"]);
    assert_eq!((outcome.exit_code(), outcome.children), (0, 3));
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
    assert_eq!((outcome.exit_code(), outcome.images), (0, 4));
    for (image, size) in (1..).zip([1_000_004, 1_000_003, 1_000_002, 1_000_001]) {
        let record = keep.records.iter().find(|r| matches!(r.what, What::Alloc { size: s, .. } if s == size));
        assert_eq!(record.unwrap().heap, image);
    }
    assert_eq!((keep.names("createHeap"), keep.names("destroyHeap")), (4, 4));
    assert_eq!(keep.names("createThread"), 1);
}

#[test]
fn signal_handlers() {
    let (_, keep) = run(&["signal"]);
    assert_eq!(keep.of_size(1_000_003).len(), 10);
    let (outcome, keep) = run(&["timer"]);
    assert_eq!(outcome.exit_code(), 0);
    assert!(keep.of_size(100).len() >= 300_000);
    assert!(keep.comments.iter().any(|text| text.starts_with("reallocarray of ")));
}

#[test]
fn every_way_to_end() {
    for (mode, code, end) in [("_exit", 7, "exit=7"), ("abort", 134, "signal=6"), ("kill", 137, "signal=9")] {
        let (outcome, keep) = run(&[mode]);
        assert_eq!(outcome.exit_code(), code, "{mode}");
        assert_eq!(keep.of_size(1_000_001).len(), 1, "{mode}");
        assert!(keep.records.last().unwrap().attributes.starts_with(end), "{mode}");
    }
}

#[test]
fn more_events_than_the_ring_holds() {
    let (outcome, keep) = run(&["pairs", "500000"]);
    assert_eq!(outcome.exit_code(), 0);
    assert!(keep.of_size(64).len() >= 500_000);
}

/// What is written is read again: records, in order, but for the fields that HATF 1.0 does not have.
#[test]
fn a_trace_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.mtf");
    let (mut keep, mut again) = (Keep::default(), Keep::default());
    let mut trace = TraceWriter::create(&path).unwrap();
    let command = [program().into(), "threads".into(), "3".into(), "20000".into()];
    record(&command, &mut Tee(&mut keep, &mut trace)).unwrap();
    let written = trace.finish().unwrap();
    assert_eq!(written.bytes, path.metadata().unwrap().len());
    hatf::copy(&mut TraceReader::open(&path).unwrap(), &mut again).unwrap();
    assert_eq!(keep.comments, again.comments);
    assert_eq!(keep.records.len(), again.records.len());
    for (kept, read) in keep.records.iter().zip(&again.records) {
        assert_eq!((kept.what, kept.thread), (read.what, read.thread));
        assert_eq!(kept.attributes, read.attributes);
        if !kept.attributes.contains("time=") {
            assert_eq!((kept.time, kept.heap), (read.time, read.heap));
        }
    }
}

/// A sink that fails, as on a full disk.
struct Full(u32);

impl EventSink for Full {
    fn record(&mut self, _: &Record<'_>) -> Result<()> {
        self.0 += 1;
        if self.0 > 100 { Err(hatf::Error::Trace("full".into())) } else { Ok(()) }
    }

    fn comment(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_failing_sink_does_not_stop_the_program() {
    let command = [program().into(), "pairs".into(), "1000000".into()];
    let outcome = record(&command, &mut Full(0)).unwrap();
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.sink_error.unwrap().to_string(), "full");
}

#[test]
fn a_program_that_is_not_there() {
    let error = record(&["/no/such/program".into()], &mut Keep::default()).unwrap_err();
    assert!(matches!(error, hatf::Error::Start(..)));
}

#[test]
fn a_shell_script_with_children() {
    let shell = Path::new("/bin/sh");
    if !shell.exists() {
        eprintln!("SKIPPED: no /bin/sh on this machine");
        return;
    }
    let script = "ls / > /dev/null; ls / > /dev/null; exit 3";
    let (outcome, keep) = run_command(&["/bin/sh".into(), "-c".into(), script.into()]);
    keep.check();
    assert_eq!((outcome.exit_code(), outcome.images), (3, 1));
    assert!(outcome.children >= 2, "{outcome:?}");
}
