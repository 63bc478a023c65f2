//! The reading end of a spool, which reads the events of one thread from its chunks.

use crate::event::{About, Head, Kind, SLOTS_MAX, Slot, SpoolEvent};
use crate::layout::CHUNK_SLOTS;
use crate::spool::Chunk;

/// The result of [`Stream::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An event, whose time is the complete stamp.
    Event(SpoolEvent),
    /// Nothing more has been written yet.
    Nothing,
    /// The chunk has ended.
    End,
}

/// The most frequent kind of event: a `malloc` that returned a block, or a `free`, in a single slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The event, whose time is the complete stamp.
    pub event: SpoolEvent,
    /// The number of the slot after the event.
    behind: usize,
}

/// A position in a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'m> {
    chunk: Chunk<'m>,
    at: usize,
    thread: u32,
    stamp: u64,
    /// The additional data of the next event.
    about: About,
}

impl<'m> Stream<'m> {
    /// Creates a stream at the first event in a chunk of a thread.
    #[must_use]
    pub fn new(chunk: Chunk<'m>, thread: u32, stamp: u64) -> Self {
        Self { chunk, at: 0, thread, stamp, about: About::default() }
    }

    /// Returns the number of slots read so far.
    #[must_use]
    pub fn place(&self) -> usize {
        self.at
    }

    /// Reads an event and appends its string to `text`. Stamps never decrease: if a signal handler's event follows the
    /// event of the interrupted call, it receives the stamp of that call.
    #[inline]
    pub fn next(&mut self, text: &mut Vec<u8>) -> Next {
        loop {
            let Some(first) = self.chunk.slot(self.at) else {
                return if self.at >= CHUNK_SLOTS { Next::End } else { Next::Nothing };
            };
            let Some(head) = Head::decode(first) else {
                // The kind is unknown because the program has overwritten the slot. The following slots may be valid
                // again.
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

    /// Decodes the next event if it is a [`Plain`] event, without consuming it; call [`pass`](Self::pass) to consume
    /// it.
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
            // The kind without flags.
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

    /// Advances past a plain event that [`plain`](Self::plain) just returned.
    #[inline]
    pub fn pass(&mut self, plain: &Plain) {
        (self.at, self.stamp, self.about) = (plain.behind, plain.event.time, About::default());
    }

    /// Reads an event of several slots. Returns `None` if the slots are not valid.
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

    /// Skips slots that were reserved and never written, if written slots follow. Returns whether it skipped any slots.
    pub fn skip_gap(&mut self) -> bool {
        let behind = (self.at..CHUNK_SLOTS).find(|at| self.chunk.slot(*at).is_some());
        if behind.is_some_and(|behind| behind > self.at) {
            // The additional data belonged to the missing event.
            self.about = About::default();
        }
        self.at = behind.unwrap_or(self.at);
        behind.is_some()
    }

    /// Returns whether the rest of the chunk contains only a part of one event, which its thread was writing. The first
    /// slot of an event is written last.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let mut later = (self.at..CHUNK_SLOTS).filter_map(|at| self.chunk.slot(at)).peekable();
        later.peek().is_some() && later.all(|slot| Head::decode(slot).is_some_and(|head| head.kind == Kind::More))
    }

    /// Returns the number of the next slot if it is missing, that is, unwritten but followed by a written one.
    #[must_use]
    pub fn gap(&self) -> Option<usize> {
        let later = self.at + 1..(self.at + 2 * SLOTS_MAX).min(CHUNK_SLOTS);
        let is_missing = self.chunk.slot(self.at).is_none() && { later }.any(|at| self.chunk.slot(at).is_some());
        is_missing.then_some(self.at)
    }
}

/// Completes a stamp from its low half. The result is the stamp nearest to the last one and not before it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the low halves are needed")]
fn whole(last: u64, low: u64) -> u64 {
    let ahead = (low as u32).wrapping_sub(last as u32).cast_signed();
    last.saturating_add(u64::from(ahead.max(0).cast_unsigned()))
}
