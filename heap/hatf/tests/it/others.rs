//! Traces derived from traces: parts and samples (`hatf cut`), merged traces (`hatf convert`) and `hatf anonymize`.
#![expect(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;

use hatf::share::{Anonymizer, Cut, KeptNames, Merged, OfProcess, Records, Tokens, check, merge};
use hatf_lab::HeapTracker;
use hatf_lab::sites::Sites;
use hatf_trace::event::{Call, EventSink, Function, Pages};
use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Event, EventKind, OwnedEvent};
use metatf_test::Folder;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::taken::Taken;
use crate::common::{compiled, compiled_from, hatf};

/// Returns a step of a random program, selected by a number. `heap` is that of the running program, or `None` if no
/// other program replaces it.
fn step(n: u64, time: &mut u64, heap: &mut Option<u64>, live: &mut Vec<u64>, next: &mut u64) -> OwnedEvent {
    *time += n % 3 * 1000;
    let thread = 1 + n / 7 % 3;
    let frames = [0x1000_0100 + n / 11 % 5, 0x1000_0200 + n / 13 % 3, 0x2000_0000];
    let stack = if n.is_multiple_of(5) { &[][..] } else { &frames[..] };
    let mut fresh = || {
        *next += 1 << 12;
        *next
    };
    let name: &[u8] = if n.is_multiple_of(2) { b"ready" } else { b"work" };
    let size = n / 17 % 5000;
    let picked = if live.is_empty() { None } else { Some(usize::try_from(n / 19).unwrap() % live.len()) };
    let kind = match (n / 23 % 16, picked) {
        (0..=4, _) => EventKind::Call(Call { size, address: fresh(), ..Call::new(Function::Malloc) }),
        (5, _) => {
            EventKind::Call(Call { size, address: fresh(), detail: 4, usable: size + 8, ..Call::new(Function::Calloc) })
        }
        (6, _) => EventKind::Call(Call { size, address: fresh(), detail: 64, ..Call::new(Function::AlignedAlloc) }),
        (7, Some(at)) => {
            let old = live.swap_remove(at);
            let address = if n.is_multiple_of(2) { old } else { fresh() };
            EventKind::Call(Call { size, old, address, ..Call::new(Function::Realloc) })
        }
        (8..=10, Some(at)) => EventKind::Free { address: live.swap_remove(at) },
        (11, _) => EventKind::Mark { name },
        (12, _) => EventKind::PhaseBegin { name },
        (13, _) => EventKind::PhaseEnd { name },
        (14, _) => EventKind::Pages(Pages::Map { start: size << 12, length: 8192, protection: 3, flags: 0x22 }),
        _ if heap.is_some() && n.is_multiple_of(6) => {
            // Another program replaces this one.
            *heap = heap.map(|heap| heap + 1);
            live.clear();
            EventKind::Image { process: 77, path: b"/opt/acme/other" }
        }
        _ => EventKind::Pages(Pages::Unmap { start: size << 12, length: 4096 }),
    };
    if let EventKind::Call(call) = kind {
        live.push(call.address);
    }
    // Other records contain no stacks.
    let stack = if let EventKind::Call(_) | EventKind::Free { .. } = kind { stack } else { &[] };
    OwnedEvent::of(&Event {
        kind,
        time: *time,
        thread,
        heap: heap.unwrap_or(1),
        stack: stack.into(),
        ..Event::new(kind)
    })
}

/// Returns the events of a random program and of others that replace it.
fn programs(steps: &[u64]) -> Vec<OwnedEvent> {
    run(steps, Some(1))
}

/// Returns the events of a random program.
fn program(steps: &[u64]) -> Vec<OwnedEvent> {
    run(steps, None)
}

