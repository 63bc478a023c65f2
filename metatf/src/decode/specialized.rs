//! Decodes a record whose shape and encoding are both known at compile time.
//!
//! There are no lookups: reading a record consists of loads at constant offsets from its start. A record requires only
//! one comparison with the end of the content, because its bytes are accessed through a window that is large enough for
//! most records.

use super::Placed;
use crate::decode::stops_silently;
use crate::format::Floor;
use crate::formula::{plain, taken, window};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::Error;
use std::hint::cold_path;
use std::marker::PhantomData;

/// Size of a window in bytes. For a record that stores more, the window is moved.
pub(crate) const WINDOW: usize = 64;

/// A row that reads the leaves of an `S` from a part's content, if all of them are stored according to
/// [`Known::EXPECTED`]. It stops without an error if fewer bytes than a window are left. In this case, the state is
/// unchanged, and the record can be read in a different way.
pub(crate) struct SpecializedRow<'r, S> {
    data: &'r [u8],
    /// The start of the window.
    at: usize,
    window: Option<&'r [u8; WINDOW]>,
    /// The offset of the next leaf in the window.
    offset: usize,
    /// The most recently read number. If a byte array follows, this is its length.
    previous: u64,
    shape: PhantomData<S>,
}

impl<'r, S: Known> SpecializedRow<'r, S> {
    /// Creates a row for a record that begins at a position.
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
        // A predictable branch is faster here than waiting for an addition, because the length is usually 0.
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
