//! Writing a trace from Rust types.

use super::implied::ImpliedValues;
use crate::format::FormatRef;
use crate::record::{DataRecord, Family, Known, Protocol, Put, Stopped, WriteFields};
use crate::state::Change;
use crate::writer::{Key, RecordWriter};
use metatf_container::{Error, ErrorKind, Result, Sink, WriteOptions};
use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::marker::PhantomData;
use std::path::Path;

/// A trace writer. Generated modules wrap it in their own `Writer` type with a method for each record, as the example
/// of the [module](crate::typed#examples) shows.
pub struct Writer<W: Sink, P: Protocol> {
    inner: RecordWriter<W>,
    implied: ImpliedValues,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Writer<BufWriter<File>, P> {
    /// Creates a file. The header is written immediately, and records are written as specified by
    /// [`WriteOptions::flush`].
    ///
    /// # Errors
    /// Returns file system errors.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Sink, P: Protocol> Writer<W, P> {
    /// Starts a trace with the default options.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn new(sink: W) -> Result<Self> {
        Self::start(sink, None)
    }

    /// Starts a trace. If the options do not name a DTD, the header names the DTD of this format.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn with_options(sink: W, options: &WriteOptions) -> Result<Self> {
        Self::start(sink, Some(options))
    }

    fn start(sink: W, options: Option<&WriteOptions>) -> Result<Self> {
        let inner = RecordWriter::for_source(sink, FormatRef::Static(P::FORMAT), options, P::SOURCE)?;
        Ok(Self { inner, implied: ImpliedValues::default(), protocol: PhantomData })
    }

    /// Writes a record of any section, borrowed or owned.
    ///
    /// # Errors
    /// Returns an error from the sink, or one for a value that cannot be encoded.
    #[inline]
    pub fn write(&mut self, record: &impl DataRecord) -> Result<()> {
        record.put(&mut self.inner.core())
    }

    /// Writes records of any sections in sequence, borrowed or owned. The output is the same as calling
    /// [`write`](Self::write) for each record. It is faster for records encoded by straight-line code, because the
    /// preconditions are checked once for many records.
    ///
    /// # Errors
    /// As for [`write`](Self::write). The records before the failing one are written;
    /// [`records_written`](Self::records_written) returns their number.
    #[inline]
    pub fn write_all<R: DataRecord>(&mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        self.inner.put_all(records)
    }

    /// Writes a comment into the section with this number.
    ///
    /// # Errors
    /// Returns an error from the sink, or one if the section does not exist or is a stream section. If the writer is
    /// strict, a comment of more than 255 bytes is an error, too.
    pub fn comment(&mut self, section: u8, text: impl AsRef<[u8]>) -> Result<()> {
        let section = index::<P>(section)?;
        self.inner.comment(section, text.as_ref())
    }

    /// Changes the encoding of a leaf for all following records, including those in later groups (spec 4.1). The leaf
    /// is named as in the DTD, by section, record and path (such as `vfield.length`).
    ///
    /// # Errors
    /// Returns an error for names that are not in the DTD, or for a change that is not allowed.
    pub fn set(&mut self, section: &str, record: &str, leaf: &str, change: Change) -> Result<()> {
        let (section, record, leaf) = Self::leaf(section, record, leaf)?;
        self.inner.set(section, record, leaf, change)
    }

    /// Changes the encoding of every leaf of the section that has the same field name as this leaf, like
    /// [`set`](Self::set).
    ///
    /// # Errors
    /// As for [`set`](Self::set). The change must be allowed for each of these leaves.
    pub fn set_all(&mut self, section: &str, record: &str, leaf: &str, change: Change) -> Result<()> {
        let (section, record, leaf) = Self::leaf(section, record, leaf)?;
        self.inner.set_all(section, record, leaf, change)
    }

    /// Returns the section, record and leaf indices of a leaf.
    fn leaf(section: &str, record: &str, leaf: &str) -> Result<(usize, u16, u8)> {
        let format = P::FORMAT;
        let unknown = Error::at(0, ErrorKind::Usage("the DTD has no such section, record or leaf"));
        let section = match section {
            "" => Some(0),
            name => format.section_named(name),
        };
        let section = section.ok_or(unknown)?;
        let listed = format.sections.get(section).map_or(&[][..], |s| &s.records);
        let found = listed.iter().find_map(|&index| {
            let found = format.records.get(usize::from(index)).filter(|r| r.name == record)?;
            let leaf = found.leaves.iter().position(|l| l.path == leaf)?;
            Some((index, u8::try_from(leaf).ok()?))
        });
        let (record, leaf) = found.ok_or(unknown)?;
        Ok((section, record, leaf))
    }

    /// Sets whether the writer is strict. In a strict writer, a value that does not fit in its leaf's encoding is an
    /// error. Otherwise, it causes a metadata record that changes the encoding. A strict writer adds such a record only at
    /// the start of a group, to let a `delta` or `stride` leaf follow its last value in the previous group.
    pub fn set_strict(&mut self, strict: bool) {
        self.inner.set_strict(strict);
    }

    /// Preserves the order of records across sections, at the cost of a new chunk at every change of section.
    pub fn set_keep_order(&mut self, keep_order: bool) {
        self.inner.set_keep_order(keep_order);
    }

    /// Passes all records written so far to the sink and flushes the sink, so the records survive even if the program
    /// crashes. The writer also flushes by itself as specified by [`WriteOptions::flush`]. A version 0 trace cannot be
    /// flushed.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    /// Ends the current group and starts another, so that the following records can be read without the preceding ones.
    /// Does nothing in a version 0 trace, which always has a single group.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn start_group(&mut self) -> Result<()> {
        self.inner.core().next_group()
    }

    /// Adds user metadata, a JSON object.
    ///
    /// # Errors
    /// Returns an error from the sink, or one if the string is not a JSON object or the trace is a version 0 file,
    /// which cannot store user metadata.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.inner.user_metadata(json)
    }

    /// Returns the next value of a leaf with the interpretation `stride`: the value that this function returned last, plus
    /// the stride. The values written are not considered. Leaves that share a previous value also share these values.
    /// Returns 0 for other leaves.
    pub fn next_value<R: Known>(&self, leaf: u8) -> u64 {
        self.implied.next(P::FORMAT, R::SECTION, R::FIRST + usize::from(leaf), R::RECORD, leaf)
    }

    /// Returns the stream section with this index in the format, to add elements to it.
    pub fn table<E>(&mut self, section: usize) -> Table<'_, W, E> {
        Table { inner: &mut self.inner, section, element: PhantomData }
    }

    /// Returns the number of data records written so far.
    #[must_use]
    pub fn records_written(&self) -> u64 {
        self.inner.records_written()
    }

    /// Returns the underlying writer.
    #[inline]
    pub fn inner(&mut self) -> &mut RecordWriter<W> {
        &mut self.inner
    }

    /// Writes the remaining data, closes the trace and returns the sink.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn finish(self) -> Result<W> {
        self.inner.finish()
    }

    /// Drops the writer without printing a message. The trace in the sink remains incomplete.
    pub fn abandon(self) {
        self.inner.abandon();
    }
}

