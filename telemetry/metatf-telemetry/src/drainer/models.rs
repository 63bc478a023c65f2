//! Models of rings, with threads that emit events, acquire rings and release them, and with the drain.

use crate::sync::model::{model, spawn};

use super::*;
use crate::events::after;
use crate::layout::{BLOCKS, DROPPED};
use crate::slot::Slot;
use crate::table::EventRow;
use crate::telemetry::Telemetry;
use crate::telemetry::models::{share, telemetry};

/// Bytes of a block: the event that names its thread, and four more events.
const BLOCK: u64 = 32 + EVENTS_OF_BLOCK * EVENT;
const EVENTS_OF_BLOCK: u64 = 4;
const EVENT: u64 = 24;

/// Creates the place of a thread in its ring.
fn place() -> &'static Slot {
    Box::leak(Box::new(Slot::new()))
}

/// Emits the event with a number.
fn emit(telemetry: &'static Telemetry, place: &Slot, number: u64) {
    telemetry.emit(place, 0, [number, !number]);
}

/// Creates the drain, which writes no trace.
fn drain(mapping: Mapping) -> Drainer {
    let row = EventRow { name: "event".into(), section: 0, tag: 0, kind: 0, words: 2, sources: Vec::new() };
    let target = Target { name: "", dtd: "", path: PathBuf::new(), buffers: String::new() };
    let table = Table { events: vec![row], ..Table::default() };
    let mut drainer = Drainer::new(target, table, mapping, Clock::Monotonic, None);
    drainer.record();
    drainer
}

/// Returns the threads and numbers of the events that were collected last, and checks that each event is whole.
fn collected(drainer: &Drainer) -> Vec<(u32, u64)> {
    let events = drainer.places.iter().filter_map(|place| {
        let part = &drainer.parts[place.ring as usize];
        let at = place.at as usize;
        let (event, next) = after(part, at).expect("a whole event");
        let words = &part.words[at + 1..next];
        (event != DROPPED).then(|| {
            assert_eq!(words[0], !words[1], "an event of one piece");
            (part.thread_at(place.at), words[0])
        })
    });
    events.collect()
}

/// Drains once, and returns the events.
fn batch(drainer: &mut Drainer) -> Vec<(u32, u64)> {
    if drainer.batch(true).unwrap() { collected(drainer) } else { Vec::new() }
}

/// A reader of a flight recorder gets whole events without a gap while a thread overwrites the oldest events.
#[test]
fn what_is_overwritten_is_not_read() {
    let (telemetry, mapping) = telemetry(Policy::Overwrite, 1, BLOCKS * BLOCK);
    let thread = place();
    let emitted = BLOCKS * EVENTS_OF_BLOCK;
    (0..emitted).for_each(|number| emit(telemetry, thread, number));
    let ring = mapping.ring(0).unwrap();
    model(2, move || {
        share(telemetry);
        ring.share(BLOCKS * BLOCK..BLOCKS * BLOCK + 32 + EVENT);
        let emits = spawn(move || emit(telemetry, thread, emitted));
        let reads = spawn(move || {
            let mut drainer = drain(mapping);
            drainer.collect(u64::MAX, true).unwrap();
            collected(&drainer)
        });
        emits.join().unwrap();
        let numbers: Vec<_> = reads.join().unwrap().into_iter().map(|(_, number)| number).collect();
        let first = numbers[0];
        assert!(first == 0 || first == EVENTS_OF_BLOCK, "{first}");
        assert!(numbers.iter().copied().eq(first..first + numbers.len() as u64), "{numbers:?}");
        assert!(numbers.len() as u64 >= emitted - EVENTS_OF_BLOCK);
        assert_eq!(ring.head.dropped.load(Relaxed), 0);
    });
}

/// A thread that gets the ring of a thread that has ended continues after its events. If the ring was not free yet, the
/// thread is counted.
#[test]
fn a_ring_goes_from_thread_to_thread() {
    let (telemetry, mapping) = telemetry(Policy::Drop, 1, BLOCKS * BLOCK);
    let [thread, next] = [(); 2].map(|()| place());
    emit(telemetry, thread, 0);
    let ring = mapping.ring(0).unwrap();
    let ends = thread.position.load(Relaxed);
    let number = thread.thread.load(Relaxed);
    model(2, move || {
        share(telemetry);
        ring.share(0..BLOCK + 32 + EVENT);
        let first = spawn(move || {
            emit(telemetry, thread, 1);
            telemetry.leave(thread);
        });
        let second = spawn(move || {
            emit(telemetry, next, 2);
            emit(telemetry, next, 3);
            next.thread.load(Relaxed)
        });
        first.join().unwrap();
        let other = second.join().unwrap();
        let events = batch(&mut drain(mapping));
        assert_eq!(events[..2], [(number, 0), (number, 1)]);
        let refused = mapping.header().refused.load(Relaxed) as usize;
        let expected = [(other, 2), (other, 3)];
        assert_eq!(events[2..], expected[refused..], "{ends}");
        assert_eq!(ring.head.dropped.load(Relaxed), 0);
    });
}
