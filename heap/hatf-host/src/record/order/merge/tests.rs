//! Tests of the order of simulated threads' events, and of some manually written events.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hatf_record::{CHUNK_SLOTS, Producer};

use super::super::simulated::{Machine, Memory, Random, write};
use super::*;

/// A check that events are passed on in a possible order.
#[derive(Default)]
struct Checked {
    live: HashSet<u64>,
    begun: HashMap<u32, u64>,
    given: u64,
}

impl Checked {
    fn check(&mut self, event: &SpoolEvent) {
        self.given += u64::from(event.kind != Kind::ReallocBegin);
        match event.kind {
            Kind::Malloc => assert!(self.live.insert(event.address), "{event:?} is live"),
            Kind::Free => assert!(self.live.remove(&event.address), "{event:?} is not live"),
            Kind::ReallocBegin => {
                assert!(self.live.remove(&event.old), "{event:?} is not live");
                self.begun.insert(event.thread, event.old);
            }
            Kind::Realloc => {
                assert_eq!(self.begun.remove(&event.thread), Some(event.old));
                assert!(self.live.insert(event.address), "{event:?} is live");
            }
            _ => panic!("{event:?}"),
        }
    }
}

/// Simulates this many threads and a reader that runs from time to time and passes on events older than `lag`. Returns
/// the number of repairs.
fn simulate(threads: usize, steps: u64, skew: u64, lag: u64, seed: u64) -> u64 {
    let mut random = Random(seed | 1);
    let memory = Memory::new();
    let mut machine = Machine::new(memory.spool(), threads, skew, &mut random);
    let (mut merge, mut checked) = (Merge::new(memory.spool()), Checked::default());
    let mut running = 0;
    for step in 0..steps {
        // The same thread continues in most cases, because a preempted thread remains preempted for a while.
        if random.below(4) == 0 {
            running = usize::try_from(random.below(threads as u64)).unwrap();
        }
        machine.step(running, &mut random);
        if step % 97 == 0 {
            merge.discover();
            merge.look();
            merge.give(machine.now.saturating_sub(lag), 1000, |event, _, _| checked.check(event));
        }
    }
    loop {
        merge.discover();
        merge.look();
        if merge.give(u64::MAX, usize::MAX, |event, _, _| checked.check(event)) == 0 {
            break;
        }
    }
    assert!(!merge.skip_gaps(false) && !merge.give_up_holding());
    assert_eq!(checked.given, machine.written);
    merge.counted().repairs
}

#[test]
fn clocks_that_agree_need_no_repair() {
    for seed in 1..60 {
        for threads in [1, 2, 3, 8] {
            assert_eq!(simulate(threads, 20_000, 0, 50, seed * 0x9e37_79b9), 0, "seed {seed}, {threads} threads");
        }
    }
    assert_eq!(simulate(64, 300_000, 0, 50, 7), 0);
}

/// Clocks differ by a few steps: a CPU may read its clock too early by up to the duration of a call.
#[test]
fn clocks_that_differ_are_repaired() {
    let mut repairs = 0;
    for seed in 1..100 {
        for threads in [2, 3, 8] {
            repairs += simulate(threads, 20_000, 3, 50, seed * 0x9e37_79b9);
        }
    }
    repairs += simulate(64, 300_000, 3, 50, 7);
    assert!(repairs > 100, "{repairs}");
}

/// Frees of blocks that were never seen are not held.
#[test]
fn blocks_from_before_the_recording() {
    let memory = Memory::new();
    let producers = [Producer::new(), Producer::new()];
    for n in 0..1000 {
        for thread in [1, 2] {
            let event = SpoolEvent {
                address: (u64::from(thread) << 32) + n * 16,
                ..SpoolEvent::new(Kind::Free, thread, 100 + n)
            };
            write(&producers[thread as usize - 1], memory.spool(), &event);
        }
    }
    let mut merge = Merge::new(memory.spool());
    merge.discover();
    merge.look();
    assert_eq!(merge.give(u64::MAX, usize::MAX, |_, _, _| {}), 2000);
    assert_eq!(merge.counted().repairs, 0);
}

