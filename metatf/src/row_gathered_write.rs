//! Encoding a record whose shape is known when the program is compiled, and some of whose values go to stream sections: the mirror
//! of `row_gathered`.
//!
//! What does not fit is told at the end; then streams have to give back what they took.

use crate::buffer::{Room, Written};
use crate::error::{Error, Result};
use crate::grade::{FORMULA, Floor};
use crate::row::Stopped;
use crate::row_shaped::says_nothing;
use crate::row_shaped_write::ShapedWriter;
use crate::row_write::Put;
use crate::state::{Plan, STRIDED};
use crate::stream_write::StreamWriters;
use crate::typed::Known;

/// Takes the leaves of an `S` whose grade is at most `GATHERED`, with none that is foretold.
pub(crate) struct GatheredWriter<'o, S, const PLANS: usize> {
    row: ShapedWriter<'o, S, PLANS, FORMULA>,
    plans: &'o [Plan; PLANS],
    streams: &'o mut StreamWriters,
    /// A stream did not take its value.
    refused: bool,
}

impl<'o, S: Known, const PLANS: usize> GatheredWriter<'o, S, PLANS> {
    /// The next record of a room; none where that is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        room: &'o mut Room<'_>,
        plans: &'o [Plan; PLANS],
        streams: &'o mut StreamWriters,
    ) -> Option<Self> {
        Some(Self { row: ShapedWriter::new(room, plans)?, plans, streams, refused: false })
    }

    /// What to keep of the record; none where it does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn written(&self) -> Option<Written> {
        self.row.written().filter(|_| !self.refused)
    }
}

impl<S: Known, const PLANS: usize> Put for GatheredWriter<'_, S, PLANS> {
    says_nothing!(usize => ());

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
