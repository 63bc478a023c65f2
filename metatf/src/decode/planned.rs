//! Decoding a record whose shape is known when the program is compiled, except for the widths and bases of its leaves.

use super::Placed;
use crate::format::Floor;
use crate::formula::{Plan, eight, plain, taken};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::Error;
use std::marker::PhantomData;

/// The leaves of an `S` from a part's content, of a planned record. It stops where fewer than 8 bytes are left, without a reason:
/// nothing has happened, and the record is decoded as a general one.
pub(crate) struct PlannedRow<'p, 'r, S, const PLANS: usize> {
    data: &'r [u8],
    at: usize,
    /// Of the whole section, so that which one is looked at is known when the program is compiled.
    plans: &'p [Plan; PLANS],
    /// The number read last: the length of the byte array that follows.
    previous: u64,
    shape: PhantomData<S>,
}

impl<'p, 'r, S: Known, const PLANS: usize> PlannedRow<'p, 'r, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(data: &'r [u8], at: usize, plans: &'p [Plan; PLANS]) -> Self {
        Self { data, at, plans, previous: 0, shape: PhantomData }
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

/// The items of a trait of rows that are the same in all rows that stop without a word, as the record is then read, or written, in
/// another way: records with repeated items among them. What [`items`](Row::items) takes and gives.
macro_rules! stops_silently {
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

pub(crate) use stops_silently;

impl<S: Known, const PLANS: usize> Placed for PlannedRow<'_, '_, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn position(&self) -> usize {
        self.at
    }
}

impl<'r, S: Known, const PLANS: usize> Row<'r> for PlannedRow<'_, 'r, S, PLANS> {
    stops_silently!(u64 => usize);

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
        self.at += plan.width.bytes();
        self.previous = plain(raw, plan);
        Ok(self.previous)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        self.take(S::FLOORS[usize::from(leaf)].length(self.previous))
    }
}

impl<'r, S: Known, const PLANS: usize> Source<'r> for PlannedRow<'_, 'r, S, PLANS> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