fn run(steps: &[u64], mut heap: Option<u64>) -> Vec<OwnedEvent> {
    let mut events: Vec<OwnedEvent> = [
        EventKind::ThreadStart { creator: 0, task: 77 },
        EventKind::Image { process: 77, path: b"/opt/acme/secretprog" },
        EventKind::ModuleLoad {
            bias: 0x1000_0000,
            start: 0x1000_0000,
            end: 0x1100_0000,
            name: b"abcd /opt/acme/secretprog",
        },
        EventKind::Source { path: b"/home/alice/hidden.c" },
        EventKind::Symbol { frame: 0x1000_0100, line: 7, name: b"inlined_fn" },
        EventKind::Symbol { frame: 0x1000_0100, line: 9, name: b"outer_fn" },
        EventKind::ThreadName { name: b"worker" },
    ]
    .into_iter()
    .enumerate()
    .map(|(number, kind)| OwnedEvent::of(&Event { heap: u64::from(number > 0), ..Event::new(kind) }))
    .collect();
    let (mut time, mut live, mut next) = (1000, Vec::new(), 1 << 20);
    events.extend(steps.iter().map(|n| step(*n, &mut time, &mut heap, &mut live, &mut next)));
    events
}

fn write(events: &[OwnedEvent], path: &str, user_metadata: &Value) {
    let file = hatf_trace::trace::create(path.as_ref()).unwrap();
    let mut writer = HeapWriter::new(file, &HeapOptions::default()).unwrap();
    writer.user_metadata(user_metadata.as_object().unwrap()).unwrap();
    events.iter().for_each(|event| writer.event(&event.get()).unwrap());
    writer.finish().unwrap();
}

/// Live blocks by address, with size, thread, time and frames.
type Live = BTreeMap<u64, (u64, u64, u64, Vec<u64>)>;

/// Returns the live blocks.
fn live(tracker: &HeapTracker<Option<Sites>>) -> Live {
    let stacks = &tracker.heap().stacks;
    let of = |object: hatf_lab::Object| {
        let frames = stacks.get(object.site).map(|location| location.address).collect();
        (object.address, (object.size, object.thread, object.time, frames))
    };
    tracker.heap().objects.live().map(of).collect()
}

