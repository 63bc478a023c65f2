//! The dynamic reader and writer, which read and write traces of any format by means of a DTD parsed at run time
//! (feature `dynamic`).
//!
//! They share containers, state and rows with generated code, but decode a record to an [`OwnedRecord`] instead of a
//! struct.
//!
//! # Examples
//!
//! The [crate's example](crate) reads and writes JSON lines. This example writes and reads the values of a record:
//!
//! ```
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
//!
//! let dtd = b"section heap 1 { alloc: (tag, address, size) { tag.value = 4;
//!     address.width = 8; address.interpretation = none; size.width = 2; size.interpretation = none; } }";
//! let schema = Schema::parse("heap.dtd", dtd)?;
//! let mut alloc = OwnedRecord::default();
//! alloc.push_number(0x1000); // The address.
//! alloc.push_number(24); // The size.
//!
//! let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! writer.record(1, 3, &alloc)?; // Section 0 is global, and records 0 to 2 are predefined.
//! let file = writer.finish()?;
//!
//! let mut trace = Trace::from_slice(&file)?;
//! let entry = trace.next_entry()?.ok_or("no record")?;
//! assert_eq!(entry.record, &alloc);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod element;
mod json_print;
mod json_read;
mod load;
mod nested;
mod open;
mod owned_record;
#[cfg(feature = "parallel")]
mod parallel;
mod references;
mod strings;

pub use json_print::{JsonOptions, Resolve, print_json};
#[doc(hidden)]
pub use json_print::{print_bytes, print_number};
#[doc(hidden)]
pub use json_read::is_implied;
pub use json_read::{Line, LineError, Strides};
pub use load::Writer;
pub use nested::Nested;
pub use open::OpenError;
pub use owned_record::OwnedRecord;
pub use references::WrittenElement;
#[doc(hidden)]
pub use references::{Dangling, References, Referring, Starts, Target};

use crate::columns::Columns;
use crate::format::Format;
use crate::reader::{At, Event, FormatRef, RecordReader};
pub use crate::reader::{Item, RecordView};
use metatf_container::{Error, Reader, Result};
use metatf_parser::schema::{Dtd, Record};
use std::sync::Arc;

/// A parsed DTD and the tables that readers need.
///
/// See the example of the [module](crate::dynamic#examples).
#[derive(Clone, Debug)]
pub struct Schema {
    /// Names, layout and documentation.
    pub dtd: Arc<Dtd>,
    /// The tables compiled from the DTD.
    pub format: Arc<Format>,
}

impl Schema {
    /// Creates the schema for a DTD.
    #[must_use]
    pub fn new(dtd: Dtd) -> Self {
        let format = Arc::new(Format::from_dtd(&dtd));
        Self { dtd: Arc::new(dtd), format }
    }

    /// Returns the DTD's record with this index in [`Format::records`].
    #[must_use]
    pub fn record(&self, index: u16) -> Option<&Record> {
        self.dtd.records.get(usize::from(index))
    }

    /// Returns the DTD's section with this index in [`Format::sections`].
    #[must_use]
    pub fn section(&self, index: usize) -> Option<&metatf_parser::schema::Section> {
        self.dtd.sections.get(index)
    }
}

/// A reader for traces of any format, which is described by a [`Schema`].
///
/// See the example of the [module](crate::dynamic#examples).
pub struct Trace<'a> {
    schema: Schema,
    reader: RecordReader<'a>,
    record: OwnedRecord,
    nested: Nested,
    /// Whether a field refers to a section of strings.
    has_strings: bool,
}

/// An item in a trace with its values.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'t> {
    /// The kind of the item.
    pub event: Event,
    /// The values of a record, comment or element in leaf order, without the tag. It is empty for other items.
    pub record: &'t OwnedRecord,
}

impl<'a> Trace<'a> {
    /// Creates a reader for the records of a container with this schema.
    ///
    /// # Errors
    /// Returns an error if the section table is invalid (version 0).
    pub fn new(schema: Schema, container: Reader<'a>) -> Result<Self> {
        let reader = RecordReader::new(FormatRef::Shared(Arc::clone(&schema.format)), container)?;
        let nested = Nested::new(reader.order());
        let has_strings = schema.has_strings();
        Ok(Self { schema, reader, record: OwnedRecord::default(), nested, has_strings })
    }