/// Events that contradict each other in any order are all passed on.
#[test]
fn what_cannot_be_put_right_is_given_all_the_same() {
    let memory = Memory::new();
    let producers = [Producer::new(), Producer::new()];
    let event = |kind, thread, time, address| SpoolEvent { address, ..SpoolEvent::new(kind, thread, time) };
    for event in [
        event(Kind::Malloc, 1, 10, 0x10),
        event(Kind::Malloc, 1, 11, 0x20),
        // Each of the two threads waits for a later event of the other thread.
        event(Kind::Malloc, 1, 20, 0x10),
        event(Kind::Free, 1, 30, 0x20),
        event(Kind::Malloc, 2, 21, 0x20),
        event(Kind::Free, 2, 31, 0x10),
    ] {
        write(&producers[event.thread as usize - 1], memory.spool(), &event);
    }
    let mut merge = Merge::new(memory.spool());
    let mut given = 0;
    loop {
        merge.discover();
        merge.look();
        given += merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        if !merge.give_up_holding() {
            break;
        }
    }
    assert_eq!((given, merge.counted().contradictions > 0), (6, true));
}

/// A slot that was reserved but never written blocks its thread until it is skipped.
#[test]
fn a_slot_that_is_never_written() {
    let memory = Memory::new();
    let producer = Producer::new();
    for n in 0..3 {
        write(
            &producer,
            memory.spool(),
            &SpoolEvent { address: 16 + n * 16, ..SpoolEvent::new(Kind::Malloc, 1, 10 + n) },
        );
    }
    let chunk = memory.spool().chunk(memory.spool().taken().next().unwrap()).unwrap();
    chunk.write(1, &[[0, 0]]);
    let mut merge = Merge::new(memory.spool());
    merge.discover();
    merge.look();
    assert_eq!(merge.give(u64::MAX, usize::MAX, |_, _, _| {}), 1);
    merge.look();
    assert!(merge.skip_gaps(false));
    merge.look();
    assert_eq!(merge.give(u64::MAX, usize::MAX, |_, _, _| {}), 1);
    assert!(!merge.skip_gaps(false));
    assert_eq!(merge.counted().gaps, 1);
}

/// A killed process may leave the last event of a thread without its first slot. The call had not returned.
#[test]
fn an_unfinished_event_is_not_lost() {
    for (another, ended, gaps) in [(false, true, 0), (false, false, 1), (true, true, 1)] {
        let memory = Memory::new();
        let producer = Producer::new();
        let event = |kind| SpoolEvent { size: 8, address: 16, ..SpoolEvent::new(kind, 1, 10) };
        write(&producer, memory.spool(), &event(Kind::Malloc));
        // An event of two slots.
        write(&producer, memory.spool(), &event(Kind::Memalign));
        if another {
            write(&producer, memory.spool(), &event(Kind::Malloc));
        }
        let chunk = memory.spool().chunk(memory.spool().taken().next().unwrap()).unwrap();
        assert!(chunk.slot(2).is_some() && chunk.slot(3).is_some() == another);
        chunk.write(1, &[[0, 0]]);
        let mut merge = Merge::new(memory.spool());
        merge.discover();
        merge.look();
        let mut given = merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        merge.look();
        assert!(merge.skip_gaps(ended));
        merge.look();
        given += merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        assert_eq!((merge.counted().gaps, given), (gaps, 1 + usize::from(another)));
    }
}

/// A thread that is interrupted often has a gap at every look. Only a gap that stays is skipped.
#[test]
fn gaps_that_are_filled() {
    let memory = Memory::new();
    let producer = Producer::new();
    for n in 0..6 {
        let event = SpoolEvent { address: 16 + n * 16, ..SpoolEvent::new(Kind::Malloc, 1, 10 + n) };
        write(&producer, memory.spool(), &event);
    }
    let chunk = memory.spool().chunk(memory.spool().taken().next().unwrap()).unwrap();
    let slots: [_; 6] = std::array::from_fn(|number| chunk.slot(number).unwrap());
    (0..6).for_each(|number| chunk.write(number, &[[0, 0]]));
    let mut merge = Merge::new(memory.spool());
    let (begun, patience) = (Instant::now(), Duration::from_secs(1));
    let mut look = |seconds| {
        merge.discover();
        merge.look();
        merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        merge.look();
        merge.skip_lasting_gaps(begun + patience * seconds, patience);
        merge.counted().gaps
    };
    for (seconds, missing) in [(0, 0), (1, 2), (2, 4)] {
        chunk.write(missing + 1, &[slots[missing + 1]]);
        assert_eq!(look(seconds), 0, "slot {missing} is missing for the first time");
        if missing < 4 {
            chunk.write(missing, &[slots[missing]]);
        }
    }
    assert_eq!((look(3), look(4)), (1, 1));
}

