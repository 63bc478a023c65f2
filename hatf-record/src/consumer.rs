//! The reading end of a ring.

use crate::event::Words;
use crate::ring::{Ring, Taken};

/// Events that are taken before producers hear that slots are free. They look at that word at each event; a smaller number
/// would take its cache line away from them more often.
const BATCH: u64 = 512;

/// The result of [`Consumer::poll`].
#[derive(Debug, PartialEq, Eq)]
pub enum Poll {
    /// The next event.
    Event(Words),
    /// An event was lost: its producer never came, or its ticket was abandoned.
    Lost,
    /// Nothing more for now: the ring is empty, or the next event is not published yet.
    Nothing,
}

/// Takes events out of a ring, in the order of their tickets. There is one consumer of a ring.
#[derive(Debug)]
pub struct Consumer<'m> {
    ring: Ring<'m>,
    next: u64,
    released: u64,
    /// Whether a producer waits and is to be woken.
    wake: bool,
}

impl<'m> Consumer<'m> {
    /// Starts at the first ticket.
    #[must_use]
    pub fn new(ring: Ring<'m>) -> Self {
        Self { ring, next: 0, released: 0, wake: false }
    }

    /// Returns the ring.
    #[must_use]
    pub fn ring(&self) -> Ring<'m> {
        self.ring
    }

    /// Takes the next event. Never waits.
    pub fn poll(&mut self) -> Poll {
        if self.next - self.released >= BATCH {
            self.release();
        }
        match self.ring.take(self.next) {
            Taken::Event(words) => {
                self.next += 1;
                Poll::Event(words)
            }
            Taken::Held if self.behind() > 0 => {
                self.next += 1;
                Poll::Lost
            }
            Taken::Held | Taken::Pending => {
                self.release();
                Poll::Nothing
            }
        }
    }

    /// Returns the number of tickets consumed, lost ones counted.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.next
    }

    /// Returns the number of tickets that were drawn and are not consumed. After [`Poll::Nothing`] their producers are late.
    ///
    /// The number comes from the shared memory: it can be anything where the recorded program has overwritten that.
    #[must_use]
    pub fn behind(&self) -> u64 {
        self.ring.tail().saturating_sub(self.next)
    }

    /// Returns whether the ring is full, so that a late producer holds others up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.behind() >= self.ring.capacity()
    }

    /// Abandons the next ticket if it was drawn and is still not published: its event is lost, and `true` is returned. For a
    /// producer that died, or that holds up others for too long.
    pub fn skip(&mut self) -> bool {
        if self.behind() == 0 || !self.ring.abandon(self.next) {
            return false;
        }
        self.next += 1;
        self.release();
        true
    }

    /// Returns whether a producer waits on the futex [`crate::Header::wakeups`], and forgets it: the caller wakes them.
    pub fn take_wake(&mut self) -> bool {
        core::mem::take(&mut self.wake)
    }

    fn release(&mut self) {
        self.released = self.next;
        self.wake |= self.ring.release(self.next);
    }
}
