//! The dynamic writer, which writes records from an [`OwnedRecord`] or from JSON lines.

use super::{Line, OwnedRecord, Schema};
use crate::format::FormatRef;
use crate::reader::Item;
use crate::record::{Put, Stopped};
use crate::writer::{Key, RecordWriter};
use metatf_container::{Result, Sink, WriteOptions};
use std::sync::Arc;

/// A writer for traces of any format, which is described by a [`Schema`].
///
/// See the example of the [module](crate::dynamic#examples).
pub struct Writer<S: Sink> {
    inner: RecordWriter<S>,
    /// Lines of shared tables that have not been written yet. If a group follows, the lines belong to that group (spec
    /// 8).
    tables: Vec<(usize, OwnedRecord)>,
    /// Elements written since the last [`take_elements`](Self::take_elements), if elements are being recorded.
    elements: Option<Vec<WrittenElement>>,
}

/// An element written by a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenElement {
    /// Index of the element's section.
    pub section: usize,
    /// Offset of the element in the section's content.
    pub offset: u64,
    /// Whether the element belongs to a shared table.
    pub shared: bool,
}

impl<S: Sink> Writer<S> {
    /// Starts a trace. The order of records is preserved across sections.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn new(sink: S, schema: &Schema, options: &WriteOptions) -> Result<Self> {
        let mut inner = RecordWriter::new(sink, FormatRef::Shared(Arc::clone(&schema.format)), options)?;
        inner.set_keep_order(true);
        Ok(Self { inner, tables: Vec::new(), elements: None })
    }

    /// Writes a line, whose values are in `owned` (see [`Schema::read_json`]). An element of a shared table is written
    /// only when the next line is written, and an error in the element is returned at that time.
    ///
    /// # Errors
    /// Returns an error from the sink, or one for a value that does not fit or a metadata record that spec 4.1 does not
    /// allow.
    pub fn write(&mut self, line: &Line, owned: &OwnedRecord) -> Result<()> {
        match line {
            Line::Element(section, true) => {
                self.tables.push((*section, owned.clone()));
                return Ok(());
            }
            Line::Group => self.inner.start_group()?,
            _ => {}
        }
        self.put_tables()?;
        match line {
            Line::Group => Ok(()),
            Line::Record(section, record) => self.record(*section, *record, owned),
            Line::Element(section, shared) => self.element(*section, *shared, owned).map(drop),
            Line::Metadata(section, metadata) => self.inner.metadata(*section, metadata),
            Line::Section => Ok(()),
            Line::Reset(section) => self.inner.reset(*section),
        }
    }

    /// Writes the pending lines of shared tables into the group of the line that follows them.
    #[doc(hidden)]
    pub fn settle(&mut self) -> Result<()> {
        self.put_tables()
    }

    /// Ends the group if lines of shared tables are pending at the end of the input, because such lines do not belong
    /// to the group before them.
    #[doc(hidden)]
    pub fn end_before_tables(&mut self) -> Result<()> {
        if self.tables.is_empty() { Ok(()) } else { self.inner.start_group() }
    }

    fn put_tables(&mut self) -> Result<()> {
        for (section, owned) in std::mem::take(&mut self.tables) {
            self.element(section, true, &owned)?;
        }
        Ok(())
    }

    /// Writes a record with these section and record indices.
    ///
    /// # Errors
    /// As for [`RecordWriter::record`].
    pub fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()> {
        self.inner.record(section, record, |row| owned.encode(row))
    }

    /// Appends an element to a stream section and returns its offset.
    ///
    /// # Errors
    /// As for [`RecordWriter::element`].
    pub fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<u64> {
        let offset = self.inner.element(section, shared, &mut |row| owned.encode(row))?;
        if let Some(elements) = &mut self.elements {
            elements.push(WrittenElement { section, offset, shared });
        }
        Ok(offset)
    }

    /// Starts recording each [`element`](Self::element) for [`take_elements`](Self::take_elements).
    pub fn note_elements(&mut self) {
        self.elements.get_or_insert_default();
    }

    /// Returns the elements written since the last call, in order.
    pub fn take_elements(&mut self) -> impl Iterator<Item = WrittenElement> + '_ {
        self.elements.iter_mut().flat_map(|elements| elements.drain(..))
    }

    /// Adds an element to a table unless the table already contains an equal one, and returns its offset.
    ///
    /// # Errors
    /// As for [`RecordWriter::element`].
    pub fn intern(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64> {
        self.inner.core().intern(section, owned, |row| owned.encode(row))
    }

    /// Returns the offset of the next new element; see [`RecordWriter::next_offset`].
    #[must_use]
    pub fn next_offset(&self, section: usize) -> u64 {
        self.inner.next_offset(section)
    }

    /// Drops the writer without printing a message; see [`RecordWriter::abandon`].
    pub fn abandon(self) {
        self.inner.abandon();
    }

    /// Returns the underlying writer.
    pub fn inner(&mut self) -> &mut RecordWriter<S> {
        &mut self.inner
    }

    /// Writes the remaining data and returns the sink.
    ///
    /// # Errors
    /// As for [`RecordWriter::finish`].
    pub fn finish(mut self) -> Result<S> {
        self.put_tables()?;
        self.inner.finish()
    }
}

impl Key for OwnedRecord {
    fn put<P: Put<Error = Stopped>>(&self, to: &mut P) -> std::result::Result<(), Stopped> {
        self.iter().try_for_each(|item| match item {
            Item::Number(number) => to.bytes(0, b"n").and_then(|()| to.number(0, number)),
            // The caller may not have supplied the right length before the bytes.
            Item::Bytes(bytes) => {
                to.bytes(0, b"b")?;
                to.number(0, bytes.len() as u64)?;
                to.bytes(0, bytes)
            }
        })
    }
}