fn names(tracker: &HeapTracker<Option<Sites>>) -> Vec<String> {
    let stacks = &tracker.heap().stacks;
    let mut names: Vec<_> = stacks.locations().iter().flat_map(|location| location.lines()).collect();
    names.sort();
    names.dedup();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// At every record of a part, the live blocks are those of the complete trace.
    #[test]
    fn a_part_has_what_the_whole_has(steps in prop::collection::vec(any::<u64>(), 1..400), first in 1_u64..300, length in 0_u64..200) {
        let events = programs(&steps);
        let records = Records { first: first.min(events.len() as u64), last: Some(first + length) };
        let mut part = Taken::default();
        let mut cut = Cut::new(records, &mut part);
        for event in &events {
            if cut.event(&event.get()).is_err() {
                break;
            }
        }
        let is_over = cut.is_over();
        prop_assert_eq!(is_over, first + length < events.len() as u64);
        let counts = cut.finish().unwrap();
        let carried = usize::try_from(counts.carried_records).unwrap();
        prop_assert_eq!(part.events.len(), carried + usize::try_from(counts.records).unwrap());

        let (mut whole, mut of_part) = (HeapTracker::new(None), HeapTracker::new(None));
        let before = usize::try_from(records.first - 1).unwrap();
        events[..before].iter().for_each(|event| whole.event(&event.get()).unwrap());
        part.events[..carried].iter().for_each(|event| of_part.event(&event.get()).unwrap());
        prop_assert_eq!(live(&whole), live(&of_part));
        prop_assert_eq!(counts.carried_blocks, whole.heap().objects.live_count());
        prop_assert_eq!(counts.carried_bytes, whole.heap().objects.live_bytes());
        let times: Vec<_> = part.events.iter().map(|event| event.get().time).filter(|time| *time > 0).collect();
        prop_assert!(times.is_sorted());
        let mut heap = part.events[..carried].iter().map(|event| event.get().heap).max().unwrap_or(0);
        for (of_whole, event) in events[before..].iter().zip(&part.events[carried..]) {
            // A format that counts heaps by programs starts again at 1.
            heap += u64::from(matches!(event.get().kind, EventKind::Image { .. }));
            prop_assert_eq!(event.get().heap, heap);
            prop_assert_eq!(Event { heap, ..of_whole.get() }, event.get());
            whole.event(&of_whole.get()).unwrap();
            of_part.event(&event.get()).unwrap();
            prop_assert_eq!(whole.heap().objects.live_bytes(), of_part.heap().objects.live_bytes());
        }
        prop_assert_eq!(live(&whole), live(&of_part));
        prop_assert!(names(&of_part).iter().all(|name| names(&whole).contains(name)));
    }

    /// Each process extracted from a merged trace is unchanged.
    #[test]
    fn processes_come_out_as_they_went_in(steps in prop::collection::vec(any::<u64>(), 1..300), cut in 0_usize..300) {
        let folder = Folder::new();
        let (one, two) = steps.split_at(cut.min(steps.len()));
        let programs = [program(one), program(two)];
        let paths = ["one.mtf", "two.mtf"].map(|name| folder.path(name));
        for (events, path) in programs.iter().zip(&paths) {
            write(events, path, &serde_json::json!({"program": "/opt/acme/secretprog"}));
        }
        let traces = paths.iter().map(|path| Merged { trace: TraceReader::open(path.as_ref()).unwrap(), name: path.clone(), offset: 0 });
        let mut all = Taken::default();
        merge(traces.collect(), &mut all).unwrap();
        let times: Vec<_> = all.events.iter().map(|event| event.get().time).filter(|time| *time > 0).collect();
        prop_assert!(times.is_sorted());
        for (number, events) in (1_u64..).zip(&programs) {
            let about = all.user_metadata["merged"][usize::try_from(number - 1).unwrap()].clone();
            let mut own = Taken::default();
            let mut of_process = OfProcess::new(number, &about, &mut own);
            all.events.iter().for_each(|event| of_process.event(&event.get()).unwrap());
            let comparable = |events: &[OwnedEvent]| -> Vec<String> {
                // Only the first image is kept, and a source file only if it differs from the previous process's.
                let shown = |event: &OwnedEvent| {
                    let event = Event { heap: 0, ..event.get() };
                    let is_common = matches!(event.kind, EventKind::Source { .. } | EventKind::Image { .. });
                    (!is_common).then(|| format!("{event:?}"))
                };
                events.iter().filter_map(shown).collect()
            };
            let (own, expected) = (comparable(&own.events), comparable(events));
            prop_assert!(own.len() >= expected.len());
            prop_assert_eq!(&own[..expected.len()], &expected[..]);
            // The process that ends first also ends its blocks.
            prop_assert!(own[expected.len()..].iter().all(|event| event.contains("Free") || event.contains("Unmap") || event.contains("ModuleUnload")));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4) })]

    /// Anonymizing changes no figure.
    #[test]
    fn figures_without_names(steps in prop::collection::vec(any::<u64>(), 1..400), key in any::<[u8; 16]>()) {
        let folder = Folder::new();
        let (before, after) = (folder.path("before.mtf"), folder.path("after.mtf"));
        write(&program(&steps), &before, &serde_json::json!({"command": ["/opt/acme/secretprog", "--password=hunter"], "host": "machine"}));
        let mut all = Taken::default();
        let mut anonymizer = Anonymizer::new(Tokens::new(key), KeptNames::default(), &mut all);
        TraceReader::open(before.as_ref()).unwrap().give(&mut anonymizer).unwrap();
        write(&all.events, &after, &Value::Object(all.user_metadata));
        let open = |path: &str| TraceReader::open(path.as_ref());
        let checked = check(&|| open(&before), &|| open(&after), after.as_ref(), &KeptNames::default(), 1).unwrap();
        prop_assert!(checked.is_good(), "{checked:?}");
        prop_assert!(checked.words >= 12 && checked.figures.iter().all(|figure| figure.numbers > 0));
    }
}

