//! From a trace to a writer, fields moved.

use super::{MoveError, Moved, Moves};
use crate::dynamic::{OwnedRecord, Trace, Writer};
use crate::reader::Event;
use metatf_container::{Result, Sink};

/// Takes what is moved. The writers of this crate are such.
pub trait MoveTo {
    /// Takes a record or comment, by the indices of the section and of the record.
    ///
    /// # Errors
    /// A value that cannot be written; the sink's.
    fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()>;

    /// Takes an element of a stream section, whether of a shared table.
    ///
    /// # Errors
    /// A value that cannot be written.
    fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<()>;

    /// Puts an element into a table; equal elements once. Gives its offset.
    ///
    /// # Errors
    /// A value that cannot be written.
    fn intern(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64>;

    /// The offset that the next new element of a table will have.
    fn next_offset(&mut self, section: usize) -> u64;

    /// A group of the trace begins.
    ///
    /// # Errors
    /// The sink's.
    fn start_group(&mut self) -> Result<()>;

    /// Takes user metadata, a JSON object.
    ///
    /// # Errors
    /// The sink's.
    fn user_metadata(&mut self, json: &str) -> Result<()>;
}

impl<S: Sink> MoveTo for Writer<S> {
    fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()> {
        Self::record(self, section, record, owned)
    }

    fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<()> {
        Self::element(self, section, shared, owned).map(drop)
    }

    fn intern(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64> {
        Self::intern(self, section, owned)
    }

    fn next_offset(&mut self, section: usize) -> u64 {
        Self::next_offset(self, section)
    }

    fn start_group(&mut self) -> Result<()> {
        self.inner().start_group()
    }

    fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.inner().user_metadata(json)
    }
}

impl Moves {
    /// Moves all of a trace: records, comments, elements that no record takes, tables; user metadata where the target
    /// `keeps_user` metadata (version 0 has no place for it). `step` is called for every record and element.
    ///
    /// # Errors
    /// What is wrong with the trace; values that cannot be moved; the target's.
    pub fn copy(
        &mut self,
        trace: &mut Trace<'_>,
        to: &mut impl MoveTo,
        keeps_user: bool,
        step: &mut dyn FnMut(),
    ) -> Result<(), MoveError> {
        let mut user = 0;
        trace.reader_mut().set_all(true);
        while let Some(event) = trace.reader_mut().next_event().map_err(MoveError::Read)? {
            if user == 0 && keeps_user {
                user = copy_user(trace, to, user)?;
            }
            if let Event::Group(_) = event {
                to.start_group().map_err(MoveError::Write)?;
            }
            let moved = self.apply(trace, event, to)?;
            let taken = match moved {
                Some(Moved::Record(section, record)) => to.record(section, record, self.owned_record()),
                Some(Moved::Element(section, shared)) => to.element(section, shared, self.owned_record()),
                Some(Moved::Interned(section)) => to.intern(section, self.owned_record()).map(drop),
                None => Ok(()),
            };
            taken.map_err(MoveError::Write)?;
            step();
        }
        if keeps_user {
            copy_user(trace, to, user)?;
        }
        Ok(())
    }
}

/// User metadata from the `known`-th on; how many there are now.
fn copy_user(trace: &Trace<'_>, to: &mut impl MoveTo, known: usize) -> Result<usize, MoveError> {
    let all = trace.reader().container().user_metadata();
    for json in all.iter().skip(known) {
        if let Ok(json) = std::str::from_utf8(json) {
            to.user_metadata(json).map_err(MoveError::Write)?;
        }
    }
    Ok(all.len())
}
