//! Putting events into the ring of a session.

use core::sync::atomic::Ordering;

use super::session::Session;
use super::thread_state;
use crate::event::{Event, Flags, Kind, TEXT_BYTES, TEXT_MAX, Words};

/// Puts an event into the ring.
#[inline]
pub(crate) fn event(session: &Session, event: &Event) {
    push(session, &[event.to_words()]);
}

/// Puts an event into the ring, and behind it the text that belongs to it. Of a text that is too long the first
/// [`TEXT_MAX`] bytes count.
pub(crate) fn event_with_text(session: &Session, mut event: Event, text: &[u8]) {
    let text = text.get(..TEXT_MAX).unwrap_or(text);
    event.size = text.len() as u64;
    let mut words: [Words; 1 + TEXT_MAX / TEXT_BYTES] = [[0; 7]; _];
    words[0] = event.to_words();
    let pieces = text.chunks(TEXT_BYTES);
    let used = 1 + pieces.len();
    for (slot, piece) in words[1..].iter_mut().zip(pieces) {
        *slot = Event::text(event.thread, piece);
    }
    push(session, &words[..used]);
}

/// Puts the start or the end of the calling thread into the ring.
pub(crate) fn thread_event(session: &Session, kind: Kind, creator: u32, flags: Flags) {
    let mut thread = Event::new(kind, thread_state::current().id.get(), now(session));
    thread.flags = flags;
    thread.extra = u64::from(creator);
    event(session, &thread);
}

#[inline]
fn push(session: &Session, words: &[Words]) {
    // The hook may be one that a signal handler interrupted, and that a forked child finishes: see `session.rs`.
    if session.is_live() {
        session.ring.push_all(words, || session.wait());
    }
}

/// Returns the nanoseconds since recording began.
#[inline]
pub(crate) fn now(session: &Session) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer; this clock always exists. Not a system call where the kernel
    // maps its clock into processes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = time.tv_sec.cast_unsigned();
    let nanoseconds = time.tv_nsec.cast_unsigned();
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds).wrapping_sub(session.start)
}

/// Returns the number of the calling thread.
#[inline]
pub(crate) fn thread_number(session: &Session) -> u32 {
    let id = thread_state::current().id.get();
    if id == 0 { number_this_thread(session) } else { id }
}

/// Numbers a thread that nobody saw start: the main one, or one made without `pthread_create`.
#[cold]
fn number_this_thread(session: &Session) -> u32 {
    let state = thread_state::current();
    // SAFETY: two calls that cannot fail.
    let main = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    if main {
        state.id.set(1);
        return 1;
    }
    thread_state::set_multithreaded();
    let id = new_thread_number(session);
    state.id.set(id);
    thread_event(session, Kind::ThreadStart, 0, Flags::FIRST_SEEN);
    id
}

/// Returns a number for a new thread.
pub(crate) fn new_thread_number(session: &Session) -> u32 {
    session.ring.header().threads.fetch_add(1, Ordering::Relaxed).wrapping_add(2)
}