/// A chunk stays empty if a signal handler installs another one while the thread takes it. At the end of the process,
/// the handler's chunk may be the last one with events, and nothing is missing.
#[test]
fn a_chunk_that_stays_empty() {
    let memory = Memory::new();
    let producer = Producer::new();
    let event = SpoolEvent { address: 16, ..SpoolEvent::new(Kind::Malloc, 1, 10) };
    write(&producer, memory.spool(), &event);
    let empty = memory.spool().chunk(memory.spool().take().unwrap()).unwrap();
    let owner = hatf_record::Owner { thread: 1, process: 1, image: 1, task: 1 };
    assert_eq!(producer.install(&empty, owner, 10, 10), empty.first());
    let gaps = || {
        let mut merge = Merge::new(memory.spool());
        merge.discover();
        merge.look();
        let mut given = merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        merge.look();
        while merge.skip_gaps(true) {
            merge.look();
            given += merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        }
        (merge.counted().gaps, given)
    };
    assert_eq!(gaps(), (0, 1));
    // With an event in the later chunk, the end of the earlier one is missing.
    let first = memory.spool().chunk(memory.spool().taken().next().unwrap()).unwrap();
    empty.write(1, &[first.slot(0).unwrap()]);
    empty.write(0, &[[Kind::Nothing as u64, 0]]);
    assert_eq!(gaps(), (1, 2));
}

/// A thread that jumped away while it took a chunk has no chunk with that number.
#[test]
fn a_chunk_that_is_never_there() {
    let memory = Memory::new();
    let producer = Producer::new();
    let mut written = 0;
    while memory.spool().taken().count() < 3 {
        write(&producer, memory.spool(), &SpoolEvent { address: 16, ..SpoolEvent::new(Kind::Malloc, 1, 10 + written) });
        written += 1;
    }
    let second = memory.spool().chunk(memory.spool().taken().nth(1).unwrap()).unwrap();
    second.head().owner.store(0, Relaxed);
    let mut merge = Merge::new(memory.spool());
    merge.discover();
    merge.look();
    let before = merge.give(u64::MAX, usize::MAX, |_, _, _| {}) as u64;
    merge.look();
    assert!(merge.skip_gaps(false));
    merge.look();
    assert_eq!(merge.give(u64::MAX, usize::MAX, |_, _, _| {}), 1);
    assert_eq!((merge.counted().gaps, written), (1, 2 * before + 1));
}

/// A trace contains the beginning of a realloc only if another thread received the old block, so the chunk is not
/// returned before the end of the realloc.
#[test]
fn a_chunk_that_ends_within_a_realloc() {
    let memory = Memory::new();
    let producer = Producer::new();
    let mut merge = Merge::new(memory.spool());
    let write = |kind, count: u64| {
        for _ in 0..count {
            let address = if kind == Kind::ReallocBegin { 0 } else { 32 };
            write(&producer, memory.spool(), &SpoolEvent { address, old: 16, ..SpoolEvent::new(kind, 1, 10) });
        }
    };
    let finished = |merge: &mut Merge<'_>| {
        merge.discover();
        merge.look();
        merge.give(u64::MAX, usize::MAX, |_, _, _| {});
        merge.finished()
    };
    let slots = CHUNK_SLOTS as u64;
    let used = SpoolEvent { old: 16, ..SpoolEvent::new(Kind::ReallocBegin, 1, 10) }.to_slots().1 as u64;
    write(Kind::Free, slots - used);
    write(Kind::ReallocBegin, 1);
    assert_eq!(finished(&mut merge), 0);
    write(Kind::Realloc, 1);
    write(Kind::Free, slots);
    assert_eq!(finished(&mut merge), 2);
}
