//! Pushes events into a session's spool, the last of the three steps of recording an event (see `events/record.rs`).

use core::sync::atomic::Ordering;

use super::session::Session;
use crate::bell::Work;
use crate::clock::nanoseconds;
use crate::event::{Flags, Kind, NUMBERS_MAX, SLOTS_MAX, Slot, SpoolEvent, TEXT_MAX, text_slots};
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::platform::{process, thread_key, thread_name, thread_state};
use crate::producer::Owner;

/// Records an event that consists of a size and an address in one slot of the thread's chunk. Returns `false` if the
/// event does not fit or there is no room.
#[inline(always)]
pub(crate) fn in_one_slot(session: &Session, state: &ThreadState, kind: Kind, size: u64, address: u64) -> bool {
    // SAFETY: the spool stays mapped. A thread without a chunk has no room, and receives its number with its first
    // chunk.
    unsafe { state.producer.put(session.clock, kind, size, address) }
}

/// Records an event, whose time is a stamp, and its string. A string longer than [`TEXT_MAX`] bytes is truncated.
#[cold]
pub(crate) fn event(session: &Session, mut event: SpoolEvent, text: &[u8]) {
    let text = text.get(..TEXT_MAX).unwrap_or(text);
    event.size = text.len() as u64;
    let (numbers, used) = event.to_slots();
    let (texts, of_text) = text_slots(text);
    let mut slots: [Slot; SLOTS_MAX] = [[0; 2]; _];
    let parts = numbers.iter().take(used).chain(texts.iter().take(of_text));
    for (slot, part) in slots.iter_mut().zip(parts) {
        *slot = *part;
    }
    put(session, event.time, slots.get(..used + of_text).unwrap_or_default());
    session.spool.header().ring(Work::Events);
}

/// Records an event without a string.
pub(crate) fn numbers(session: &Session, event: &SpoolEvent) {
    let (slots, used): ([Slot; NUMBERS_MAX], usize) = event.to_slots();
    put(session, event.time, slots.get(..used).unwrap_or_default());
}

/// Records a call and its additional data.
pub(crate) fn with_about(session: &Session, event: &SpoolEvent) {
    let mut slots: [Slot; NUMBERS_MAX + 1] = [[0; 2]; _];
    let (numbers, used) = event.to_slots();
    let about = event.about.slot(event.time);
    for (slot, part) in slots.iter_mut().zip([about].iter().chain(numbers.iter().take(used))) {
        *slot = *part;
    }
    put(session, event.time, slots.get(..=used).unwrap_or_default());
}

/// Records the start or end of the calling thread.
pub(crate) fn thread_event(session: &Session, kind: Kind, creator: u32, flags: Flags) {
    let mut thread = SpoolEvent::new(kind, thread_state::current().id.get(), session.clock.now());
    thread.flags = flags;
    if kind == Kind::ThreadStart {
        thread.extra = u64::from(creator);
        thread.address = process::task().into();
        thread.old = this_thread();
    }
    numbers(session, &thread);
    session.spool.header().ring(Work::Events);
}

/// Records the name of the calling thread, or of another thread identified by its `pthread_t`.
pub(crate) fn thread_name(session: &Session, name: &[u8], other: u64) {
    let thread = SpoolEvent::new(Kind::ThreadName, thread_number(session), session.clock.now());
    event(session, SpoolEvent { extra: other, ..thread }, name);
}

/// Records the current name of the calling thread.
pub(crate) fn own_name(session: &Session) {
    let mut name = [0; thread_name::BYTES];
    if let Some(name) = thread_name::own(&mut name) {
        self::thread_name(session, name, 0);
    }
}

/// Returns the `pthread_t` of the calling thread, by which other threads refer to it.
#[allow(clippy::unnecessary_cast, reason = "the type is a pointer in other C libraries")]
pub(crate) fn this_thread() -> u64 {
    // SAFETY: cannot fail.
    unsafe { libc::pthread_self() as u64 }
}

/// Writes slots into the thread's current or next chunk. Counts the event as dropped if there is no chunk.
fn put(session: &Session, stamp: u64, slots: &[Slot]) {
    let producer = &thread_state::current().producer;
    // Retry, because signal handlers may fill a chunk that was just installed.
    for _ in 0..3 {
        // The hook may have been interrupted by a signal handler and continued in a forked child: see `session.rs`.
        if !session.is_live() {
            break;
        }
        // SAFETY: the spool stays mapped.
        if unsafe { producer.put_slots(stamp, slots) } {
            return;
        }
        if !refill(session) {
            break;
        }
    }
    // A parent's event that a child does not finish is not counted as a loss of the child.
    if session.is_live() {
        session.spool.header().dropped.fetch_add(1, Ordering::Relaxed);
        producer.lose();
    }
}

/// Provides the thread with a chunk that has room. Returns `false` if no chunk is available.
#[cold]
fn refill(session: &Session) -> bool {
    let thread = thread_number(session);
    let producer = &thread_state::current().producer;
    if producer.has_room() {
        return true;
    }
    let Some(chunk) = session.chunk() else { return false };
    let owner = Owner { thread, process: session.process, image: session.image, task: process::task() };
    let stamp = session.clock.now();
    session.leave_chunk(producer.install(&chunk, owner, stamp, nanoseconds()));
    let lost = producer.take_lost();
    if lost > 0 {
        let event = SpoolEvent { size: lost as u64, ..SpoolEvent::new(Kind::Lost, thread, stamp) };
        let (slots, used) = event.to_slots();
        // SAFETY: as in `put`. If there is no room, the events are still included in the number of dropped events.
        unsafe { producer.put_slots(stamp, slots.get(..used).unwrap_or_default()) };
    }
    true
}

/// Returns the number of the calling thread.
#[inline]
pub(crate) fn thread_number(session: &Session) -> u32 {
    thread_state::current().join(session.number);
    let id = thread_state::current().id.get();
    if id == 0 { number_this_thread(session) } else { id }
}

/// Assigns a number to a thread whose start no hook observed: the main thread, or a thread that the C library created
/// itself. The end of such a thread is recorded like the end of any other thread, and the recorder's data for the
/// thread is freed at that time.
#[cold]
fn number_this_thread(session: &Session) -> u32 {
    let state = thread_state::current();
    if process::task() == session.process {
        state.id.set(1);
        return 1;
    }
    session.set_multithreaded();
    let id = new_thread_number(session);
    state.id.set(id);
    thread_key::arm();
    thread_event(session, Kind::ThreadStart, 0, Flags::FIRST_SEEN);
    own_name(session);
    id
}

/// Returns a number for a new thread.
pub(crate) fn new_thread_number(session: &Session) -> u32 {
    session.spool.header().threads.fetch_add(1, Ordering::Relaxed).wrapping_add(2)
}
