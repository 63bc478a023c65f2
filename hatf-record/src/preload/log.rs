//! Putting events into the ring.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use super::attach::{self, Session, session};
use super::thread_state::{is_outermost, mine};
use crate::event::{Event, Flags, Kind, TEXT_BYTES, Words};

/// The numbers of a call, by their names in [`Event`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
}

/// Records a call, if it is the program's own and the process is recorded.
#[inline]
pub(crate) fn call(kind: Kind, call: Call) {
    if !is_outermost() {
        return;
    }
    if let Some(session) = session() {
        let mut event = Event::new(kind, thread(session), now(session));
        event.size = call.size as u64;
        event.address = call.address as u64;
        event.old = call.old as u64;
        event.extra = call.extra as u64;
        push(session, &[event.to_words()]);
    }
}

/// Records that a call gave `block`.
#[inline]
pub(crate) fn given(kind: Kind, block: *mut c_void, size: usize, extra: usize) {
    call(kind, Call { size, address: block as usize, old: 0, extra });
}

/// Records that the calling thread began or ended.
pub(crate) fn thread_event(session: &Session, kind: Kind, creator: u32, flags: Flags) {
    let mut event = Event::new(kind, mine().id.get(), now(session));
    event.flags = flags;
    event.extra = u64::from(creator);
    push(session, &[event.to_words()]);
}

/// Records which program this is.
pub(crate) fn image() {
    let Some(session) = session() else { return };
    let mut path = [0u8; TEXT_MOST];
    // SAFETY: a constant path and a buffer with its length.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = path.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    let mut event = Event::new(Kind::Image, thread(session), now(session));
    event.extra = u64::from(session.ring.header().process.load(Ordering::Relaxed));
    push_named(session, event, path);
}

/// Records what the program says of itself under a name.
pub(crate) fn said(kind: Kind, name: &[u8]) {
    if let Some(session) = session() {
        push_named(session, Event::new(kind, thread(session), now(session)), name);
    }
}

/// Slots for a text: a longer one is cut.
const TEXT_SLOTS: usize = 25;
/// Bytes of a text that are recorded.
pub(crate) const TEXT_MOST: usize = TEXT_SLOTS * TEXT_BYTES;

/// Puts an event into the ring, and behind it the text that belongs to it.
fn push_named(session: &Session, mut event: Event, text: &[u8]) {
    let text = text.get(..TEXT_MOST).unwrap_or(text);
    event.size = text.len() as u64;
    let mut words: [Words; 1 + TEXT_SLOTS] = [[0; 7]; 1 + TEXT_SLOTS];
    words[0] = event.to_words();
    let pieces = text.chunks(TEXT_BYTES);
    let used = 1 + pieces.len();
    for (slot, piece) in words[1..].iter_mut().zip(pieces) {
        *slot = Event::text(event.thread, piece);
    }
    push(session, &words[..used]);
}

#[inline]
fn push(session: &Session, words: &[Words]) {
    let ring = session.ring;
    ring.push_all(words, || full(session));
}

/// The ring is full: waits for room. Keeps `errno`. Where nobody reads any more, the program goes on
/// unrecorded.
#[cold]
fn full(session: &Session) -> bool {
    // SAFETY: `errno` of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let go_on = attach::wait_for_room(session, session.ring.consumed());
    if !go_on {
        attach::detach();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    go_on
}

/// Nanoseconds since recording began.
#[inline]
fn now(session: &Session) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer; this clock always exists. Not a system call where the kernel
    // maps its clock into processes.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let seconds = time.tv_sec.cast_unsigned();
    let nanoseconds = time.tv_nsec.cast_unsigned();
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds).wrapping_sub(session.start)
}

/// The number of the calling thread.
#[inline]
pub(crate) fn thread(session: &Session) -> u32 {
    let id = mine().id.get();
    if id == 0 { first_seen(session) } else { id }
}

/// Numbers a thread that nobody saw begin: the main one, or one made behind `pthread_create`.
#[cold]
fn first_seen(session: &Session) -> u32 {
    // SAFETY: two calls that cannot fail.
    let main = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    if main {
        mine().id.set(1);
        return 1;
    }
    super::threads::there_are_several();
    let id = next_id(session);
    mine().id.set(id);
    thread_event(session, Kind::ThreadStart, 0, Flags::FIRST_SEEN);
    id
}

/// A number for a new thread.
pub(crate) fn next_id(session: &Session) -> u32 {
    session.ring.header().threads.fetch_add(1, Ordering::Relaxed).wrapping_add(2)
}
