//! A spool under several threads, when it is full, and after another process has overwritten it.
#![expect(clippy::unwrap_used)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use hatf_record::{
    CHUNK_BYTES, CHUNK_SLOTS, Clock, Kind, Next, Owner, Producer, Spool, SpoolEvent, Stream, bytes_for, offset_of,
};

/// Memory for a spool.
struct Memory(*mut u8, Layout, usize);

impl Memory {
    fn new(chunks: usize) -> Self {
        let layout = Layout::from_size_align(bytes_for(chunks), CHUNK_BYTES).unwrap();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        // SAFETY: zeroed memory of the spool's size, used through spools only.
        let spool = unsafe { Spool::create(memory, chunks) };
        for chunk in 0..chunks {
            assert!(spool.make_ready(chunk));
        }
        Self(memory, layout, chunks)
    }

    fn spool(&self) -> Spool<'_> {
        // SAFETY: the memory in which `new` created a spool.
        unsafe { Spool::attach(self.0, bytes_for(self.2)) }.unwrap()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no spool outlives `self`.
        unsafe { dealloc(self.0, self.1) };
    }
}

fn owner(thread: u32) -> Owner {
    Owner { thread, process: 7, image: 1, task: 9 }
}

/// Writes an event like the recorder, waiting for a chunk if there is none.
fn put(producer: &Producer, spool: Spool<'_>, event: &SpoolEvent) {
    // SAFETY: the memory stays.
    let put = || unsafe {
        let short = !event.kind.has_numbers();
        if short && producer.put(Clock::Monotonic, event.kind, event.size, event.address) {
            return true;
        }
        let (slots, used) = event.to_slots();
        producer.put_slots(Clock::Monotonic.now(), &slots[..used])
    };
    while !put() {
        match spool.take() {
            Some(chunk) => {
                producer.install(&spool.chunk(chunk).unwrap(), owner(event.thread), Clock::Monotonic.now(), 1);
            }
            None => thread::yield_now(),
        }
    }
}

/// Returns an event of a thread. All encodings occur.
fn event(thread: u32, n: u64) -> SpoolEvent {
    let event = |kind| SpoolEvent { size: n, address: n * 16, ..SpoolEvent::new(kind, thread, 0) };
    match n % 7 {
        0 => SpoolEvent { extra: n, old: 5, ..event(Kind::Realloc) },
        1 => SpoolEvent { size: u64::MAX - n, ..event(Kind::Malloc) },
        2 => SpoolEvent { extra: n, ..event(Kind::Calloc) },
        _ => event(Kind::Malloc),
    }
}

/// Several threads reuse a few chunks: each event arrives once, and the events of each thread arrive in order.
#[test]
fn stress() {
    const THREADS: u32 = 4;
    const EACH: u64 = 60_000;
    let memory = Memory::new(6);
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let spool = memory.spool();
            scope.spawn(move || {
                let producer = Producer::new();
                (0..EACH).for_each(|n| put(&producer, spool, &event(thread, n)));
            });
        }
        let spool = memory.spool();
        // The position in each chunk in use, and for each thread the next chunk and the next event.
        let mut places: HashMap<usize, (u32, Stream<'_>, u32)> = HashMap::new();
        let mut next: HashMap<u32, (u32, u64, u64)> = (1..=THREADS).map(|thread| (thread, (0, 0, 0))).collect();
        let mut text = Vec::new();
        while next.values().any(|(_, n, _)| *n < EACH) {
            for chunk in spool.taken() {
                let view = spool.chunk(chunk).unwrap();
                let owner = view.head().owner.load(Ordering::Acquire);
                let (thread, number) = ((owner & 0xffff_ffff) as u32, (owner >> 32) as u32);
                if thread == 0 {
                    continue;
                }
                let stamp = view.head().stamp.load(Ordering::Relaxed);
                let (_, stream, number) =
                    places.entry(chunk).or_insert_with(|| (thread, Stream::new(view, thread, stamp), number));
                let (expected, n, last) = next.get_mut(&thread).unwrap();
                if *number != *expected {
                    continue;
                }
                loop {
                    match stream.next(&mut text) {
                        Next::Event(found) => {
                            assert!(found.time >= *last, "{found:?} after {last}");
                            *last = found.time;
                            assert_eq!(found, SpoolEvent { time: found.time, ..event(thread, *n) });
                            *n += 1;
                        }
                        Next::Nothing => break,
                        Next::End => {
                            *expected += 1;
                            places.remove(&chunk);
                            view.clear();
                            spool.give_back(chunk);
                            assert!(spool.make_ready(chunk));
                            break;
                        }
                    }
                }
            }
            thread::yield_now();
        }
    });
}

#[test]
fn a_full_spool_has_no_chunk() {
    let memory = Memory::new(3);
    let spool = memory.spool();
    let taken: Vec<_> = (0..3).map(|_| spool.take().unwrap()).collect();
    assert_eq!((spool.take(), spool.ready()), (None, 0));
    assert_eq!(spool.taken().count(), 3);
    spool.give_back(taken[1]);
    assert_eq!((spool.take(), spool.take_absent()), (None, Some(taken[1])));
    spool.give_back(taken[1]);
    assert!(spool.make_ready(taken[1]) && !spool.make_ready(taken[0]));
    assert_eq!(spool.take(), Some(taken[1]));
    assert!(!spool.wakes());
    spool.header().waiting.store(1, Ordering::SeqCst);
    assert!(spool.wakes());
}