/// A program with secret names.
const SECRETS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include "hatf.h"
static void *volatile kept[2000];
__attribute__((noinline)) void *confidential_parser(int n) { return malloc(20 + n % 300); }
static void *clandestine_thread(void *unused) {
    pthread_setname_np(pthread_self(), "hushhushworker");
    for (int n = 0; n < 500; n++) kept[n] = confidential_parser(n);
    return unused;
}
int main(void) {
    pthread_t thread;
    hatf_mark("undisclosed");
    hatf_phase_begin("covertphase");
    pthread_create(&thread, 0, clandestine_thread, 0);
    pthread_join(thread, 0);
    for (int n = 0; n < 2000; n++) { free(kept[n]); kept[n] = n % 3 ? confidential_parser(n) : realloc(0, 77); }
    hatf_phase_end("covertphase");
    for (int n = 0; n < 500; n++) kept[n] = realloc(kept[n], 1000);
    return 0;
}
"#;

/// Records the program with its secrets. Returns `None` if there is no compiler.
fn recorded(folder: &Folder) -> Option<String> {
    folder.write("privatesource.c", SECRETS);
    let include = format!("-I{}", metatf_test::root().join("heap/hatf-record/include").display());
    let program = compiled_from(&folder.join("privatesource.c"), folder, "codenamed", &["-O1", &include])?;
    let (trace, program) = (folder.path("trace.mtf"), program.display().to_string());
    let run = ["record", "-q", "--stacks", "--pages", "-o", &trace, "--", &program, "--passphrase=opensesame"];
    hatf(run).exits(0);
    hatf(["symbolize", &trace, "-o", &trace]).exits(0);
    Some(trace)
}