    /// Returns the schema used to read the trace.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the underlying reader, which provides access to the container and the losses.
    #[must_use]
    pub fn reader(&self) -> &RecordReader<'a> {
        &self.reader
    }

    /// Returns the underlying reader, so that options can be set before the first record.
    pub fn reader_mut(&mut self) -> &mut RecordReader<'a> {
        &mut self.reader
    }

    /// Returns the next item in the trace, or `None` at the end and after an error.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(record) = self.reader.plain_record()? else { return self.next_slow() };
        self.record.take(&record);
        let event = Event::Record(record.at());
        Ok(Some(Entry { event, record: &self.record }))
    }

    /// Returns the next data record as a view of its values, without copying them to an owned record; see
    /// [`RecordReader::next_record`]. Returns `None` at the end and after an error.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>> {
        self.reader.next_record()
    }

    /// Calls `each` for every remaining data record. This is the fastest way to read records one by one.
    ///
    /// ```
    /// # use metatf::container::WriteOptions;
    /// # use metatf::dynamic::{Schema, OwnedRecord, Trace, Writer};
    /// # let schema = Schema::parse("ticks.dtd", b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }")?;
    /// # let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
    /// # let mut owned = OwnedRecord::default();
    /// # for n in 0..3 {
    /// #     let line = schema.read_json(format!("{{\"@section\":\"s\",\"@record\":\"tick\",\"n\":{n}}}").as_bytes(), &mut owned)?;
    /// #     writer.write(&line, &owned)?;
    /// # }
    /// # let file = writer.finish()?;
    /// let mut trace = Trace::from_slice(&file)?;
    /// let mut sum = 0;
    /// // The tag is number 0, and `n` is number 1.
    /// trace.for_each(|record| sum += record.numbers()[1])?;
    /// assert_eq!(sum, 0 + 1 + 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, each: impl FnMut(RecordView<'_>)) -> Result<()> {
        self.reader.for_each(each)
    }

    /// Calls `each` for every remaining data record, stopping if `each` returns an error. The records after the one
    /// that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record), and any error that `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(&mut self, each: impl FnMut(RecordView<'_>) -> Result<(), E>) -> Result<(), E> {
        self.reader.try_for_each(each)
    }

    /// Calls `each` with the upcoming data records until another item follows; see [`RecordReader::try_for_run`].
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record), and any error that `each` returns.
    #[inline]
    pub fn try_for_run<E: From<Error>>(&mut self, each: impl FnMut(RecordView<'_>) -> Result<(), E>) -> Result<(), E> {
        self.reader.try_for_run(each)
    }

    #[inline(never)]
    fn next_slow(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(event) = self.reader.next_event()? else { return Ok(None) };
        self.decode(event)?;
        Ok(Some(Entry { event, record: &self.record }))
    }

    /// Fills columns with the next data records; see [`RecordReader::next_columns`]. Returns false if no records
    /// remain.
    ///
    /// # Errors
    /// Returns the first error in the trace, after the records before it have been returned.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        self.reader.next_columns(columns)
    }

    /// Decodes the most recent event of the [reader](Self::reader_mut) to the owned record. An event that is not
    /// decoded is skipped.
    ///
    /// # Errors
    /// Returns an error if the record is malformed.
    pub fn decode(&mut self, event: Event) -> Result<()> {
        if let Event::Record(_) | Event::Comment(_) | Event::Element(..) = event {
            return self.reader.decode(|row| self.record.decode(row));
        }
        self.record.clear();
        Ok(())
    }

    /// Returns the values of the most recently decoded entry.
    #[must_use]
    pub fn record(&self) -> &OwnedRecord {
        &self.record
    }
}

impl Entry<'_> {
    /// Returns the position of the record, or `None` for an entry that is not a record.
    #[must_use]
    pub fn at(&self) -> Option<At> {
        match self.event {
            Event::Record(at) | Event::Comment(at) | Event::Element(at, _) => Some(at),
            Event::Metadata(at, _) | Event::Section(at, _) => Some(at),
            Event::Group(_) | Event::Reset(_) => None,
        }
    }
}
