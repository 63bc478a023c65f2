//! Tests of operations compiled from arbitrary traces.

use proptest::prelude::*;

use super::compile::{Compiler, Cut, Operations, Repairs};
use super::mapped::Words;
use super::operation::{Kind, Operation};
use hatf_trace::event::{Call, Event, EventKind, EventSink as _, Function};

fn compiled(cut: Cut, events: &[Event<'_>]) -> hatf_trace::Result<Operations> {
    let mut compiler = Compiler::new(cut)?;
    events.iter().try_for_each(|event| compiler.event(event))?;
    compiler.finish()
}

/// Returns the operations of each thread.
fn streams(operations: &Operations) -> Vec<Vec<Operation>> {
    let (words, _, blocks) = Words::open(&operations.path()).unwrap();
    let stream = |blocks: &Vec<(u64, u64)>| {
        let words = blocks.iter().flat_map(|block| words.block(*block));
        words.map(|words| Operation::from_words(words).unwrap()).collect()
    };
    blocks.iter().map(stream).collect()
}

fn malloc(address: u64, size: u64) -> Event<'static> {
    Event::new(EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) }))
}

fn realloc(old: u64, address: u64, size: u64) -> Event<'static> {
    Event::new(EventKind::Call(Call { old, address, size, ..Call::new(Function::Realloc) }))
}

fn free(address: u64) -> Event<'static> {
    Event::new(EventKind::Free { address })
}

