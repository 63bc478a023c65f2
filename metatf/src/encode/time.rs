//! Finds the time of a record whose shape is known at compile time.

use crate::decode::stops_silently;
use crate::record::{Known, Put, Stopped, WriteFields};
use metatf_container::{Error, TimeRange};
use std::marker::PhantomData;

/// Adds the time of a record, if it has one, to the times. The record must not contain repetitions.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn add_time<S: Known, T: WriteFields>(times: &mut TimeRange, fields: &T) {
    if const { S::TIME.is_some() } {
        let mut row = TimeRow::<S> { time: None, shape: PhantomData };
        // The row stops at the time.
        let _ = fields.write_fields(&mut row, 0);
        if let Some(time) = row.time {
            times.add(time);
        }
    }
}

/// A row that stops at the time of an `S`.
struct TimeRow<S> {
    time: Option<u64>,
    shape: PhantomData<S>,
}

impl<S: Known> Put for TimeRow<S> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        if S::TIME != Some(leaf) {
            return Ok(());
        }
        self.time = Some(value);
        Err(Stopped(()))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, _: u8, _: &[u8]) -> Result<(), Stopped> {
        Ok(())
    }

    fn last(&self, _: u8) -> u64 {
        0
    }
}
