//! The reading end of a spool: the events of one thread, out of its chunks.

use crate::event::{About, Head, Kind, SLOTS_MAX, Slot, SpoolEvent};
use crate::layout::CHUNK_SLOTS;
use crate::spool::Chunk;

/// The result of [`Stream::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event, whose time is the whole stamp.
    Event(SpoolEvent),
    /// Nothing more is written yet.
    Nothing,
    /// The chunk is at its end.
    End,
}

/// Nearly every event: a `malloc` that returned a block, or a `free`, which is one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The event, whose time is the whole stamp.
    pub event: SpoolEvent,
    /// The number of slots before those behind it.
    behind: usize,
}

/// A place in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'m> {
    chunk: Chunk<'m>,
    at: usize,
    thread: u32,
    stamp: u64,
    /// What is known of the next event.
    about: About,
}

impl<'m> Stream<'m> {
    /// Begins at the first event of a chunk of a thread.
    #[must_use]
    pub fn new(chunk: Chunk<'m>, thread: u32, stamp: u64) -> Self {
        Self { chunk, at: 0, thread, stamp, about: About::default() }
    }

    /// Returns the number of slots that were read.
    #[must_use]
    pub fn place(&self) -> usize {
        self.at
    }

    /// Reads an event, and puts its text behind what is in `text`. Stamps never go back: where a signal handler's event stands behind that of the
    /// call which it interrupted, it gets that call's.
    #[inline]
    pub fn next(&mut self, text: &mut Vec<u8>) -> Next {
        loop {
            let Some(first) = self.chunk.slot(self.at) else {
                return if self.at >= CHUNK_SLOTS { Next::End } else { Next::Nothing };
            };
            let Some(head) = Head::decode(first) else {
                // No kind of ours: the program has written here. What follows may be right again.
                self.at += 1;
                continue;
            };
            match head.kind {
                Kind::End => return Next::End,
                Kind::More | Kind::Nothing => self.at += 1,
                Kind::About => {
                    self.about = About::of(first);
                    self.at += 1;
                }
                Kind::Stamp => {
                    self.stamp = self.stamp.max(first[1]);
                    self.at += 1;
                }
                _ => {
                    self.stamp = whole(self.stamp, head.stamp.into());
                    let more = head.more();
                    if more == 0 {
                        self.at += 1;
                        return match head.finish(self.thread, self.stamp, &[], text) {
                            Some(event) => Next::Event(SpoolEvent { about: std::mem::take(&mut self.about), ..event }),
                            None => continue,
                        };
                    }
                    if let Some(event) = self.long(&head, more, text) {
                        return Next::Event(SpoolEvent { about: std::mem::take(&mut self.about), ..event });
                    }
                }
            }
        }
    }

    /// Looks at the next event if it is a plain one; nothing is read before [`pass`](Self::pass).
    #[inline]
    #[must_use]
    pub fn plain(&self) -> Option<Plain> {
        const MALLOC: u64 = Kind::Malloc as u64;
        const FREE: u64 = Kind::Free as u64;
        const ABOUT: u64 = Kind::About as u64;
        const STAMP: u64 = Kind::Stamp as u64;
        let Self { mut at, mut stamp, mut about, .. } = *self;
        loop {
            let [first, second] = self.chunk.slot(at)?;
            at += 1;
            // The kind, and no flags.
            let kind = match first & 0xffff {
                MALLOC => Kind::Malloc,
                FREE => Kind::Free,
                ABOUT => {
                    about = About::of([first, second]);
                    continue;
                }
                STAMP => {
                    stamp = stamp.max(second);
                    continue;
                }
                _ => return None,
            };
            let (address, size, time) = (first >> 16, second >> 32, whole(stamp, second));
            let event = SpoolEvent { size, address, about, ..SpoolEvent::new(kind, self.thread, time) };
            return (address != 0).then_some(Plain { event, behind: at });
        }
    }

    /// Goes on behind a plain event, which was looked at just now.
    #[inline]
    pub fn pass(&mut self, plain: &Plain) {
        (self.at, self.stamp, self.about) = (plain.behind, plain.event.time, About::default());
    }

    /// Reads an event of several slots; `None` if they are none.
    fn long(&mut self, head: &Head, more: usize, text: &mut Vec<u8>) -> Option<SpoolEvent> {
        self.at += 1;
        let mut slots: [Slot; SLOTS_MAX] = [[0; 2]; _];
        let slots = slots.get_mut(..more)?;
        for (number, slot) in slots.iter_mut().enumerate() {
            *slot = self.chunk.slot(self.at + number)?;
        }
        let length = text.len();
        let event = head.finish(self.thread, self.stamp, slots, text);
        if event.is_some() {
            self.at += more;
        } else {
            text.truncate(length);
        }
        event
    }

    /// Passes over slots that were reserved and never written, if written ones are behind them; returns whether there were.
    pub fn skip_gap(&mut self) -> bool {
        let behind = (self.at..CHUNK_SLOTS).find(|at| self.chunk.slot(*at).is_some());
        if behind.is_some_and(|behind| behind > self.at) {
            // It was of the event that is missing.
            self.about = About::default();
        }
        self.at = behind.unwrap_or(self.at);
        behind.is_some()
    }

    /// Returns whether a slot is missing: one behind it is written.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        let gap = self.chunk.slot(self.at).is_none();
        gap && (self.at + 1..(self.at + 2 * SLOTS_MAX).min(CHUNK_SLOTS)).any(|at| self.chunk.slot(at).is_some())
    }
}

/// Completes a stamp from its low half: the nearest to the last one, and not before it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low halves")]
fn whole(last: u64, low: u64) -> u64 {
    let ahead = (low as u32).wrapping_sub(last as u32).cast_signed();
    last.saturating_add(u64::from(ahead.max(0).cast_unsigned()))
}
