//! From a trace to a writer, fields converted.

use super::{ConvertError, Converted, Converter};
use metatf::container::{Result, Sink};
use metatf::dynamic::{OwnedRecord, Trace, Writer};
use metatf::reader::Event;

/// Takes what is converted. The writers of this crate are such.
pub trait ConvertedSink {
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
    /// Converter all of a trace: records, comments, elements that no record takes, tables; user metadata where the target
    /// `keeps_user` metadata (version 0 has no place for it). `step` is called for every record and element.
    ///
    /// # Errors
    /// What is wrong with the trace; values that cannot be converted; the target's.
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

/// User metadata from the `known`-th on; how many there are now.
fn copy_user(trace: &Trace<'_>, to: &mut impl ConvertedSink, known: usize) -> Result<usize, ConvertError> {
    let all = trace.reader().container().user_metadata();
    for json in all.iter().skip(known) {
        if let Ok(json) = std::str::from_utf8(json) {
            to.user_metadata(json).map_err(ConvertError::Write)?;
        }
    }
    Ok(all.len())
}
