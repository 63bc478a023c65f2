//! Encoding a record whose shape is known when the program is compiled, and some of whose values go to stream sections: the mirror
//! of `row_gathered`.
//!
//! What does not fit is told at the end; then streams have to give back what they took.

use super::planned::FORMULA;
use crate::buffer::{Room, Written};
use crate::decode::stops_silently;
use crate::encode::{PlannedEncoder, StreamWriters};
use crate::error::{Error, Result};
use crate::format::Floor;
use crate::formula::{Plan, STRIDED};
use crate::record::{Known, Put, Stopped};

/// Takes the leaves of an `S` whose tier is at most `GATHERED`, with none that is foretold.
pub(crate) struct StreamedEncoder<'o, S, const PLANS: usize> {
    row: PlannedEncoder<'o, S, PLANS, FORMULA>,
    plans: &'o [Plan; PLANS],
    streams: &'o mut StreamWriters,
    /// A stream did not take its value.
    refused: bool,
}

impl<'o, S: Known, const PLANS: usize> StreamedEncoder<'o, S, PLANS> {
    /// The next record of a room; none where that is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        room: &'o mut Room<'_>,
        plans: &'o [Plan; PLANS],
        streams: &'o mut StreamWriters,
    ) -> Option<Self> {
        Some(Self { row: PlannedEncoder::new(room, plans)?, plans, streams, refused: false })
    }

    /// What to keep of the record; none where it does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn written(&self) -> Option<Written> {
        self.row.written().filter(|_| !self.refused)
    }
}

impl<S: Known, const PLANS: usize> Put for StreamedEncoder<'_, S, PLANS> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        match self.plans.get(S::FIRST + usize::from(leaf)) {
            Some(plan) if !matches!(S::FLOORS[usize::from(leaf)], Floor::Fixed(_)) && plan.flags & STRIDED != 0 => {
                self.refused |= !self.streams.append(plan.base, value);
                self.row.pass(value);
                Ok(())
            }
            _ => self.row.number(leaf, value),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.row.bytes(leaf, bytes)
    }

    fn last(&self, leaf: u8) -> u64 {
        self.row.last(leaf)
    }
}
