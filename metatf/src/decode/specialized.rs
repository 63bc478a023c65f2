//! Decoding a record whose shape is known when the program is compiled, and how its leaves are stored, too.
//!
//! Nothing is looked up: what is left of a record is loads at places that are known from its start. There is one comparison
//! with the end of the content for a record, as its bytes are looked at through a window that is large enough for most.

use super::Placed;
use crate::decode::stops_silently;
use crate::format::Floor;
use crate::formula::{plain, taken, window};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::Error;
use std::hint::cold_path;
use std::marker::PhantomData;

/// Bytes of a window: of a shape that stores more, it is moved on.
pub(crate) const WINDOW: usize = 64;

/// The leaves of an `S` from a part's content, all of them stored as [`Known::EXPECTED`] says. It stops where less than a window
/// is left, and says nothing of why: nothing has happened, the record can be read in another way.
pub(crate) struct SpecializedRow<'r, S> {
    data: &'r [u8],
    /// Where the window begins.
    at: usize,
    window: Option<&'r [u8; WINDOW]>,
    /// Where the next leaf is in the window.
    offset: usize,
    /// The number read last: the length of the byte array that follows.
    previous: u64,
    shape: PhantomData<S>,
}

impl<'r, S: Known> SpecializedRow<'r, S> {
    /// A record that begins at a position.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(data: &'r [u8], position: usize) -> Self {
        let mut row = Self { data, at: position, window: None, offset: 0, previous: 0, shape: PhantomData };
        row.move_to(position);
        row.offset = S::TAG_WIDTH;
        row
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn move_to(&mut self, at: usize) {
        (self.at, self.offset) = (at, 0);
        self.window = window(self.data, at);
    }
}

impl<S: Known> Placed for SpecializedRow<'_, S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn position(&self) -> usize {
        self.at + self.offset
    }
}

impl<'r, S: Known> Row<'r> for SpecializedRow<'r, S> {
    stops_silently!(u64 => usize);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        if let Floor::Fixed(value) = S::FLOORS[usize::from(leaf)] {
            self.previous = value;
            return Ok(value);
        }
        let plan = &S::EXPECTED[usize::from(leaf)];
        if self.offset + 8 > WINDOW {
            self.move_to(self.position());
        }
        let window = self.window.ok_or(Stopped(()))?;
        let eight = window.get(self.offset..).and_then(|rest| rest.first_chunk()).ok_or(Stopped(()))?;
        self.offset += plan.width.bytes();
        self.previous = plain(u64::from_le_bytes(*eight) & plan.mask, plan);
        Ok(self.previous)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        // A branch that is foreseen, not an addition that is waited for: most often there is nothing.
        if length == 0 {
            return Ok(&[]);
        }
        cold_path();
        let bytes = taken(self.data, self.position(), length).ok_or(Stopped(()))?;
        self.move_to(self.position() + bytes.len());
        Ok(bytes)
    }
}

impl<'r, S: Known> Source<'r> for SpecializedRow<'r, S> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
