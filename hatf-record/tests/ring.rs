//! The ring under several threads, when it is full, and when a producer is late or gone.
#![expect(clippy::unwrap_used)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hatf_record::{Consumer, Poll, Ring, Words, bytes_for};

/// Memory for a ring.
struct Memory(*mut u8, Layout, u32);

impl Memory {
    fn new(log2: u32) -> Self {
        let layout = Layout::from_size_align(bytes_for(log2), 4096).unwrap();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        // SAFETY: zeroed memory of the ring's size, used through rings only.
        unsafe { Ring::create(memory, log2) };
        Self(memory, layout, log2)
    }

    fn ring(&self) -> Ring<'_> {
        // SAFETY: the memory that `new` made a ring of.
        unsafe { Ring::attach(self.0, bytes_for(self.2)) }.unwrap()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; no ring outlives `self`.
        unsafe { dealloc(self.0, self.1) };
    }
}

fn event(n: u64) -> Words {
    [n, 1, 2, 3, 4, 5, 6]
}

fn give_up() -> bool {
    false
}

#[test]
fn in_order_over_many_laps() {
    let memory = Memory::new(3);
    let mut consumer = Consumer::new(memory.ring());
    for n in 0..100 {
        assert!(memory.ring().push(&event(n), give_up));
        assert_eq!(consumer.poll(), Poll::Event(event(n)));
        assert_eq!(consumer.poll(), Poll::Nothing);
    }
}

#[test]
fn a_full_ring_waits_or_drops() {
    let memory = Memory::new(3);
    let ring = memory.ring();
    let mut consumer = Consumer::new(ring);
    for n in 0..8 {
        assert!(ring.push(&event(n), give_up));
    }
    assert!(consumer.is_full());
    assert!(!ring.push(&event(8), give_up));
    for n in 0..8 {
        assert_eq!(consumer.poll(), Poll::Event(event(n)));
    }
    // Ticket 8 was drawn, and nobody will publish it.
    assert_eq!(consumer.poll(), Poll::Nothing);
    assert!(consumer.behind() == 1 && !consumer.is_full());
    assert!(consumer.skip());
    assert!(consumer.behind() == 0 && !consumer.skip());
    let mut waits = 0;
    for n in 9..30 {
        let pushed = ring.push(&event(n), || {
            waits += 1;
            assert_eq!(consumer.poll(), Poll::Event(event(n - 8)));
            assert_eq!(consumer.poll_until_nothing(), 7);
            true
        });
        assert!(pushed);
    }
    assert_eq!(waits, 2);
}

/// Takes all events there are, and counts them.
trait Drain {
    fn poll_until_nothing(&mut self) -> u64;
}

impl Drain for Consumer<'_> {
    fn poll_until_nothing(&mut self) -> u64 {
        std::iter::from_fn(|| (self.poll() != Poll::Nothing).then_some(1)).sum()
    }
}

#[test]
fn several_at_once_stay_together() {
    let memory = Memory::new(10);
    thread::scope(|scope| {
        for thread in 0..4 {
            let ring = memory.ring();
            scope.spawn(move || {
                for n in 0..20 {
                    assert!(ring.push_all(&[event(thread << 8 | n); 3], give_up));
                }
            });
        }
    });
    let mut consumer = Consumer::new(memory.ring());
    for _ in 0..80 {
        let first = consumer.poll();
        assert!(matches!(first, Poll::Event(_)));
        assert_eq!(consumer.poll(), first);
        assert_eq!(consumer.poll(), first);
    }
    assert_eq!(consumer.poll(), Poll::Nothing);
}

