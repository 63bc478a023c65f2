//! Tests that traces of simulated threads are completed from the spool, wherever they end.

use std::collections::HashSet;

use hatf_record::{Kind, Producer, Spool, SpoolEvent};

use super::*;
use crate::record::order::is_numbered;
use crate::record::order::simulated::{Machine, Memory, Random, write};
use hatf_trace::event::{Call, Event, EventKind};

/// The events of a trace. Events contain no strings here.
#[derive(Default)]
struct Trace(Vec<Event<'static>>);

impl EventSink for Trace {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let kind = match event.kind {
            EventKind::Call(call) => EventKind::Call(call),
            EventKind::ReallocEnd(call) => EventKind::ReallocEnd(call),
            EventKind::ReallocBegin { old } => EventKind::ReallocBegin { old },
            EventKind::Free { address } => EventKind::Free { address },
            EventKind::ThreadStart { creator, task } => EventKind::ThreadStart { creator, task },
            EventKind::Image { process, .. } => EventKind::Image { process, path: b"" },
            _ => panic!("{event:?}"),
        };
        let Event { time, thread, heap, .. } = *event;
        self.0.push(Event { time, thread, heap, ..Event::new(kind) });
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &hatf_trace::event::UserMetadata) -> Result<()> {
        Ok(())
    }
}

impl Trace {
    /// Checks that blocks are allocated only at addresses without a live block, and that only live blocks end. Returns
    /// the number of numbered events.
    fn check(&self) -> u64 {
        let mut live = HashSet::new();
        for event in &self.0 {
            match event.kind {
                EventKind::Call(Call { old, address, .. }) | EventKind::ReallocEnd(Call { old, address, .. }) => {
                    assert!(old == 0 || live.remove(&old), "{event:?}");
                    assert!(live.insert(address), "{event:?}");
                }
                EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                    assert!(live.remove(&address), "{event:?}");
                }
                _ => {}
            }
        }
        self.0.iter().filter(|event| is_numbered(event)).count() as u64
    }
}

fn encode<'a>(spool: Spool<'a>, trace: &'a mut Trace) -> Encode<'a> {
    let timeline = Timeline::new(Moment { stamp: 0, nanoseconds: 0 });
    let (stacks, sink) = (StackFile::default(), CountingSink::new(trace));
    let resident = PendingSamples::default();
    Encode { merge: Merge::new(spool), translator: Translator::default(), timeline, stacks, resident, sink, last: 0 }
}

/// Runs this many threads and a recorder, kills both, and completes the trace. Returns the number of reallocs in
/// progress at the end of the trace.
fn killed(threads: usize, steps: u64, skew: u64, seed: u64) -> usize {
    let mut random = Random(seed | 1);
    let memory = Memory::new();
    let spool = memory.spool();
    let mut machine = Machine::new(spool, threads, skew, &mut random);
    machine.begin_image();
    let mut trace = Trace::default();
    let mut recorder = encode(spool, &mut trace);
    let (mut running, mut safe) = (0, 0);
    for step in 0..steps {
        if random.below(4) == 0 {
            running = usize::try_from(random.below(threads as u64)).unwrap();
        }
        machine.step(running, &mut random);
        if step % 97 == 0 {
            recorder.round(machine.now.saturating_sub(50), 1000);
            if random.below(20) == 0 {
                safe = recorder.sink.events;
                for chunk in recorder.merge.take_finished() {
                    spool.chunk(chunk).unwrap().clear();
                    spool.give_back(chunk);
                    assert!(spool.make_ready(chunk));
                }
            }
        }
    }
    let given = recorder.sink.events;
    let whole = safe + random.below(given - safe + 1);
    trace.0.truncate(usize::try_from(whole).unwrap());
    let mut has = UnfinishedTrace::default();
    trace.0.iter().for_each(|event| has.note(event));
    let being_made = has.has.freed.len();
    let mut rest = encode(spool, &mut trace);
    has.go_on(&mut rest.merge, &mut rest.translator);
    rest.rest(u64::MAX);
    assert_eq!(rest.merge.counted().contradictions, 0, "seed {seed}");
    assert_eq!(trace.check(), machine.written, "seed {seed}");
    being_made
}

#[test]
fn a_trace_that_ends_anywhere_is_completed() {
    let mut being_made = 0;
    for seed in 1..120 {
        for threads in [1, 2, 3, 8] {
            being_made += killed(threads, 20_000, seed % 3, seed * 0x9e37_79b9);
        }
    }
    assert!(being_made > 10, "{being_made}");
}

/// A signal handler recorded an event during a realloc, and the trace ends after that event.
#[test]
fn a_trace_that_ends_within_a_realloc_that_was_interrupted() {
    let memory = Memory::new();
    let spool = memory.spool();
    let producers = [Producer::new(), Producer::new()];
    let put = |event: &SpoolEvent| write(&producers[event.thread as usize - 1], spool, event);
    put(&SpoolEvent::new(Kind::Image, 1, 1));
    put(&SpoolEvent { address: 16, ..SpoolEvent::new(Kind::Malloc, 1, 2) });
    put(&SpoolEvent { old: 16, ..SpoolEvent::new(Kind::ReallocBegin, 1, 3) });
    put(&SpoolEvent { address: 32, ..SpoolEvent::new(Kind::Malloc, 1, 4) });
    let mut trace = Trace::default();
    let mut recorder = encode(spool, &mut trace);
    recorder.round(u64::MAX, usize::MAX);
    put(&SpoolEvent { address: 16, ..SpoolEvent::new(Kind::Malloc, 2, 5) });
    put(&SpoolEvent { old: 16, address: 48, ..SpoolEvent::new(Kind::Realloc, 1, 6) });
    let mut has = UnfinishedTrace::default();
    trace.0.iter().for_each(|event| has.note(event));
    let mut rest = encode(spool, &mut trace);
    has.go_on(&mut rest.merge, &mut rest.translator);
    rest.rest(u64::MAX);
    assert_eq!((rest.merge.counted().repairs, trace.check()), (0, 5));
}
