//! Encoding a record whose shape is known when the program is compiled: the mirror of `row_shaped`.

use crate::error::{Error, Result};
use crate::grade::Floor;
use crate::row::{Stopped, plain};
use crate::row_write::Put;
use crate::state::{PREDICTED, Plan};
use crate::typed::Known;
use std::marker::PhantomData;

/// Takes the leaves of an `S` whose grade is `STORED` or `FORMULA`; or `FORETOLD`, then codes are left 0. It goes through to
/// the end whatever comes, and tells then whether everything fitted: until the caller says how much is in use, nothing has
/// happened.
pub(crate) struct ShapedWriter<'o, S, const PLANS: usize, const FORETOLD: bool> {
    out: &'o mut [u8],
    at: usize,
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

impl<'o, S: Known, const PLANS: usize, const FORETOLD: bool> ShapedWriter<'o, S, PLANS, FORETOLD> {
    /// A record that begins `at` a place in `out`.
    #[inline(always)]
    pub(crate) fn new(out: &'o mut [u8], at: usize, plans: &'o [Plan; PLANS]) -> Self {
        let mut row = Self { out, at, plans, previous: 0, misfit: 0, codes: 0, shape: PhantomData };
        row.store(S::TAG.into(), S::TAG_WIDTH);
        row
    }

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

    /// Stores eight bytes, of which the next leaf overwrites those over `width`.
    #[inline(always)]
    fn store(&mut self, raw: u64, width: usize) {
        if self.at >= self.out.len().saturating_sub(7) {
            self.misfit = 1;
            return;
        }
        // SAFETY: `at < out.len() - 7`, so `at + 8 <= out.len()`.
        unsafe { self.out.as_mut_ptr().add(self.at).cast::<[u8; 8]>().write(raw.to_le_bytes()) };
        self.at += width;
    }
}

impl<S: Known, const PLANS: usize, const FORETOLD: bool> Put for ShapedWriter<'_, S, PLANS, FORETOLD> {
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
        if FORETOLD && matches!(S::FLOORS[usize::from(leaf)], Floor::Foretold) && plan.flags & PREDICTED != 0 {
            self.codes += 1;
            self.misfit |= u64::from(plan.width == 0);
            self.store(0, plan.width.into());
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
            let room = self.out.get_mut(self.at..).and_then(|room| room.get_mut(..bytes.len()));
            room.ok_or(Stopped(()))?.copy_from_slice(bytes);
            self.at += bytes.len();
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
