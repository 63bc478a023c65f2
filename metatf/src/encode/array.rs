//! Encodes records of a section as a byte array (spec 3.7).

use crate::buffer::Prefilled;
use crate::encode::{Attempt, NOT_LAST, RowWriter, StreamWriters};
use crate::format::FormatRef;
use crate::state::State;
use metatf_container::{Error, ErrorKind, Order, Result};

/// A writer that builds a byte array from records of a section.
pub(crate) struct ArrayWriter {
    format: FormatRef,
    order: Order,
    section: usize,
    state: State,
    attempt: Attempt,
    streams: StreamWriters,
    /// The bytes, in use up to `used`.
    bytes: Vec<u8>,
    used: usize,
}

impl ArrayWriter {
    /// Creates a writer for the section with this index in the format.
    pub(crate) fn new(format: FormatRef, section: usize, order: Order) -> Self {
        let (state, streams) = (State::new(&format, section), StreamWriters::new(&format, true));
        Self { format, order, section, state, attempt: Attempt::default(), streams, bytes: Vec::new(), used: 0 }
    }

    /// Appends a record with this index in the format.
    ///
    /// # Errors
    /// Returns an error if the section does not list the record or a value does not fit in its field, or any error that
    /// `put` returns.
    pub(crate) fn write(&mut self, record: u16, put: impl FnOnce(&mut RowWriter<'_>) -> Result<()>) -> Result<()> {
        let format = &*self.format;
        if self.state.history.models.is_outdated() {
            return Err(Error::at(0, ErrorKind::Usage(NOT_LAST)));
        }
        let none = Error::at(0, ErrorKind::Usage("the section has no such record"));
        let Some(declared) = format.records.get(usize::from(record)) else { return Err(none) };
        let stream = format.sections.get(self.section).is_some_and(|s| s.stream);
        let first = match stream {
            true => self.state.encoding.first_plan(0),
            false => self.state.encoding.plans_of_record(record),
        };
        let first = first.ok_or(none)?;
        let out = (Prefilled::of(&mut self.bytes), self.used);
        let tries = (&mut self.attempt, &mut self.streams);
        let mut row = RowWriter::begin(format, (declared, first), &mut self.state, out, self.order, tries);
        if !stream {
            row.tag(declared.tag);
        }
        put(&mut row).and_then(|()| row.finish())?;
        let (end, misfit) = (row.at, row.attempt.misfits.first().copied());
        if let Some(misfit) = misfit {
            let plan = self.state.encoding.plan(first + usize::from(misfit.leaf));
            let mut error = Error::at(0, misfit.error(plan.map_or(0, |p| p.width.get())));
            error.place.section = format.sections.get(self.section).map(|s| s.number);
            error.place.tag = (!stream).then_some(declared.tag);
            error.place.leaf = Some(misfit.leaf);
            return Err(error);
        }
        self.used = end;
        Ok(())
    }

    /// Returns the bytes.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.used);
        self.bytes
    }
}
