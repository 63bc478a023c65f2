//! Spans and events are read back unchanged.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_telemetry::postmortem;
use metatf_tools::spans::{Found, Instant, Kinds, Pairs, Values, Wanted, plain};
use metatf_tracing::{Settings, layer, settings};
use tracing::{debug, error, event, info, info_span, instrument, span, trace, warn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[instrument]
fn inner(depth: u32) -> u32 {
    trace!(half = f64::from(depth) / 2.0, "at the bottom");
    depth + 1
}

#[derive(Debug)]
struct Nested;

/// A `Debug` implementation that emits an event itself.
struct Talks;

impl std::fmt::Debug for Talks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug!("from within");
        f.write_str("talked")
    }
}

fn work() {
    let request = info_span!("request", path = "/index.html", status = tracing::field::Empty);
    let within = request.enter();
    info!(bytes = 4096_u64, cached = true, "sent");
    warn!(delta = -3_i64, nested = ?Nested, "odd: {}", "text");
    inner(7);
    request.record("status", 200_u64);
    info!("after the status is known");
    debug!(talks = ?Talks, "last");
    drop(within);
    let error: Box<dyn std::error::Error> = "no such file".into();
    error!(error = &*error, "failed");
    let other = span!(parent: None, tracing::Level::WARN, "other");
    event!(parent: &other, tracing::Level::INFO, long = "x".repeat(300), "explicit");
    other.follows_from(&request);
    std::thread::spawn(|| info_span!("thread").in_scope(|| info!("of another thread"))).join().unwrap();
}

/// Returns a line for each event: its level, thread, enclosing spans, target, message and values. Threads are numbered
/// in order of appearance.
fn lines(path: &Path) -> String {
    let mut trace = Trace::open(path).unwrap();
    let schema = trace.schema().clone();
    let kinds = Kinds::new(&schema, true);
    let mut pairs = Pairs::new(&kinds, Wanted { around: true, ..Wanted::default() });
    let mut found = Vec::new();
    while let Some(entry) = trace.next_entry().unwrap() {
        let Event::Record(at) = entry.event else { continue };
        let Some(seen) = kinds.seen(&schema, at.record, entry.record) else { continue };
        pairs.take(0, seen, &mut found);
    }
    pairs.rest(&mut found);
    let mut threads = Vec::new();
    let line = |found| match found {
        Found::Event(event) => Some(line(event, &mut threads)),
        _ => None,
    };
    found.into_iter().filter_map(line).collect()
}

fn line(mut event: Instant, threads: &mut Vec<u64>) -> String {
    let number = threads.iter().position(|known| *known == event.thread).unwrap_or(threads.len());
    threads.resize(threads.len().max(number + 1), event.thread);
    let origin = event.origin.clone().unwrap();
    let level = origin.level.as_ref().unwrap().name.to_uppercase();
    let spans = event.around.iter().map(|span| match values(&span.values) {
        none if none.is_empty() => format!("{}: ", span.name),
        values => format!("{}{{{}}}: ", span.name, values.trim_start()),
    });
    let spans: String = spans.collect();
    let message = event.values.take_message().map(|message| format!(" {message}")).unwrap_or_default();
    let target = origin.target.as_ref().unwrap();
    format!("{level} thread {number} {spans}{target}:{message}{}\n", values(&event.values))
}

/// Returns each value, with a space before it.
fn values(values: &Values) -> String {
    values.iter().map(|(name, value)| format!(" {name}={}", plain(value))).collect()
}

/// Runs the program of this test, and ends it in the given way.
fn program(path: &str, end: &str) {
    let (layer, guard) = layer(Settings { filename: Some(path.into()), ..settings() }).unwrap();
    tracing_subscriber::registry().with(layer).init();
    work();
    match end {
        "abort" => std::process::abort(),
        _ => guard.finish().unwrap(),
    }
}

fn run(path: &Path, end: &str) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args(["spans_and_events", "--exact", "--nocapture"])
        .env("METATF_TRACING_TEST", path)
        .env("METATF_TRACING_END", end);
    let status = again.output().unwrap().status;
    assert_eq!(status.success(), end != "abort", "{status}");
}

#[test]
fn spans_and_events() {
    if let Ok(path) = std::env::var("METATF_TRACING_TEST") {
        return program(&path, &std::env::var("METATF_TRACING_END").unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.mtf");
    run(&path, "finish");
    insta::assert_snapshot!(lines(&path));

    // If a program aborts, its events are in its buffers.
    let unfinished = folder.path().join("unfinished.mtf");
    run(&unfinished, "abort");
    let whole = folder.path().join("whole.mtf");
    let buffers = postmortem::Buffers::open(&unfinished).unwrap();
    let (found, mut sink) = buffers.recover(Box::new(File::create(&whole).unwrap())).unwrap();
    sink.flush().unwrap();
    std::fs::remove_file(buffers.path()).unwrap();
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    assert_eq!(lines(&whole), lines(&path));
}