/// Four producers, a small ring, a consumer: every event arrives once, each producer's in order.
#[test]
fn stress() {
    const PRODUCERS: u64 = 4;
    const EACH: u64 = 50_000;
    let memory = Memory::new(6);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let ring = memory.ring();
            scope.spawn(move || {
                for n in 0..EACH {
                    let words = [producer, n, n, n, n, n, n];
                    assert!(ring.push(&words, || {
                        thread::yield_now();
                        true
                    }));
                }
            });
        }
        let mut consumer = Consumer::new(memory.ring());
        let mut next = [0; 4];
        for _ in 0..PRODUCERS * EACH {
            let words = loop {
                match consumer.poll() {
                    Poll::Event(words) => break words,
                    Poll::Lost => panic!("lost"),
                    Poll::Nothing => thread::yield_now(),
                }
            };
            let [producer, n, rest @ ..] = words;
            let producer = usize::try_from(producer).unwrap();
            assert_eq!(next[producer], n);
            assert_eq!(rest, [n; 5]);
            next[producer] += 1;
        }
        assert_eq!(consumer.poll(), Poll::Nothing);
    });
}

/// As above, but the consumer is impatient, and gives up events at random: whatever arrives is whole
/// and in order, and each event arrives, or is counted as lost.
#[test]
fn an_impatient_consumer() {
    const EACH: u64 = 50_000;
    let memory = Memory::new(4);
    let (done, dropped) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let producers: Vec<_> = (0..3)
            .map(|producer| {
                let (ring, dropped) = (memory.ring(), &dropped);
                scope.spawn(move || {
                    for n in 0..EACH {
                        let words = [producer, n, n, n, n, n, n];
                        let pushed = ring.push(&words, || {
                            thread::yield_now();
                            true
                        });
                        dropped.fetch_add(u64::from(!pushed), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let (ring, done) = (memory.ring(), &done);
        let reader = scope.spawn(move || {
            let mut consumer = Consumer::new(ring);
            let (mut arrived, mut lost, mut next) = (0, 0, [0; 3]);
            loop {
                // Before the look: what is published before it is set is then seen.
                let last = done.load(Ordering::SeqCst);
                match consumer.poll() {
                    Poll::Event([producer, n, rest @ ..]) => {
                        arrived += 1;
                        let producer = usize::try_from(producer).unwrap();
                        assert!(next[producer] <= n);
                        assert_eq!(rest, [n; 5]);
                        next[producer] = n + 1;
                    }
                    Poll::Lost => lost += 1,
                    Poll::Nothing if consumer.skip() => lost += 1,
                    Poll::Nothing if last && consumer.behind() == 0 => break,
                    Poll::Nothing => thread::yield_now(),
                }
            }
            (arrived, lost)
        });
        for producer in producers {
            producer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        let (arrived, lost): (u64, u64) = reader.join().unwrap();
        assert_eq!(arrived + lost, 3 * EACH);
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn another_ring_is_refused() {
    let memory = Memory::new(3);
    // SAFETY: the ring's memory, of which less is claimed.
    assert!(unsafe { Ring::attach(memory.0, bytes_for(2)) }.is_none());
    // SAFETY: as above.
    assert!(unsafe { Ring::attach(memory.0, bytes_for(2) + 1) }.is_none());
    // SAFETY: as above.
    assert!(unsafe { Ring::attach(memory.0, 100) }.is_none());
}

/// Whatever a program writes over the ring, both sides go on: they count, and neither overflow nor wait for ever.
#[test]
fn hostile_contents() {
    let patterns = [0, 1, 2, 3, 4, u64::MAX, u64::MAX - 1, u64::MAX - 2, 1 << 63, 0xfdfd_fdfd_fdfd_fdfd];
    for pattern in patterns {
        for log2 in [0, 3] {
            let memory = Memory::new(log2);
            let ring = memory.ring();
            let mut consumer = Consumer::new(ring);
            for n in 0..3 {
                ring.push(&event(n), give_up);
            }
            let words = bytes_for(log2) / 8;
            for n in 0..words {
                // SAFETY: a word of the ring's memory, written as another process may.
                unsafe { (*memory.0.cast::<AtomicU64>().add(n)).store(pattern, Ordering::Relaxed) };
            }
            // SAFETY: the ring's memory, whose head is not what it was.
            assert!(unsafe { Ring::attach(memory.0, bytes_for(log2)) }.is_none());
            for n in 0..40 {
                ring.push_all(&[event(n); 3], give_up);
                let _ = (consumer.poll(), consumer.is_full(), consumer.skip(), consumer.take_wake());
            }
            assert!(consumer.consumed() <= 80);
        }
    }
}
