//! Encoding a record whose shape is known when the program is compiled: the mirror of `row_shaped`.

use crate::error::{Error, Result};
use crate::grade::{FORETOLD, Floor, STORED};
use crate::row::{Stopped, plain};
use crate::row_write::Put;
use crate::state::{PREDICTED, Plan};
use crate::typed::{Known, WriteFields};
use std::marker::PhantomData;

/// Numbers of a record that have room in any case: its tag, and 255 leaves.
const NUMBERS: u32 = 256;
/// The bytes that they take at most.
pub(crate) const ROOM: usize = 8 * NUMBERS as usize;

/// A buffer, and up to where a record can begin in it.
pub(crate) struct Room<'o> {
    out: &'o mut [u8],
    /// Records begin before this; there are at least `ROOM` bytes from here on, unless it is 0.
    until: usize,
}

impl<'o> Room<'o> {
    /// Records are to begin before `limit`.
    #[inline(always)]
    pub(crate) fn new(out: &'o mut [u8], limit: usize) -> Self {
        let until = limit.min(out.len().saturating_sub(ROOM));
        Self { out, until }
    }

    /// A record of grade `GRADE` that begins at a place; none where that has no room.
    #[inline(always)]
    pub(crate) fn row<'r, S: Known, const PLANS: usize, const GRADE: u8>(
        &'r mut self,
        at: usize,
        plans: &'r [Plan; PLANS],
    ) -> Option<ShapedWriter<'r, S, PLANS, GRADE>> {
        if at >= self.until {
            return None;
        }
        let shape = PhantomData;
        let mut row = ShapedWriter { out: self.out, at, left: NUMBERS, plans, previous: 0, misfit: 0, codes: 0, shape };
        row.store(S::TAG.into(), const { if S::TAG_WIDTH < 8 { S::TAG_WIDTH } else { 8 } });
        Some(row)
    }

    /// Encodes a record of grade `GRADE` that begins at a place; gives where it ends. None where it does not fit.
    #[inline(always)]
    pub(crate) fn put<S: Known, T: WriteFields, const PLANS: usize, const GRADE: u8>(
        &mut self,
        at: usize,
        plans: &[Plan; PLANS],
        fields: &T,
    ) -> Option<usize> {
        let mut row = self.row::<S, PLANS, GRADE>(at, plans)?;
        fields.write_fields(&mut row, 0).ok()?;
        row.end()
    }
}

/// Takes the leaves of an `S` whose grade is at most `GRADE`; of `FORETOLD` ones, codes are left 0. It goes through to the end
/// whatever comes, and tells then whether everything fitted: until the caller says how much is in use, nothing has happened.
pub(crate) struct ShapedWriter<'o, S, const PLANS: usize, const GRADE: u8> {
    out: &'o mut [u8],
    at: usize,
    /// So many numbers have room from `at` on: `at + 8 * left <= out.len()`. In a straight line the compiler counts them.
    left: u32,
    /// Of the whole section.
    plans: &'o [Plan; PLANS],
    /// The number written last: the length of the byte array that follows.
    previous: u64,
    /// Not 0 where something does not fit.
    misfit: u64,
    /// Leaves whose codes are missing.
    codes: u32,
    shape: PhantomData<S>,
}

impl<S: Known, const PLANS: usize, const GRADE: u8> ShapedWriter<'_, S, PLANS, GRADE> {
    /// Where the record ends; none where it does not fit.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<usize> {
        (self.misfit == 0).then_some(self.at)
    }

    /// Codes that are missing.
    #[inline(always)]
    pub(crate) fn codes(&self) -> u32 {
        self.codes
    }

    /// Stores eight bytes, of which the next leaf overwrites those over `width`, which is at most 8.
    #[inline(always)]
    fn store(&mut self, raw: u64, width: usize) {
        debug_assert!(width <= 8, "a plan's or a tag's width");
        if self.left == 0 {
            self.misfit = 1;
            return;
        }
        self.left -= 1;
        // SAFETY: `left` was not 0, and `at + 8 * left <= out.len()`: so it is where a row begins (`Room::row`) and behind bytes,
        // and what a number adds to `at`, `left` loses.
        unsafe { self.out.as_mut_ptr().add(self.at).cast::<[u8; 8]>().write(raw.to_le_bytes()) };
        self.at += width;
    }
}

impl<S: Known, const PLANS: usize, const GRADE: u8> Put for ShapedWriter<'_, S, PLANS, GRADE> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    #[inline(always)]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.previous = value;
        if let Floor::Fixed(fixed) = S::FLOORS[usize::from(leaf)] {
            self.misfit |= value ^ fixed;
            return Ok(());
        }
        let Some(plan) = self.plans.get(S::FIRST + usize::from(leaf)) else { return Err(Stopped(())) };
        if GRADE == FORETOLD && matches!(S::FLOORS[usize::from(leaf)], Floor::Foretold) && plan.flags & PREDICTED != 0 {
            self.codes += 1;
            self.misfit |= u64::from(plan.width == 0);
            self.store(0, plan.width.into());
            return Ok(());
        }
        if GRADE == STORED {
            self.misfit |= (value & plan.mask) ^ value;
            self.store(value, plan.width.into());
            return Ok(());
        }
        let raw = value.wrapping_sub(plan.base);
        self.misfit |= plain(raw & plan.mask, plan) ^ value;
        self.store(raw, plan.width.into());
        Ok(())
    }

    #[inline(always)]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Stopped> {
        let length = match S::FLOORS[usize::from(leaf)] {
            Floor::Array(length) => length.into(),
            _ => self.previous,
        };
        self.misfit |= length ^ bytes.len() as u64;
        if !bytes.is_empty() {
            let room = self.out.get_mut(self.at..).unwrap_or_default();
            // What comes behind them has room, too.
            let Some((room, rest)) = room.split_at_mut_checked(bytes.len()) else { return Err(Stopped(())) };
            if rest.len() < ROOM {
                return Err(Stopped(()));
            }
            room.copy_from_slice(bytes);
            self.at += bytes.len();
            self.left = NUMBERS;
        }
        Ok(())
    }

    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Err(Stopped(()))
    }

    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
