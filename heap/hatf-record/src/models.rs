//! Models of the spool, with threads that write events, `hatf`, which makes chunks ready and reads them, and a process
//! that retires chunks.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sync::model::{model, spawn};

use crate::clock::Clock;
use crate::event::{Kind, SpoolEvent};
use crate::layout::CHUNK_BYTES;
use crate::producer::{Owner, Producer};
use crate::spool::{Spool, bytes_for};
use crate::stream::{Next, Stream};
use crate::sync::Ordering;

/// Slots of a chunk that threads share in a model.
const SLOTS: usize = 6;

/// Waits until no other model has a session, of which there is one per process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static SESSION: Mutex<()> = Mutex::new(());
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a spool that is never freed.
pub(crate) fn spool(chunks: usize) -> Spool<'static> {
    let layout = Layout::from_size_align(bytes_for(chunks), CHUNK_BYTES).unwrap();
    // SAFETY: zeros of that length and alignment, never freed.
    unsafe { Spool::create(alloc_zeroed(layout), chunks) }
}

/// Shares the parts of a spool that threads access.
pub(crate) fn share(spool: Spool<'_>) {
    spool.share(SLOTS);
}

/// Reads the events of a thread in a chunk.
pub(crate) fn events(spool: Spool<'_>, chunk: usize) -> Vec<SpoolEvent> {
    let mut stream = Stream::new(spool.chunk(chunk).unwrap(), 1, 0);
    let (mut events, mut text) = (Vec::new(), Vec::new());
    while let Next::Event(event) = stream.next(&mut text) {
        events.push(event);
    }
    events
}

/// A thread writes events while `hatf` reads them and makes another chunk ready. The reader finds a prefix of the
/// events, complete and in order, and in the end all events except those counted as lost.
#[test]
fn what_is_read_was_written() {
    const EVENTS: u64 = 3;
    let spool = spool(2);
    assert!(spool.make_ready(0));
    let check = move |chunk: usize| {
        let events = events(spool, chunk);
        for (number, event) in (1..).zip(&events) {
            assert_eq!((event.kind, event.size, event.address), (Kind::Malloc, number, number << 12));
        }
        events.len() as u64
    };
    model(2, move || {
        share(spool);
        let writer = spawn(move || {
            let mut written = 0;
            // Leak the producer so that nothing else receives its address.
            let producer: &Producer = Box::leak(Box::default());
            if let Some(taken) = spool.take() {
                let owner = Owner { thread: 1, process: 2, image: 3, task: 4 };
                producer.install(&spool.chunk(taken).unwrap(), owner, 5, 6);
                for number in 1..=EVENTS {
                    // SAFETY: the spool stays mapped.
                    written += u64::from(unsafe { producer.put(Clock::Monotonic, Kind::Malloc, number, number << 12) });
                }
            }
            written
        });
        let hatf = spawn(move || {
            assert!(spool.make_ready(1));
            for chunk in spool.taken() {
                let head = spool.chunk(chunk).unwrap().head();
                let owner = head.owner.load(Ordering::Acquire);
                if owner != 0 {
                    assert_eq!((owner, head.stamp.load(Ordering::Relaxed)), (1, 5));
                    assert_eq!(
                        (head.image.load(Ordering::Relaxed), head.task.load(Ordering::Relaxed)),
                        (3 << 32 | 2, 4)
                    );
                }
                check(chunk);
            }
        });
        let written = writer.join().unwrap();
        hatf.join().unwrap();
        assert_eq!(written, EVENTS);
        assert_eq!(spool.taken().map(check).sum::<u64>(), written);
        assert_eq!(spool.ready(), 1);
    });
}

/// Two threads request chunks while `hatf` makes one ready and the process retires one: each chunk is used only once.
#[test]
fn a_chunk_is_given_to_one_thread() {
    let spool = spool(3);
    assert!(spool.make_ready(0) && spool.make_ready(1));
    model(2, move || {
        share(spool);
        let takers = [(); 2].map(|()| spawn(move || spool.take()));
        let other = spawn(move || (spool.give_up(1), spool.make_ready(2)));
        let mut taken: Vec<_> = takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect();
        let (is_given_up, is_made) = other.join().unwrap();
        assert!(is_made);
        assert!(!taken.is_empty(), "a chunk is ready at any time");
        taken.sort_unstable();
        assert_eq!(spool.taken().collect::<Vec<_>>(), taken, "each chunk is taken once");
        assert!(!is_given_up || !taken.contains(&1));
        assert_eq!(spool.ready(), 3 - taken.len() - usize::from(is_given_up));
    });
}
