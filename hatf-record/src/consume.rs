//! The reading end of the ring.

use crate::event::Words;
use crate::ring::{Found, Ring};

/// How many events are taken before producers are told that there is room. They look at that word
/// at each event; a smaller number would take its cache line away from them more often.
const BATCH: u64 = 512;

/// What a look at the ring found.
#[derive(Debug, PartialEq, Eq)]
pub enum Poll {
    /// The next event.
    Event(Words),
    /// An event was lost: its producer never came, or was given up.
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
    /// Whether somebody waits for room and is to be woken.
    wake: bool,
}

impl<'m> Consumer<'m> {
    /// A consumer that starts at the first ticket.
    #[must_use]
    pub fn new(ring: Ring<'m>) -> Self {
        Self { ring, next: 0, released: 0, wake: false }
    }

    /// The ring it reads.
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
            Found::Event(words) => {
                self.next += 1;
                Poll::Event(words)
            }
            Found::Held if self.next < self.ring.drawn() => {
                self.next += 1;
                Poll::Lost
            }
            Found::Held | Found::NotYet => {
                self.release();
                Poll::Nothing
            }
        }
    }

    /// Whether tickets were drawn that are not consumed: after [`Poll::Nothing`], that a producer is
    /// late.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.next < self.ring.drawn()
    }

    /// Whether the ring is full, so that a late producer holds others up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ring.drawn().saturating_sub(self.next) >= self.ring.capacity()
    }

    /// Gives up on the next ticket, if it was drawn and is still not published: its event is lost,
    /// and the answer is `true`. For a producer that died, or that holds up others for too long.
    pub fn skip(&mut self) -> bool {
        if !self.is_behind() || !self.ring.abandon(self.next) {
            return false;
        }
        self.next += 1;
        self.release();
        true
    }

    /// Whether a producer waits on the futex [`crate::Header::room`] and should be woken. Asked once
    /// after a batch.
    pub fn should_wake(&mut self) -> bool {
        core::mem::take(&mut self.wake)
    }

    fn release(&mut self) {
        self.released = self.next;
        self.wake |= self.ring.release(self.next);
    }
}