fn by(thread: u64, event: Event<'static>) -> Event<'static> {
    Event { thread, ..event }
}

fn short(operation: &Operation) -> (Kind, u64, u32, u32) {
    let Operation { kind, size, slot, turn, .. } = *operation;
    (kind, size, slot, turn)
}

#[test]
fn threads_take_turns() {
    let events =
        [by(7, malloc(16, 5)), by(9, realloc(16, 32, 8)), by(7, malloc(16, 1)), by(9, free(16)), by(7, free(32))];
    let operations = compiled(Cut::default(), &events).unwrap();
    let seen: Vec<Vec<_>> = streams(&operations).iter().map(|stream| stream.iter().map(short).collect()).collect();
    let first = vec![
        (Kind::Begin, 0, 0, 0),
        (Kind::Malloc, 5, 0, 0),
        (Kind::Start, 0, 1, 0),
        (Kind::Malloc, 1, 1, 0),
        (Kind::Free, 8, 0, 2),
    ];
    assert_eq!(seen, [first, vec![(Kind::Realloc, 8, 0, 1), (Kind::Free, 1, 1, 1)]]);
    let summary = &operations.summary;
    assert_eq!((summary.operations, summary.most_live, summary.most_live_bytes), (5, 2, 9));
    let one = compiled(Cut { one_thread: true, ..Cut::default() }, &events).unwrap();
    assert_eq!((streams(&one).len(), one.summary.operations), (1, 5));
}

#[test]
fn a_cut_sets_up_what_is_live() {
    let events = [malloc(16, 5), malloc(32, 6), free(16), malloc(48, 7), free(32), free(48)];
    let cut = Cut { from: Some(4), to: Some(5), ..Cut::default() };
    let operations = compiled(cut, &events).unwrap();
    let seen: Vec<_> = streams(&operations).concat().iter().map(short).collect();
    let expected = [(Kind::Malloc, 6, 1, 0), (Kind::Begin, 0, 0, 0), (Kind::Malloc, 7, 0, 0), (Kind::Free, 6, 1, 1)];
    assert_eq!(seen, expected);
    assert_eq!((operations.summary.set_up, operations.summary.live_bytes_at_end), (1, 7));
    let none = compiled(Cut { from: Some(7), ..Cut::default() }, &events).unwrap_err();
    assert_eq!(none.to_string(), "record 7 does not exist: the trace has only 6 records");
}

#[test]
fn what_no_correct_program_does() {
    let odd: [(&[Event<'_>], &str); 4] = [
        (&[malloc(16, 1), free(32)], "event 2: free of 0x20, which is not live"),
        (&[realloc(16, 32, 4)], "event 1: realloc of 0x10, which is not live"),
        (&[malloc(16, 1), malloc(16, 2)], "event 2: malloc returns 0x10, which is already live"),
        (&[malloc(16, u64::MAX)], "event 1: malloc of unknown size"),
    ];
    let mut repairs = Repairs::default();
    for (events, says) in odd {
        let error = compiled(Cut::default(), events).unwrap_err().to_string();
        assert_eq!(error, format!("{says}; to replay the trace anyway, use --repair"));
        let mended = compiled(Cut { repair: true, ..Cut::default() }, events).unwrap().summary.repairs;
        repairs.unknown_frees += mended.unknown_frees;
        repairs.unknown_reallocs += mended.unknown_reallocs;
        repairs.addresses_twice += mended.addresses_twice;
        repairs.unknown_sizes += mended.unknown_sizes;
    }
    assert_eq!(repairs, Repairs { unknown_frees: 1, unknown_reallocs: 1, addresses_twice: 1, unknown_sizes: 1 });
}

#[test]
fn heaps_phases_and_waits() {
    let image = Event { time: 30, ..Event::new(EventKind::Image { process: 1, path: b"next" }) };
    let phase = Event { time: 20, ..Event::new(EventKind::PhaseEnd { name: b"load" }) };
    let events = [Event { time: 10, ..malloc(16, 5) }, Event { time: 18, ..malloc(32, 5) }, phase, image];
    let operations = compiled(Cut { think: Some(0.5), ..Cut::default() }, &events).unwrap();
    let kinds: Vec<_> = streams(&operations).concat().iter().map(|of| (of.kind, of.size)).collect();
    let (wait, malloc, free) = (Kind::Wait, (Kind::Malloc, 5), (Kind::Free, 5));
    let expected = [
        (Kind::Begin, 0),
        (wait, 0),
        malloc,
        (wait, 4),
        malloc,
        (Kind::PhaseEnd, 0),
        (wait, 10),
        free,
        (wait, 10),
        free,
    ];
    assert_eq!(kinds, expected);
    assert_eq!((operations.summary.ended_with_heap, &operations.summary.phases[..]), (2, &["load".to_owned()][..]));
}

proptest! {
    /// Any repaired trace can be replayed. The turns of each slot start at 0, in an order in which every thread can
    /// proceed. A block is live when it is freed or reallocated, and not live when it is allocated.
    #[test]
    fn any_trace_can_be_replayed(
        calls in proptest::collection::vec((0_u8..8, 0_u64..12, 0_u64..12, 0_u64..3), 0..200),
        one_thread: bool,
        from in 0_u64..100,
    ) {
        let events: Vec<_> = calls.iter().map(|&(kind, a, b, thread)| by(thread, match kind {
            0..3 => malloc(16 * a + 16, b),
            3 | 4 => free(16 * a),
            5 => realloc(16 * a, 16 * b, 7),
            6 => Event::new(EventKind::ReallocBegin { old: 16 * a }),
            _ => Event::new(EventKind::ReallocEnd(Call { address: 16 * b, size: a, ..Call::new(Function::Realloc) })),
        })).collect();
        let cut = Cut { repair: true, one_thread, from: (from > 0).then_some(from), ..Cut::default() };
        let Ok(operations) = compiled(cut, &events) else { return Ok(()) };
        let mut streams: Vec<_> = streams(&operations).into_iter().map(|stream| stream.into_iter().peekable()).collect();
        let mut slots = vec![(false, 0); usize::try_from(operations.summary.most_live).unwrap()];
        let (mut started, mut calls) = (1, 0);
        // Runs the threads in turn. If no thread can proceed, they would wait for each other forever.
        loop {
            let mut went_on = false;
            for stream in &mut streams[..started] {
                let ready = |slots: &[(bool, u32)], of: &Operation| !of.kind.is_call() || slots[of.slot as usize].1 == of.turn;
                while let Some(of) = stream.next_if(|of| ready(&slots, of)) {
                    went_on = true;
                    started += usize::from(of.kind == Kind::Start);
                    if of.kind.is_call() {
                        let (there, turn) = &mut slots[of.slot as usize];
                        prop_assert_eq!(*there, matches!(of.kind, Kind::Free | Kind::Realloc));
                        *there = of.kind != Kind::Free;
                        *turn += 1;
                        calls += 1;
                    }
                }
            }
            if !went_on {
                break;
            }
        }
        prop_assert!(streams.iter_mut().all(|stream| stream.peek().is_none()));
        prop_assert_eq!(calls, operations.summary.operations + operations.summary.set_up);
    }
}