/// A thread that drops events counts them, and its cursor does not advance.
#[test]
fn events_without_room() {
    let memory = Memory::new(1);
    let producer = Producer::new();
    for _ in 0..10_000 {
        // SAFETY: there is no chunk.
        assert!(!unsafe { producer.put(Clock::Monotonic, Kind::Malloc, 1, 16) });
        producer.lose();
        assert!(!producer.has_room());
    }
    assert_eq!((producer.take_lost(), producer.take_lost()), (10_000, 0));
    let spool = memory.spool();
    put(&producer, spool, &event(1, 3));
    assert!(producer.has_room());
}

/// A second chunk, as if a signal handler and its thread both installed one: it stays empty and is marked as such.
#[test]
fn a_chunk_too_many_stays_empty() {
    let memory = Memory::new(2);
    let (spool, producer) = (memory.spool(), Producer::new());
    let chunks = [spool.take().unwrap(), spool.take().unwrap()].map(|chunk| spool.chunk(chunk).unwrap());
    for chunk in &chunks {
        producer.install(chunk, owner(1), 100, 1);
    }
    put(&producer, spool, &event(1, 3));
    let next = |chunk| Stream::new(chunk, 1, 100).next(&mut Vec::new());
    assert!(matches!(next(chunks[0]), Next::Event(_)));
    assert_eq!(next(chunks[1]), Next::End);
    assert_eq!(chunks[1].head().owner.load(Ordering::Relaxed), 1 | 1 << 32);
}

/// Stamps are restored correctly, however long the gap between events.
#[test]
fn stamps_far_apart() {
    let memory = Memory::new(2);
    let (spool, producer) = (memory.spool(), Producer::new());
    let stamps = [5, 6, 1 << 31, (1 << 31) + 1, 1 << 33, (1 << 33) + 7, 1 << 62, (1 << 62) + (1 << 31), u64::MAX - 1];
    producer.install(&spool.chunk(spool.take().unwrap()).unwrap(), owner(1), stamps[0], 1);
    for stamp in stamps {
        let (slots, used) = event(1, 3).to_slots();
        let mut first = slots;
        first[0][1] = first[0][1] >> 32 << 32 | stamp & 0xffff_ffff;
        // SAFETY: the memory stays.
        assert!(unsafe { producer.put_slots(stamp, &first[..used]) });
    }
    let mut stream = Stream::new(spool.chunk(spool.taken().next().unwrap()).unwrap(), 1, stamps[0]);
    for stamp in stamps {
        let Next::Event(found) = stream.next(&mut Vec::new()) else { panic!("no event at {stamp}") };
        assert_eq!(found.time, stamp);
    }
}

#[test]
fn another_spool_is_refused() {
    let memory = Memory::new(3);
    // A part of the spool is sufficient if it contains a chunk.
    for (bytes, mapped) in [(bytes_for(3), Some(3)), (offset_of(3, 1), Some(1)), (offset_of(3, 0), None), (100, None)] {
        // SAFETY: the spool's memory, of which a smaller part is claimed.
        let spool = unsafe { Spool::attach(memory.0, bytes) };
        assert_eq!(spool.map(|spool| spool.mapped()), mapped, "{bytes}");
    }
}

/// Whatever a program writes over the spool, both sides continue.
#[test]
fn hostile_contents() {
    let patterns =
        [0, 1, 2, 3, 4, 19, 20, 21, 22, u64::MAX, u64::MAX - 1, 1 << 63, 0xfdfd_fdfd_fdfd_fdfd, 0x020e, 0x0204];
    for pattern in patterns {
        let memory = Memory::new(2);
        let (spool, producer) = (memory.spool(), Producer::new());
        put(&producer, spool, &event(1, 3));
        for n in 0..bytes_for(2) / 8 {
            // SAFETY: a word in the spool's memory, written as another process may.
            unsafe { (*memory.0.cast::<AtomicU64>().add(n)).store(pattern, Ordering::Relaxed) };
        }
        // SAFETY: the spool's memory, whose header was overwritten.
        assert!(unsafe { Spool::attach(memory.0, bytes_for(2)) }.is_none());
        for n in 0..3 * CHUNK_SLOTS as u64 {
            let (slots, used) = event(1, n).to_slots();
            // SAFETY: the memory stays.
            if !unsafe { producer.put_slots(n, &slots[..used]) } {
                let _ = (spool.take(), spool.take_absent(), spool.ready(), spool.wakes());
            }
        }
        for chunk in 0..2 {
            let mut stream = Stream::new(spool.chunk(chunk).unwrap(), 1, pattern);
            let mut text = Vec::new();
            let events = std::iter::from_fn(|| matches!(stream.next(&mut text), Next::Event(_)).then_some(()));
            assert!(events.count() <= CHUNK_SLOTS);
            let _ = (stream.gap(), stream.skip_gap());
        }
    }
}
