//! Writing a trace from Rust types.

use crate::format::FormatRef;
use crate::record::{DataRecord, Family, Protocol, Put, Stopped, WriteFields};
use crate::state::Change;
use crate::writer::{Key, RecordWriter};
use metatf_container::{Error, ErrorKind, Result, Sink, WriteOptions};
use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::marker::PhantomData;
use std::path::Path;

/// Writes a trace. Generated modules wrap it in a `Writer` of their own, with a method for each record.
pub struct Writer<W: Sink, P: Protocol> {
    inner: RecordWriter<W>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Writer<BufWriter<File>, P> {
    /// Creates a file. Its header is there at once; records follow as [`WriteOptions::flush`] says.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(BufWriter::new(File::create(path)?))
    }
}

impl<W: Sink, P: Protocol> Writer<W, P> {
    /// Starts a trace with the default options.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(sink: W) -> Result<Self> {
        Self::with_options(sink, &WriteOptions::default())
    }

    /// Starts a trace. Where the options name no DTD, the header names this format's.
    ///
    /// # Errors
    /// The sink's.
    pub fn with_options(sink: W, options: &WriteOptions) -> Result<Self> {
        let mut options = options.clone();
        if options.dtd_url.is_empty() {
            options.dtd_url = P::SOURCE.to_owned();
        }
        let inner = RecordWriter::new(sink, FormatRef::Static(P::FORMAT), &options)?;
        Ok(Self { inner, protocol: PhantomData })
    }

    /// Writes a record of any section, borrowed or owned.
    ///
    /// # Errors
    /// The sink's, and what cannot be written as it is.
    #[inline]
    pub fn write(&mut self, record: &impl DataRecord) -> Result<()> {
        record.put(&mut self.inner)
    }

    /// Writes records of any sections, one after the other, borrowed or owned. What comes of it is what
    /// [`write`](Self::write) makes of each. Where records are stored in a straight line it is quicker, as what that
    /// depends on is asked once for many.
    ///
    /// # Errors
    /// As for [`write`](Self::write); the records before the one at fault are written, as
    /// [`records_written`](Self::records_written) tells.
    #[inline]
    pub fn write_all<R: DataRecord>(&mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        self.inner.put_all(records)
    }

    /// Writes a comment into the section of this number.
    ///
    /// # Errors
    /// No such section, or a stream section; the sink's; text of over 255 bytes, unless the writer may adapt.
    pub fn comment(&mut self, section: u8, text: impl AsRef<[u8]>) -> Result<()> {
        let section = index::<P>(section)?;
        self.inner.comment(section, text.as_ref())
    }

    /// Changes how a leaf is encoded from here on (spec 4.1), by the names of the DTD: section, record, path of the
    /// leaf (`vfield.length`). It holds in later groups, too.
    ///
    /// # Errors
    /// Names that the DTD does not have, a change that is not allowed.
    pub fn set(&mut self, section: &str, record: &str, leaf: &str, change: Change) -> Result<()> {
        let (section, record, leaf) = Self::leaf(section, record, leaf)?;
        self.inner.set(section, record, leaf, change)
    }

    /// As [`set`](Self::set), for every leaf of the section that has this one's field name.
    ///
    /// # Errors
    /// As [`set`](Self::set); a change that is not allowed to one of them.
    pub fn set_all(&mut self, section: &str, record: &str, leaf: &str, change: Change) -> Result<()> {
        let (section, record, leaf) = Self::leaf(section, record, leaf)?;
        self.inner.set_all(section, record, leaf, change)
    }

    /// The numbers of a leaf: section, record, leaf.
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

    /// Strict: a value that does not fit its leaf's encoding is an error, instead of a metadata record that makes it fit.
    pub fn set_strict(&mut self, strict: bool) {
        self.inner.set_strict(strict);
    }

    /// Keeps the order of records over sections, at the cost of a new chunk at every change of section.
    pub fn set_keep_order(&mut self, keep_order: bool) {
        self.inner.set_keep_order(keep_order);
    }

    /// Hands all records that were written on to the sink, and flushes that: they are safe then, whatever becomes of the
    /// program. The writer does so by itself as [`WriteOptions::flush`] says. A version 0 trace cannot be flushed.
    ///
    /// # Errors
    /// The sink's.
    pub fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    /// Ends the group in progress and starts another: what follows can be read without what precedes. Nothing happens in a
    /// version 0 trace, which has one group.
    ///
    /// # Errors
    /// The sink's.
    pub fn start_group(&mut self) -> Result<()> {
        self.inner.next_group()
    }

    /// Adds user metadata, a JSON object.
    ///
    /// # Errors
    /// The sink's; text that is not a JSON object; a version 0 file, which has no place for it.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.inner.user_metadata(json)
    }

    /// Elements of a stream section, by its index in the format.
    pub fn table<E>(&mut self, section: usize) -> Table<'_, W, E> {
        Table { inner: &mut self.inner, section, element: PhantomData }
    }

    /// Data records written so far.
    #[must_use]
    pub fn records_written(&self) -> u64 {
        self.inner.records_written()
    }

    /// The writer beneath.
    #[inline]
    pub fn inner(&mut self) -> &mut RecordWriter<W> {
        &mut self.inner
    }

    /// Writes what is left, closes the trace and gives the sink back.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(self) -> Result<W> {
        self.inner.finish()
    }

    /// Drops the writer without a message: what is in the sink is not a whole trace.
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

/// A stream section that users fill: a table that `sectionOffset` fields refer to, or a list in its own right.
pub struct Table<'w, W: Sink, E> {
    inner: &'w mut RecordWriter<W>,
    section: usize,
    element: PhantomData<fn() -> E>,
}

/// An element of a table, by its fields.
struct Fields<'e, T>(&'e T);

impl<T: WriteFields> Key for Fields<'_, T> {
    #[inline]
    fn put<P: Put<Error = Stopped>>(&self, to: &mut P) -> std::result::Result<(), Stopped> {
        self.0.write_fields(to, 0)
    }
}

impl<W: Sink, E: Family> Table<'_, W, E> {
    /// The offset of this element in the table, for a `sectionOffset` field. Equal elements are stored once.
    ///
    /// # Errors
    /// The sink's, and what cannot be written as it is.
    pub fn intern<'b>(&mut self, element: impl Into<E::With<&'b [u8]>>) -> Result<u64>
    where
        E::With<&'b [u8]>: WriteFields,
    {
        let element = element.into();
        self.inner.intern(self.section, &Fields(&element), |row| element.write_fields(row, 0))
    }

    /// Appends an element to the table and gives its offset.
    ///
    /// # Errors
    /// As [`intern`](Self::intern).
    pub fn push<'b>(&mut self, element: impl Into<E::With<&'b [u8]>>) -> Result<u64>
    where
        E::With<&'b [u8]>: WriteFields,
    {
        let element = element.into();
        self.inner.element(self.section, true, &mut |row| element.write_fields(row, 0))
    }
}
