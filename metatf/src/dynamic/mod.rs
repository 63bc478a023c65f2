//! The universal reader and writer: any trace, by a DTD parsed at run time (feature `dynamic`).
//!
//! Same containers, same state and rows as generated code; a record is decoded to a [`OwnedRecord`] instead of a struct.

mod element;
mod json_print;
mod json_read;
mod load;
mod nested;
mod open;
mod owned_record;
#[cfg(feature = "parallel")]
mod parallel;

pub use json_print::{JsonOptions, Resolve, print_json};
#[doc(hidden)]
pub use json_print::{print_bytes, print_number};
#[doc(hidden)]
pub use json_read::is_implied;
pub use json_read::{Line, LineError};
pub use load::{Writer, WrittenElement};
pub use nested::Nested;
pub use open::OpenError;
pub use owned_record::OwnedRecord;

use crate::columns::Columns;
use crate::format::Format;
use crate::reader::{At, Event, FormatRef, RecordReader};
pub use crate::reader::{Item, RecordView};
use metatf_container::{Error, Reader, Result};
use metatf_parser::schema::{Dtd, Record};
use std::sync::Arc;

/// A parsed DTD with the tables that readers run on.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Names, layout, docs.
    pub dtd: Arc<Dtd>,
    /// Tables.
    pub format: Arc<Format>,
}

impl Schema {
    /// The schema of a DTD.
    #[must_use]
    pub fn new(dtd: Dtd) -> Self {
        let format = Arc::new(Format::from_dtd(&dtd));
        Self { dtd: Arc::new(dtd), format }
    }

    /// The DTD's record behind an index of [`Format::records`].
    #[must_use]
    pub fn record(&self, index: u16) -> Option<&Record> {
        self.dtd.records.get(usize::from(index))
    }

    /// The DTD's section behind an index of [`Format::sections`].
    #[must_use]
    pub fn section(&self, index: usize) -> Option<&metatf_parser::schema::Section> {
        self.dtd.sections.get(index)
    }
}

/// Reads any trace by a [`Schema`].
pub struct Trace<'a> {
    schema: Schema,
    reader: RecordReader<'a>,
    record: OwnedRecord,
    nested: Nested,
}

/// One thing in a trace, with its values.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'t> {
    /// What it is.
    pub event: Event,
    /// The values of a record, comment or element, in the order of its leaves, without the tag; empty for others.
    pub record: &'t OwnedRecord,
}

impl<'a> Trace<'a> {
    /// Reads the records of a container by a schema.
    ///
    /// # Errors
    /// A section table that does not hold (version 0).
    pub fn new(schema: Schema, container: Reader<'a>) -> Result<Self> {
        let reader = RecordReader::new(FormatRef::Shared(Arc::clone(&schema.format)), container)?;
        let nested = Nested::new(reader.order());
        Ok(Self { schema, reader, record: OwnedRecord::default(), nested })
    }

    /// The schema it is read by.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The reader beneath: options, container, losses.
    #[must_use]
    pub fn reader(&self) -> &RecordReader<'a> {
        &self.reader
    }

    /// The reader beneath, to set options before the first record.
    pub fn reader_mut(&mut self) -> &mut RecordReader<'a> {
        &mut self.reader
    }

    /// The next thing in the trace; `None` at the end and after an error.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(record) = self.reader.plain_record()? else { return self.next_slow() };
        self.record.take(&record);
        let event = Event::Record(record.at());
        Ok(Some(Entry { event, record: &self.record }))
    }

    /// The next data record by its values, without an owned record; see [`RecordReader::next_record`]. `None` at the end, and after an
    /// error.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>> {
        self.reader.next_record()
    }

    /// Gives each data record that is left to `each`: the fastest way to read records one by one.
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
    /// // The tag is number 0, `n` number 1.
    /// trace.for_each(|record| sum += record.numbers()[1])?;
    /// assert_eq!(sum, 0 + 1 + 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, each: impl FnMut(RecordView<'_>)) -> Result<()> {
        self.reader.for_each(each)
    }

    /// As [`for_each`](Self::for_each), until `each` returns an error. The records after it can still be read.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record), and what `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(&mut self, each: impl FnMut(RecordView<'_>) -> Result<(), E>) -> Result<(), E> {
        self.reader.try_for_each(each)
    }

    /// Gives the data records that come next to `each`, until something else comes; see [`RecordReader::try_for_run`].
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record), and what `each` returns.
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

    /// Fills columns with the data records that come next; see [`RecordReader::next_columns`]. False where none is left.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace, once the records before it were given.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        self.reader.next_columns(columns)
    }

    /// Decodes what the [reader](Self::reader_mut) announced last to the owned record. An event that is not decoded is
    /// skipped.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn decode(&mut self, event: Event) -> Result<()> {
        if let Event::Record(_) | Event::Comment(_) | Event::Element(..) = event {
            return self.reader.decode(|row| self.record.decode(row));
        }
        self.record.clear();
        Ok(())
    }

    /// The values of the entry that was decoded last.
    #[must_use]
    pub fn record(&self) -> &OwnedRecord {
        &self.record
    }
}

impl Entry<'_> {
    /// Where the record stands, if it is one.
    #[must_use]
    pub fn at(&self) -> Option<At> {
        match self.event {
            Event::Record(at) | Event::Comment(at) | Event::Element(at, _) => Some(at),
            Event::Metadata(at, _) | Event::Section(at, _) => Some(at),
            Event::Group(_) | Event::Reset(_) => None,
        }
    }
}