/// Returns the content of a trace, compressed and decompressed, and its user metadata.
fn all_bytes(path: &str) -> Vec<u8> {
    let mut reader = metatf::container::Reader::open(path).unwrap();
    let mut all = fs::read(path).unwrap();
    while let Some(part) = reader.next_part().unwrap() {
        all.extend(reader.bytes(&part.content));
    }
    all.extend(reader.user_metadata().concat());
    all
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_is_left() {
    let folder = Folder::new();
    let Some(trace) = recorded(&folder) else { return };
    // Add user metadata and a comment.
    let mut commented = Taken::default();
    TraceReader::open(trace.as_ref()).unwrap().give(&mut commented).unwrap();
    let file = hatf_trace::trace::create(trace.as_ref()).unwrap();
    let mut writer = HeapWriter::new(file, &HeapOptions::default()).unwrap();
    commented.user_metadata.insert("tickets".to_owned(), serde_json::json!({"customer": "bigcorp"}));
    writer.user_metadata(&commented.user_metadata).unwrap();
    writer.comment(b"nobody may read this remark").unwrap();
    commented.events.iter().for_each(|event| writer.event(&event.get()).unwrap());
    writer.finish().unwrap();

    let mut secrets = vec![
        "privatesource",
        "codenamed",
        "opensesame",
        "passphrase",
        "undisclosed",
        "covertphase",
        "remark",
        "tickets",
        "bigcorp",
    ];
    if cfg!(target_arch = "x86_64") {
        secrets.extend(["confidential", "clandestine", "hushhush"]);
    }
    let before = all_bytes(&trace);
    secrets.iter().for_each(|secret| assert!(has(&before, secret), "{secret}"));
    let shared = folder.path("shared.mtf");
    let checked = hatf(["anonymize", &trace, "-o", &shared, "--check", "--format", "json"]).exits(0);
    let checked: Value = serde_json::from_slice(&checked.out).unwrap();
    assert_eq!(checked["found"], serde_json::json!([]));
    let figures: Vec<_> =
        checked["figures"].as_array().unwrap().iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    assert_eq!(figures, ["report", "sites", "fragmentation", "simulate", "replay", "calls of a replay"]);
    let after = all_bytes(&shared);
    for secret in &secrets {
        assert!(!has(&after, secret), "{secret}");
    }

    // Names selected with `--keep` are kept.
    let keep = ["--keep", "confidential_*", "--keep-marks", "--check"];
    hatf([&["anonymize", &trace, "-o", &shared][..], &keep].concat()).exits(0);
    let after = all_bytes(&shared);
    let kept = |secret: &str| has(&after, secret);
    assert!(kept("undisclosed") && kept("covertphase") && !kept("codenamed") && !kept("hushhush"));
    assert_eq!(kept("confidential_parser"), cfg!(target_arch = "x86_64"));
    // A check without these options finds the kept names.
    let words = check(
        &|| TraceReader::open(trace.as_ref()),
        &|| TraceReader::open(shared.as_ref()),
        shared.as_ref(),
        &KeptNames::default(),
        1,
    );
    assert!(words.unwrap().found.iter().any(|word| word == "undisclosed"));
}

#[test]
fn keys() {
    let folder = Folder::new();
    let (trace, key) = (folder.path("trace.mtf"), folder.path("key"));
    write(&program(&[1, 2, 3]), &trace, &serde_json::json!({}));
    let anonymized = |name: &str, options: &[&str]| {
        let output = folder.path(name);
        hatf([&["anonymize", &trace, "-o", &output][..], options].concat()).exits(0);
        fs::read(output).unwrap()
    };
    fs::write(&key, "a secret that nobody knows").unwrap();
    let with = ["--key", &key];
    assert!(anonymized("a.mtf", &with) == anonymized("b.mtf", &with));
    assert!(anonymized("c.mtf", &[]) != anonymized("d.mtf", &[]));
    fs::write(&key, "short").unwrap();
    hatf(["anonymize", &trace, "-o", &folder.path("e.mtf"), "--key", &key]).exits(2).says("at least 16 bytes");
    hatf(["anonymize", &trace, "-o", "-", "--check"]).exits(2).says("add -o FILE");
}

/// Returns the bytes and blocks of a measure for each site, by its frames.
fn sites(trace: &str, options: &[&str], measure: &str) -> BTreeMap<String, (u64, u64)> {
    let json =
        hatf([&["sites", trace, "--group", "stack", "--format", "json", "--by", "leaked"][..], options].concat())
            .exits(0);
    let json: Value = serde_json::from_slice(&json.out).unwrap();
    let number = |site: &Value, what| site[measure][what].as_u64().unwrap();
    let mut sites = BTreeMap::new();
    for site in json["sites"].as_array().unwrap() {
        let amount = (number(site, "bytes"), number(site, "blocks"));
        if amount != (0, 0) {
            sites.insert(site["stack"].to_string(), amount);
        }
    }
    sites
}

#[test]
fn reports_of_a_part_agree() {
    let folder = Folder::new();
    let Some(trace) = recorded(&folder) else { return };
    let part = folder.path("part.mtf");
    for (options, at) in [
        (["--between", "mark:undisclosed..end of covertphase"], None),
        (["--between", "mark:undisclosed..peak"], Some("peak")),
        (["--phase", "covertphase"], Some("mark:end of covertphase")),
        (["--between", "mark:end of covertphase.."], Some("end")),
    ] {
        let Some(at) = at else {
            hatf([&["cut", &trace, "-o", &part][..], &options].concat()).exits(2).says("expected a time");
            continue;
        };
        hatf([&["cut", &trace, "-o", &part][..], &options].concat()).exits(0).says("that restore the initial state");
        assert_eq!(sites(&trace, &["--at", at], "at"), sites(&part, &[], "leaked"), "{at}");
    }
    // The last part begins with live blocks and reports them.
    let report = hatf(["report", &part]).exits(0);
    report.prints("carried_blocks 20");
    // Times are those of the complete trace.
    let of = |trace: &str| -> Value {
        serde_json::from_slice(&hatf(["report", trace, "--format", "json"]).exits(0).out).unwrap()
    };
    assert_eq!(of(&trace)["duration"], of(&part)["duration"]);
    assert_eq!(of(&trace)["peak"]["bytes"], of(&part)["peak"]["bytes"]);
    // From standard input to standard output.
    let whole = fs::read(&trace).unwrap();
    let piped = metatf_test::run_with(
        std::process::Command::new(env!("CARGO_BIN_EXE_hatf")).args([
            "cut",
            "-",
            "--between",
            "mark:end of covertphase..",
            "-o",
            "-",
        ]),
        &whole,
    );
    let from_pipe = folder.path("from_pipe.mtf");
    fs::write(&from_pipe, piped.exits(0).out).unwrap();
    assert_eq!(of(&from_pipe), of(&part));

    // The blocks of a thread, with their ends.
    let threads = of(&trace)["threads"].as_array().unwrap().clone();
    for thread in &threads {
        let number = thread["thread"].as_u64().unwrap();
        hatf(["cut", &trace, "--thread", &number.to_string(), "-o", &part]).exits(0);
        let own = of(&part);
        assert_eq!(own["totals"]["allocs"], thread["allocs"], "{thread}");
        assert_eq!(own["totals"]["unmatched_frees"], 0);
    }
    assert!(threads.len() == 2);
    hatf(["cut", &trace, "--thread", "99", "-o", &part]).exits(2).says("hatf report lists the threads");
}

#[test]
fn samples_estimate() {
    let folder = Folder::new();
    let (trace, sample) = (folder.path("trace.mtf"), folder.path("sample.mtf"));
    // Three sites: many small blocks, some large blocks, and blocks of both sizes. A third of the blocks is freed.
    let mut events = Vec::new();
    let sizes = |n: u64| match n % 10 {
        0 => (0x3000, 100_000),
        1..=3 => (0x2000, if n.is_multiple_of(2) { 32 } else { 4096 }),
        _ => (0x1000, 64),
    };
    let mut truth: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for n in 0..60_000 {
        let (frame, size) = sizes(n);
        let sums = truth.entry(frame).or_default();
        (sums[0], sums[1]) = (sums[0] + 1, sums[1] + size);
        let stack = [frame];
        let call = Event { time: n, stack: (&stack).into(), ..Event::malloc((n + 1) << 20, size) };
        events.push(OwnedEvent::of(&call));
        if n.is_multiple_of(3) {
            events.push(OwnedEvent::of(&Event { time: n, ..Event::free((n + 1) << 20) }));
        }
    }
    write(&events, &trace, &serde_json::json!({}));
    let counted = |bytes: &str, seed: &str| -> BTreeMap<u64, [f64; 2]> {
        hatf(["cut", &trace, "--sample", bytes, "--seed", seed, "-o", &sample]).exits(0);
        let json: Value =
            serde_json::from_slice(&hatf(["sites", &sample, "--format", "json", "--group", "stack"]).exits(0).out)
                .unwrap();
        let of = |site: &Value| {
            let amounts = ["blocks", "bytes"].map(|what| site["allocated"][what].as_f64().unwrap());
            (site["stack"][0]["address"].as_u64().unwrap(), amounts)
        };
        json["sites"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|site| !site["stack"].as_array().unwrap().is_empty())
            .map(of)
            .collect()
    };
    for seed in ["0", "1", "2"] {
        let found = counted("4KiB", seed);
        for (frame, [blocks, bytes]) in &truth {
            #[expect(clippy::cast_precision_loss)]
            let (blocks, bytes) = (*blocks as f64, *bytes as f64);
            // Five standard deviations of a Poisson distribution, as for the recorder's samples.
            let bound = 5.0 / (bytes / 4096.0).min(blocks).sqrt();
            let [found_blocks, found_bytes] = found[frame];
            assert!((found_bytes / bytes - 1.0).abs() < bound, "{frame:x}: {found_bytes} of {bytes} bytes");
            assert!((found_blocks / blocks - 1.0).abs() < 3.0 * bound, "{frame:x}: {found_blocks} of {blocks} blocks");
        }
    }
    // A sample of a sample is a sample of the trace. A finer one is refused.
    counted("1KiB", "0");
    let finer = folder.path("finer.mtf");
    hatf(["cut", &sample, "--sample", "8KiB", "--seed", "5", "-o", &finer]).exits(0);
    let report: Value = serde_json::from_slice(&hatf(["report", &finer, "--format", "json"]).exits(0).out).unwrap();
    let all: u64 = truth.values().map(|sums| sums[1]).sum();
    #[expect(clippy::cast_precision_loss)]
    let off = report["estimate"]["allocated"]["bytes"].as_f64().unwrap() / all as f64 - 1.0;
    assert!(off.abs() < 0.03, "{off}");
    hatf(["cut", &sample, "--sample", "16", "-o", &finer]).exits(1).says("already a sample");
    // About as many blocks as requested.
    hatf(["cut", &trace, "--sample-blocks", "2000", "-o", &finer]).exits(0);
    let report: Value = serde_json::from_slice(&hatf(["report", &finer, "--format", "json"]).exits(0).out).unwrap();
    let blocks = report["totals"]["allocs"].as_u64().unwrap();
    assert!((500..2200).contains(&blocks), "{blocks}");
}

#[test]
fn processes_are_merged_by_time() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "processes", &["-O1"]) else { return };
    let (trace, all, program) = (folder.path("trace.mtf"), folder.path("all.mtf"), program.display().to_string());
    hatf(["record", "-q", "-o", &trace, "--", &program, "programs"]).exits(0);
    let children = fs::read_dir(folder.join("trace.processes")).unwrap().map(|entry| entry.unwrap().path());
    let mut traces: Vec<_> = children
        .filter(|path| path.extension().is_some_and(|end| end == "mtf"))
        .map(|path| path.display().to_string())
        .collect();
    traces.sort();
    traces.insert(0, trace.clone());
    hatf(["convert", &trace, &folder.path("trace.processes"), &all]).exits(0);
    let of = |trace: &str| -> Value {
        serde_json::from_slice(&hatf(["report", trace, "--format", "json"]).exits(0).out).unwrap()
    };
    let allocs = |report: &Value| report["totals"]["allocs"].as_u64().unwrap();
    assert_eq!(allocs(&of(&all)), traces.iter().map(|trace| allocs(&of(trace))).sum::<u64>());
    assert_eq!(of(&all)["totals"]["allocs_of_live_blocks"], 0);
    let own = folder.path("own.mtf");
    for (number, trace) in (1..).zip(&traces) {
        hatf(["cut", &all, "--process", &format!("{number}"), "-o", &own]).exits(0);
        let (own, expected) = (of(&own), of(trace));
        assert_eq!(own["peak"]["bytes"], expected["peak"]["bytes"], "{trace}");
        assert_eq!(allocs(&own), allocs(&expected), "{trace}");
    }
    hatf(["cut", &all, "--process", "99", "-o", &own]).exits(2).says("there is no process 99");
    hatf(["cut", &trace, "--process", "1", "-o", &own]).exits(2).says("hatf convert A.mtf B.mtf BOTH.mtf");
    // A merged trace is not merged again, and samples are not merged with other traces.
    let both = folder.path("both.mtf");
    hatf(["convert", &all, &trace, &both, "--as-is"]).exits(1).says("already contains several processes");
    let sample = folder.path("sample.mtf");
    hatf(["cut", &trace, "--sample-blocks", "250000", "-o", &sample]).exits(0);
    hatf(["convert", &sample, &trace, &both]).exits(1).says("not samples of the same kind");
}

