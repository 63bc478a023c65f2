//! Copies a trace to a writer, converting its fields.

use super::{ConvertError, Converted, Converter};
use metatf::container::{Result, Sink};
use metatf::dynamic::{OwnedRecord, Trace, Writer};
use metatf::reader::Event;

/// A sink for converted records. The writers of this crate implement it.
pub trait ConvertedSink {
    /// Writes a record or comment, given the section index and the record index.
    ///
    /// # Errors
    /// Returns an error if a value cannot be written or the sink fails.
    fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()>;

    /// Writes an element of a stream section. `shared` indicates that the section is a shared table.
    ///
    /// # Errors
    /// Returns an error if a value cannot be written.
    fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<()>;

    /// Adds an element to a table unless the table already contains it. Returns its offset.
    ///
    /// # Errors
    /// Returns an error if a value cannot be written.
    fn intern(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64>;

    /// Returns the offset of the next new element of a table.
    fn next_offset(&mut self, section: usize) -> u64;

    /// Starts a group.
    ///
    /// # Errors
    /// Returns the sink's error.
    fn start_group(&mut self) -> Result<()>;

    /// Writes user metadata, a JSON object.
    ///
    /// # Errors
    /// Returns the sink's error.
    fn user_metadata(&mut self, json: &str) -> Result<()>;
}

impl<S: Sink> ConvertedSink for Writer<S> {
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

impl Converter {
    /// Converts an entire trace, including comments, tables, and elements that no record consumes. User metadata is
    /// copied only if `keeps_user` is set; version 0 cannot store user metadata. `step` is called for every record and
    /// element.
    ///
    /// # Errors
    /// Returns an error if the trace is malformed, a value cannot be converted, or the target fails.
    pub fn copy(
        &mut self,
        trace: &mut Trace<'_>,
        to: &mut impl ConvertedSink,
        keeps_user: bool,
        step: &mut dyn FnMut(),
    ) -> Result<(), ConvertError> {
        let mut user = 0;
        trace.reader_mut().set_all(true);
        while let Some(event) = trace.reader_mut().next_event().map_err(ConvertError::Read)? {
            if user == 0 && keeps_user {
                user = copy_user(trace, to, user)?;
            }
            if let Event::Group(_) = event {
                to.start_group().map_err(ConvertError::Write)?;
            }
            let converted = self.apply(trace, event, to)?;
            let taken = match converted {
                Some(Converted::Record(section, record)) => to.record(section, record, self.owned_record()),
                Some(Converted::Element(section, shared)) => to.element(section, shared, self.owned_record()),
                Some(Converted::Interned(section)) => to.intern(section, self.owned_record()).map(drop),
                None => Ok(()),
            };
            taken.map_err(ConvertError::Write)?;
            step();
        }
        if keeps_user {
            copy_user(trace, to, user)?;
        }
        Ok(())
    }
}

/// Copies user metadata from index `known` on. Returns the number of user metadata objects read so far.
fn copy_user(trace: &Trace<'_>, to: &mut impl ConvertedSink, known: usize) -> Result<usize, ConvertError> {
    let all = trace.reader().container().user_metadata();
    for json in all.iter().skip(known) {
        if let Ok(json) = std::str::from_utf8(json) {
            to.user_metadata(json).map_err(ConvertError::Write)?;
        }
    }
    Ok(all.len())
}
