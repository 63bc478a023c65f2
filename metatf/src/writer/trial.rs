//! Encodes records as a trial, using a copy of a writer's state. Nothing is written, and the writer is not changed.

use super::RecordWriter;
use crate::buffer::Prefilled;
use crate::encode::{Attempt, RowWriter, StreamWriters};
use crate::format::{Format, Interpretation};
use crate::formula::width_of;
use crate::state::{Change, State};
use metatf_container::{Order, Result, Sink};

/// A copy of a writer's stream sections, and the record being tried.
pub struct TrialEncoder<'w> {
    format: &'w Format,
    order: Order,
    streams: StreamWriters,
    attempt: Attempt,
    out: Vec<u8>,
}

/// A copy of the state of one of a writer's sections.
pub struct TrialState(State);

impl<'w> TrialEncoder<'w> {
    /// Copies the writer's stream sections.
    pub fn new<S: Sink>(format: &'w Format, writer: &RecordWriter<S>) -> Self {
        let core = writer.core_ref();
        let streams = core.streams.clone();
        Self { format, order: core.order, streams, attempt: Attempt::default(), out: Vec::new() }
    }

    /// Starts a record, before its first [attempt](Self::attempt).
    pub fn start_record(&mut self) {
        self.attempt.start_record();
    }

    /// Encodes a record and trains the models with it. Returns false if a value does not fit in the current encoding of
    /// its leaf. The record is then rolled back, and [`misfits`](Self::misfits) returns the leaves that did not fit.
    ///
    /// # Errors
    /// Returns any error from `encode`.
    pub fn attempt(
        &mut self,
        TrialState(state): &mut TrialState,
        record: u16,
        encode: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<bool> {
        let first = state.encoding.plans_of_record(record);
        let (Some(first), Some(record)) = (first, self.format.records.get(usize::from(record))) else {
            return Ok(true);
        };
        let tries = (&mut self.attempt, &mut self.streams);
        let out = (Prefilled::of(&mut self.out), 0);
        let mut row = RowWriter::begin(self.format, (record, first), state, out, self.order, tries);
        row.tag(record.tag);
        encode(&mut row)?;
        if self.attempt.misfits.is_empty() && self.attempt.predicts() {
            self.attempt.predict(self.format, state, &mut self.streams, (self.order, false), &mut self.out);
        }
        let fits = self.attempt.misfits.is_empty();
        if !fits {
            self.attempt.roll_back(&mut state.history.cells);
            self.streams.roll_back();
        }
        Ok(fits)
    }

    /// Returns the leaves that did not fit in the last attempt.
    pub fn misfits(&mut self) -> impl Iterator<Item = u8> + use<> {
        std::mem::take(&mut self.attempt.misfits).into_iter().map(|misfit| misfit.leaf)
    }

    /// Returns the predicted leaves of the most recently encoded record, each with the number of bytes that its code
    /// needs.
    pub fn codes(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        self.attempt.codes().map(|(leaf, code)| (leaf, width_of(code)))
    }
}

impl TrialState {
    /// Copies the state of a section.
    pub fn new<S: Sink>(writer: &RecordWriter<S>, section: usize) -> Option<Self> {
        writer.core_ref().sections.get(section).map(|section| Self(section.state.clone()))
    }

    /// Resets the state to the initial state of the DTD.
    pub fn reset(&mut self, format: &Format) {
        self.0.reset(format);
    }

    /// Returns whether a writer would reset the section before the next record, because the heap's size rule turned out
    /// to be wrong.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.0.history.models.is_outdated()
    }

    /// Returns the interpretation of a leaf, given the position of its record in the section.
    #[must_use]
    pub fn interpretation(&self, position: usize, leaf: usize) -> Option<Interpretation> {
        let index = self.0.encoding.plans_of(position).checked_add(leaf)?;
        self.0.encoding.plan(index).map(|_| self.0.encoding.interpretation(index))
    }

    /// Applies a change to a leaf. A change that is not allowed has no effect.
    pub fn change(&mut self, format: &Format, position: usize, leaf: u8, change: Change) {
        let _ = self.0.apply(format, position, leaf, false, change);
    }
}
