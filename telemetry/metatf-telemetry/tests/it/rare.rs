//! Rare events have a separate ring in each thread, which frequent events do not overwrite.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Scene, scenario};
use metatf_derive::metatf;

#[metatf(dtd = "tests/rare.dtd", emitters = "crate::rare::events")]
mod events {}

use events::{Rare, Record};

/// Number of allocations of each thread; a 64 KiB ring has room for fewer.
const ALLOCS: [u32; 4] = [2301, 2302, 2302, 2302];

#[test]
fn child() {
    let Some(name) = scenario() else { return };
    let guard = events::TELEMETRY.start().unwrap();
    let threads = (0..).zip(ALLOCS).map(|(number, allocs)| std::thread::spawn(move || thread(number, allocs)));
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    match name.as_str() {
        "killed" => {
            // SAFETY: ends the process immediately.
            unsafe { libc::_exit(0) };
        }
        "described" => {
            events::alloc!(number = 1, address = 16);
            events::arena!(number = 2);
            events::alloc!(number = 3, address = 48);
            events::create!(number = 4, vfield = "\u{e9}");
            let last: Vec<_> = (0..5).map(described).collect();
            let names: Vec<_> = last.iter().map(|text| text.split(" time=").next().unwrap()).collect();
            assert_eq!(names, ["create (Pool)", "alloc (Object)", "arena (Arena)", "alloc (Object)", "no event"]);
            assert!(last[0].contains("number=4 ") && last[0].contains("\u{e9}"), "{}", last[0]);
        }
        _ => {
            assert!(events::TELEMETRY.dump("dump.mtf").unwrap() > 1000);
            guard.finish().unwrap();
        }
    }
}

/// Emits events like a thread of an allocator, in which the rare events come first.
fn thread(number: u32, allocs: u32) {
    events::arena!(number);
    for pool in 0..2 {
        events::create!(number = pool, vfield = "of small blocks");
    }
    events::label!(number);
    (0..allocs).for_each(|number| events::alloc!(number, address = u64::from(number) << 4));
}

fn described(back: u32) -> String {
    // SAFETY: only one thread describes events.
    let text =
        unsafe { std::ffi::CStr::from_ptr(metatf_telemetry::metatf_describe(metatf_telemetry::metatf_last(back))) };
    text.to_str().unwrap().to_owned()
}

/// Returns the number of records of each name in a trace. The records of each thread must be in the order of emission.
fn counts(path: &Path) -> BTreeMap<&'static str, usize> {
    let mut trace = events::Trace::open(path).unwrap();
    let (mut counts, mut threads, mut last) = (BTreeMap::new(), BTreeMap::<u64, (u32, Option<u64>)>::new(), 0);
    while let Some(Record::Rare(record)) = trace.next_owned().unwrap() {
        let (name, time, thread, step) = match record {
            Rare::Arena(arena) => ("arena", arena.time, arena.thread, 1),
            Rare::Create(create) => ("create", create.time, create.thread, 2 + create.number as u32),
            Rare::Label(label) => ("label", label.time, label.thread, 4),
            Rare::Alloc(alloc) => {
                let before = &mut threads.entry(alloc.thread).or_default().1;
                assert!(before.is_none_or(|before| before + 1 == alloc.number), "{before:?} {}", alloc.number);
                *before = Some(alloc.number);
                ("alloc", alloc.time, alloc.thread, 5)
            }
            Rare::Dropped(dropped) => panic!("{dropped:?}"),
        };
        assert!(time >= last, "{name}: time goes back from {last} to {time}");
        last = time;
        let before = &mut threads.entry(thread).or_default().0;
        assert!((*before..=*before + 1).contains(&step), "{name} in thread {thread} stands behind step {before}");
        *before = step;
        *counts.entry(name).or_default() += 1;
    }
    counts
}

const SMALL: [(&str, &str); 2] = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536")];

fn check(path: &Path) {
    let counts = counts(path);
    assert_eq!([counts["arena"], counts["create"], counts["label"]], [4, 8, 4], "{}", path.display());
    assert!((7000..9207).contains(&counts["alloc"]), "some are overwritten: {}", counts["alloc"]);
}

#[test]
fn a_flight_recorder_keeps_rare_events() {
    let scene = Scene::new("rare::child");
    scene.run("ends", &[SMALL[0], SMALL[1], ("METATF_TELEMETRY_POLICY", "overwrite")]);
    check(&scene.folder.path().join("dump.mtf"));
    check(&scene.trace());
}

#[test]
fn rare_events_survive_a_kill() {
    let scene = Scene::new("rare::child");
    scene.run("killed", &[SMALL[0], SMALL[1], ("METATF_TELEMETRY_POLICY", "overwrite")]);
    let buffers = metatf_telemetry::postmortem::Buffers::open(&scene.buffers()[0]).unwrap();
    let path = scene.folder.path().join("left.mtf");
    let sink = Box::new(metatf::container::Forward(std::fs::File::create(&path).unwrap()));
    let (found, mut sink) = buffers.recover(sink).unwrap();
    sink.flush().unwrap();
    assert_eq!((found.warnings.as_slice(), found.threads.len()), (&[][..], 4), "a thread has two rings");
    assert!(found.lost.is_empty(), "{found:?}");
    check(&path);
}

/// A small ring occupies 68 KiB for each thread that the settings allow, but a thread without rare events uses none of
/// it.
#[test]
fn rare_events_have_bounded_memory() {
    let scene = Scene::new("rare::child");
    scene.run("killed", &[SMALL[0], SMALL[1], ("METATF_TELEMETRY_THREADS", "10")]);
    let bytes = std::fs::metadata(&scene.buffers()[0]).unwrap().len();
    let texts = 16 << 10;
    assert!((20 * (68 << 10)..20 * (68 << 10) + texts).contains(&bytes), "{bytes}");
}

#[test]
fn rare_and_frequent_events_are_written_in_their_order() {
    for policy in ["block", "drop"] {
        let scene = Scene::new("rare::child");
        scene.run("ends", &[SMALL[0], ("METATF_TELEMETRY_POLICY", policy)]);
        assert_eq!(counts(&scene.trace()), [("alloc", 9207), ("arena", 4), ("create", 8), ("label", 4)].into());
    }
}

#[test]
fn the_last_events_of_both_rings_are_described() {
    Scene::new("rare::child").run("described", &SMALL);
}
