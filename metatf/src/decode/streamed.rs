//! Decoding a record whose shape is known when the program is compiled, and some of whose values are the next of stream sections.
//!
//! As [`PlannedRow`](crate::row_shaped::PlannedRow), and likewise nothing has happened where it stops: what it took of streams is
//! given back.

use super::Placed;
use crate::decode::{PlannedRow, stops_silently};
use crate::error::Error;
use crate::format::Floor;
use crate::formula::{Plan, STRIDED};
use crate::record::{Known, Row, Source, Stopped};
use crate::streams::Streams;

/// The leaves of an `S` whose tier is at most `GATHERED`, with none that is foretold.
pub(crate) struct StreamedRow<'p, 's, 'r, S, const PLANS: usize> {
    row: PlannedRow<'p, 'r, S, PLANS, true>,
    plans: &'p [Plan; PLANS],
    streams: &'s mut Streams,
}

impl<'p, 's, 'r, S: Known, const PLANS: usize> StreamedRow<'p, 's, 'r, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(data: &'r [u8], at: usize, plans: &'p [Plan; PLANS], streams: &'s mut Streams) -> Self {
        Self { row: PlannedRow::new(data, at, plans), plans, streams }
    }

    /// Gives back what the leaves before one took.
    #[cold]
    #[inline(never)]
    fn give_back(&mut self, leaf: u8) -> Stopped {
        let plans = self.plans.get(S::FIRST..S::FIRST + usize::from(leaf)).unwrap_or_default();
        plans.iter().filter(|plan| plan.is(STRIDED)).for_each(|plan| self.streams.give_back(plan.base));
        Stopped(())
    }
}

impl<S: Known, const PLANS: usize> Placed for StreamedRow<'_, '_, '_, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn position(&self) -> usize {
        self.row.position()
    }
}

impl<'r, S: Known, const PLANS: usize> Row<'r> for StreamedRow<'_, '_, 'r, S, PLANS> {
    stops_silently!(u64 => usize);

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        if let Some(plan) = self.plans.get(S::FIRST + usize::from(leaf))
            && !matches!(S::FLOORS[usize::from(leaf)], Floor::Fixed(_))
            && plan.flags & STRIDED != 0
        {
            return match self.streams.ready(plan.base) {
                Some(value) => Ok(self.row.previous(value)),
                None => Err(self.give_back(leaf)),
            };
        }
        self.row.number(leaf).map_err(|_| self.give_back(leaf))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        self.row.bytes(leaf).map_err(|_| self.give_back(leaf))
    }
}

impl<'r, S: Known, const PLANS: usize> Source<'r> for StreamedRow<'_, '_, 'r, S, PLANS> {
    fn last(&self, leaf: u8) -> u64 {
        self.row.last(leaf)
    }
}
