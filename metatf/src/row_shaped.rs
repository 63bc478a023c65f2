//! Decoding a record whose shape is known when the program is compiled, but for the widths and bases of its leaves.

use crate::error::Error;
use crate::grade::Floor;
use crate::reader::Placed;
use crate::row::{Row, Stopped, plain};
use crate::state::Plan;
use crate::typed::{Known, Source};
use std::marker::PhantomData;

/// The leaves of an `S` from a part's content, of a record whose grade is `STORED` or, with bases, `FORMULA`. It stops where
/// fewer than 8 bytes are left, and says nothing of why: nothing has happened, the record can be read in another way.
pub(crate) struct ShapedRow<'p, 'r, S, const PLANS: usize, const WITH_BASE: bool> {
    data: &'r [u8],
    at: usize,
    /// Of the whole section, so that which one is looked at is known when the program is compiled.
    plans: &'p [Plan; PLANS],
    /// The number read last: the length of the byte array that follows.
    previous: u64,
    shape: PhantomData<S>,
}

impl<'p, 'r, S: Known, const PLANS: usize, const WITH_BASE: bool> ShapedRow<'p, 'r, S, PLANS, WITH_BASE> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(data: &'r [u8], at: usize, plans: &'p [Plan; PLANS]) -> Self {
        Self { data, at, plans, previous: 0, shape: PhantomData }
    }

    /// Takes a number that is not stored here.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn previous(&mut self, value: u64) -> u64 {
        self.previous = value;
        value
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take(&mut self, length: u64) -> Result<&'r [u8], Stopped> {
        // A branch that is foreseen, not an addition that is waited for: most often there is nothing.
        if length == 0 {
            return Ok(&[]);
        }
        let bytes = taken(self.data, self.at, length).ok_or(Stopped(()))?;
        self.at += bytes.len();
        Ok(bytes)
    }
}

/// The eight bytes at a place.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn eight(data: &[u8], at: usize) -> Option<[u8; 8]> {
    // One comparison, as the right side does not change in the loop.
    if at >= data.len().saturating_sub(7) {
        return None;
    }
    // SAFETY: `at < data.len() - 7`, so `at + 8 <= data.len()`.
    Some(unsafe { data.as_ptr().add(at).cast::<[u8; 8]>().read() })
}

/// So many bytes from a place on.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn taken(data: &[u8], at: usize, length: u64) -> Option<&[u8]> {
    let rest = data.get(at..).unwrap_or_default();
    usize::try_from(length).ok().and_then(|length| rest.get(..length))
}

/// The items of a trait of rows that are the same in all rows that stop without a word, as the record is then read, or written, in
/// another way: records with repeated items among them. What [`items`](Row::items) takes and gives.
macro_rules! says_nothing {
    ($taken:ty => $given:ty) => {
        type Error = Stopped;

        #[cold]
        fn stop(&mut self, _: Error) -> Stopped {
            Stopped(())
        }

        fn items(&mut self, _: $taken) -> Result<$given, Stopped> {
            Err(Stopped(()))
        }
    };
}

pub(crate) use says_nothing;

impl<S: Known, const PLANS: usize, const WITH_BASE: bool> Placed for ShapedRow<'_, '_, S, PLANS, WITH_BASE> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn position(&self) -> usize {
        self.at
    }
}

impl<'r, S: Known, const PLANS: usize, const WITH_BASE: bool> Row<'r> for ShapedRow<'_, 'r, S, PLANS, WITH_BASE> {
    says_nothing!(u64 => usize);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        if let Floor::Fixed(value) = S::FLOORS[usize::from(leaf)] {
            self.previous = value;
            return Ok(value);
        }
        let eight = eight(self.data, self.at);
        let (Some(plan), Some(eight)) = (self.plans.get(S::FIRST + usize::from(leaf)), eight) else {
            return Err(Stopped(()));
        };
        let raw = u64::from_le_bytes(eight) & plan.mask;
        self.at += usize::from(plan.width);
        self.previous = if WITH_BASE { plain(raw, plan) } else { raw };
        Ok(self.previous)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        self.take(S::FLOORS[usize::from(leaf)].length(self.previous))
    }
}

impl<'r, S: Known, const PLANS: usize, const WITH_BASE: bool> Source<'r> for ShapedRow<'_, 'r, S, PLANS, WITH_BASE> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
