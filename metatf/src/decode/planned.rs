//! Decodes a record whose shape is known at compile time, except for the widths and bases of its leaves.

use super::Placed;
use crate::format::Floor;
use crate::formula::{Plan, eight, plain, taken};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::Error;
use std::marker::PhantomData;

/// A row that reads the leaves of an `S`, a planned record, from a part's content. It stops without an error if fewer
/// than 8 bytes are left. In this case, the state is unchanged, and the general tier decodes the record.
pub(crate) struct PlannedRow<'p, 'r, S, const PLANS: usize> {
    data: &'r [u8],
    at: usize,
    /// The plans of the complete section, so that the index of each plan is a compile-time constant.
    plans: &'p [Plan; PLANS],
    /// The most recently read number. If a byte array follows, this is its length.
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
        // A predictable branch is faster here than waiting for an addition, because the length is usually 0.
        if length == 0 {
            return Ok(&[]);
        }
        let bytes = taken(self.data, self.at, length).ok_or(Stopped(()))?;
        self.at += bytes.len();
        Ok(bytes)
    }
}

/// The trait items shared by all rows that stop without an error if they cannot handle a record, such as one with
/// repeated items. The record is then read or written in a different way. The arguments are the parameter and result
/// types of [`items`](Row::items).
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