/// No trace is lost because of a mistyped command, and no output is written for a corrupt trace.
#[test]
fn outputs_and_inputs() {
    let folder = Folder::new();
    let (trace, other, out) = (folder.path("trace.mtf"), folder.path("other.mtf"), folder.path("out.mtf"));
    write(&program(&(0..200).map(|n| n * 12_345_678_901).collect::<Vec<_>>()), &trace, &serde_json::json!({}));
    fs::write(&other, "mine").unwrap();
    fs::copy(&trace, folder.join("third.mtf")).unwrap();
    let before = fs::read(&trace).unwrap();
    let third = folder.path("third.mtf");
    for command in [
        &["cut", "--records", "5..9"][..],
        &["cut", "--sample", "64"],
        &["anonymize"],
        &["convert", "--as-is", "--to", "heap", &third],
    ] {
        let (merges, samples) = (command[0] == "convert", command.contains(&"--sample"));
        let run = |output: &str, input: &str| {
            let paths = if merges { vec![input, output] } else { vec!["-o", output, input] };
            hatf([command, &paths].concat())
        };
        run(&trace, &trace).exits(2).says("is also an input");
        if merges {
            run(&other, &trace).exits(2).says("remove the file");
        }
        run(&other, &folder.path("missing.mtf")).exits(if merges { 2 } else { 1 });
        run(&out, &folder.path("missing.mtf")).exits(1).says("missing.mtf");
        run("/missing/out.mtf", &trace).exits(1).says("/missing/out.mtf");
        run("/dev/full", &trace).exits(1).says("/dev/full");
        // Only an extracted part may be written for a corrupt trace.
        let damaged = folder.path("damaged.mtf");
        let mut bytes = before.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&damaged, &bytes).unwrap();
        if command[0] != "cut" || samples {
            run(&out, &damaged).exits(1).says("damaged.mtf");
            assert!(!fs::exists(&out).unwrap());
        }
        run(&out, &trace).exits(0);
        if !merges {
            run(&out, &trace).exits(0);
        }
        fs::remove_file(&out).unwrap();
    }
    assert!(fs::read(&trace).unwrap() == before && fs::read(&other).unwrap() == b"mine");
    for (options, status, says) in [
        (&[][..], 2, "--between <A..B>"),
        (&["--records", "9..5"], 2, "no records from 9 to 5"),
        (&["--records", "0..5"], 2, "the numbers of two records"),
        (&["--records", "100000.."], 2, "record 100000 does not exist"),
        (&["--between", "1h.."], 2, "is after the end of the trace"),
        (&["--phase", "never"], 2, "available marks: "),
        (&["--between", "mark:ready..mark:never"], 2, "not in the trace"),
    ] {
        hatf([&["cut", &trace, "-o", &out][..], options].concat()).exits(status).says(says);
    }
    // Traces without events, without times, with sizes only, and in another format.
    let empty = folder.path("empty.mtf");
    write(&[], &empty, &serde_json::json!({}));
    hatf(["cut", &empty, "--between", "..", "-o", &out]).exits(0);
    hatf(["cut", &empty, "--between", "1s..", "-o", &out]).exits(2).says("the trace has no timestamps");
    hatf(["cut", &empty, "--sample-blocks", "9", "-o", &out]).exits(0);
    hatf(["cut", &empty, "--between", "..", "--seed", "1", "-o", &out]).exits(2).says("--sample <BYTES>");
    hatf(["anonymize", &empty, "-o", &out, "--check"]).exits(0);
    let (again, merged) = (folder.path("again.mtf"), folder.path("merged.mtf"));
    fs::copy(&empty, &again).unwrap();
    hatf(["convert", &empty, &again, &merged, "--as-is"]).exits(0);
    fs::remove_file(&merged).unwrap();
    hatf(["convert", &empty, &again, &merged]).exits(1).says("--as-is");
    hatf(["convert", &empty, "-", &merged]).exits(2).says("not standard input");
    hatf(["convert", &empty, &again, &folder.path("merged.prof.mtf")]).exits(2).says("hatf profile merge");
    fs::create_dir(folder.join("none")).unwrap();
    hatf(["convert", &folder.path("none"), &merged]).exits(1).says("contains no traces (*.mtf)");
    let sizes = folder.path("sizes.mtf");
    let call = |size| OwnedEvent::of(&Event::new(EventKind::Call(Call { size, ..Call::new(Function::Malloc) })));
    write(&(1..300).map(call).collect::<Vec<_>>(), &sizes, &serde_json::json!({"only": {"sizes": true}}));
    hatf(["cut", &sizes, "--records", "10..19", "-o", &out]).exits(0).says("10 records");
    hatf(["cut", &sizes, "--sample", "200", "-o", &out]).exits(0);
    hatf(["report", &out]).exits(0);
    hatf(["anonymize", &sizes, "-o", &out, "--check"]).exits(0).prints("report: all");
    let lines = folder.path("trace.jsonl");
    hatf(["convert", &trace, &lines]).exits(0);
    hatf(["cut", &lines, "--records", "50..99", "-o", &out]).exits(0).says("50 records");
}