impl<W: Sink, P: Protocol> fmt::Debug for Writer<W, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("dtd", &P::SOURCE).field("records_written", &self.records_written()).finish()
    }
}

fn index<P: Protocol>(number: u8) -> Result<usize> {
    let index = P::FORMAT.section_index(number);
    index.ok_or(Error::at(0, ErrorKind::UnknownSection(number.into())))
}

/// A stream section that users fill: either a table that `sectionOffset` fields refer to, or a standalone list.
pub struct Table<'w, W: Sink, E> {
    inner: &'w mut RecordWriter<W>,
    section: usize,
    element: PhantomData<fn() -> E>,
}

/// The fields of a table element.
struct Fields<'e, T>(&'e T);

impl<T: WriteFields> Key for Fields<'_, T> {
    #[inline]
    fn put<P: Put<Error = Stopped>>(&self, to: &mut P) -> std::result::Result<(), Stopped> {
        self.0.write_fields(to, 0)
    }
}

impl<W: Sink, E: Family> Table<'_, W, E> {
    /// Adds an element unless the table already contains an equal one, and returns its offset for a `sectionOffset`
    /// field.
    ///
    /// # Errors
    /// Returns an error from the sink, or one for a value that cannot be encoded.
    pub fn intern<'b>(&mut self, element: impl Into<E::With<&'b [u8]>>) -> Result<u64>
    where
        E::With<&'b [u8]>: WriteFields,
    {
        let element = element.into();
        self.inner.core().intern(self.section, &Fields(&element), |row| element.write_fields(row, 0))
    }

    /// Appends an element to the table and returns its offset.
    ///
    /// # Errors
    /// As for [`intern`](Self::intern).
    pub fn push<'b>(&mut self, element: impl Into<E::With<&'b [u8]>>) -> Result<u64>
    where
        E::With<&'b [u8]>: WriteFields,
    {
        let element = element.into();
        self.inner.element(self.section, true, &mut |row| element.write_fields(row, 0))
    }
}
