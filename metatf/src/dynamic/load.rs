//! The dynamic writer, which writes records from an [`OwnedRecord`] or from JSON lines.

use super::json_read::object;
use super::{Dangling, Line, LineError, OwnedRecord, References, Schema, Strides, WrittenElement};
use crate::format::FormatRef;
use crate::reader::Item;
use crate::record::{Put, Stopped};
use crate::writer::{Key, RecordWriter};
use metatf_container::{Error, ErrorKind, Result, Sink, WriteOptions};
use metatf_parser::schema::Interpretation;
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
    schema: Schema,
    /// The references to check, if the writer is strict.
    references: Option<References>,
    /// The references in lines to the elements of each section.
    uses: Vec<TableUse>,
}

/// The references in lines to the elements of a section.
#[derive(Clone, Copy, Debug, Default)]
struct TableUse {
    /// Whether fields can refer to the elements by strings.
    has_strings: bool,
    /// Whether a line has referred to an element by a string, so that the section is a shared table.
    is_interned: bool,
    /// Whether the elements belong to groups, because a line has added one to a group, or because fields consume them.
    is_of_groups: bool,
}

/// The error for a section whose elements would be both in groups and in a shared table.
const UNSHARED: &str = "a field contains a string of a section, but elements of the section are not in a shared table: mark \
                        the lines of the section with \"@shared\":true, or omit them";

impl<S: Sink> Writer<S> {
    /// Starts a trace. The order of records is preserved across sections.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub fn new(sink: S, schema: &Schema, options: &WriteOptions) -> Result<Self> {
        let mut inner = RecordWriter::new(sink, FormatRef::Shared(Arc::clone(&schema.format)), options)?;
        inner.set_keep_order(true);
        let mut uses = vec![TableUse::default(); schema.dtd.sections.len()];
        for leaf in schema.dtd.records.iter().flat_map(|record| &record.leaves) {
            if let Some(uses) = schema.strings_of(leaf).and_then(|section| uses.get_mut(section)) {
                uses.has_strings = true;
            }
            if let Interpretation::SectionStride { section, .. } = leaf.interpretation
                && let Some(uses) = schema.format.section_index(section).and_then(|section| uses.get_mut(section))
            {
                uses.is_of_groups = true;
            }
        }
        Ok(Self { inner, tables: Vec::new(), elements: None, schema: schema.clone(), references: None, uses })
    }

    /// Parses the next line like [`Schema::read_json_next`]. In place of the offset of an element in a section of strings,
    /// a line may contain the string (spec 8). The string is added to the section, which becomes a shared table, unless
    /// the table already contains it. After an error, strings of the line may remain in the table.
    ///
    /// # Errors
    /// As for [`Schema::read_json`], and an error if a string cannot be added.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf::container::WriteOptions;
    /// use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Strides, Trace, Writer};
    ///
    /// let dtd = b"section log 1 { get: (tag, path) {
    ///         tag.value = 4; path.width = 2; path.interpretation = sectionOffset 2; } }
    ///     section paths 2 { path_entry: vfield { vfield.data.format = \"utf8\"; } }";
    /// let schema = Schema::parse("log.dtd", dtd)?;
    /// let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
    /// let (mut owned, mut strides) = (OwnedRecord::default(), Strides::new(&schema));
    /// let text = br#"{"@section":"log","@record":"get","path":"/index.html"}"#;
    /// for _ in 0..2 {
    ///     let line = writer.read_json(text, &mut owned, &mut strides)?;
    ///     writer.write(&line, &owned)?;
    /// }
    /// assert_eq!(writer.next_offset(2), 12); // The table contains one string, after its length.
    /// let trace = writer.finish()?;
    ///
    /// let mut lines = Vec::new();
    /// let options = JsonOptions { names: true, ..JsonOptions::default() };
    /// Trace::from_slice(&trace)?.next_json(&mut lines, options)?;
    /// assert_eq!(lines.trim_ascii_end(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_json(
        &mut self,
        line: &[u8],
        owned: &mut OwnedRecord,
        strides: &mut Strides,
    ) -> std::result::Result<Line, LineError> {
        let (schema, order, object) = (self.schema.clone(), self.inner.core_ref().order(), object(line)?);
        let mut intern = |section: usize, element: &OwnedRecord| {
            let interned = self.intern_string(section, element);
            interned.map_err(|error| crate::explain(&schema.format, &error).to_string())
        };
        let read = schema.read_with_strings(order, &object, owned, strides, Some(&mut intern));
        read.map_err(|error| error.in_line(line))
    }

    /// Writes a line, whose values are in `owned` (see [`Schema::read_json`]). An element of a shared table is written
    /// only when the next line is written, and an error in the element is returned at that time.
    ///
    /// # Errors
    /// Returns an error from the sink, or one for a value that does not fit or a metadata record that spec 4.1 does not
    /// allow.
    pub fn write(&mut self, line: &Line, owned: &OwnedRecord) -> Result<()> {
        self.put(line, owned)?;
        self.check(|references, writer| {
            let number = writer.inner.records_written();
            writer.check_line(references, number, (line, owned))
        })
    }

    /// Checks references if the writer is strict.
    fn check(
        &mut self,
        check: impl FnOnce(&mut References, &mut Self) -> std::result::Result<(), Dangling>,
    ) -> Result<()> {
        let Some(mut references) = self.references.take() else { return Ok(()) };
        let checked = check(&mut references, self);
        self.references = Some(references);
        checked.map_err(|dangling| dangling.error(&self.schema))
    }

    fn put(&mut self, line: &Line, owned: &OwnedRecord) -> Result<()> {
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
            Line::Element(section, shared) => {
                let can_share = self.inner.core_ref().can_share();
                if let Some(uses) = self.uses.get_mut(*section) {
                    uses.is_of_groups = true;
                    if uses.is_interned && can_share {
                        return Err(Error::at(0, ErrorKind::Usage(UNSHARED)));
                    }
                }
                self.element(*section, *shared, owned).map(drop)
            }
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
            let offset = self.element(section, true, &owned)?;
            if self.uses.get(section).is_some_and(|uses| uses.has_strings) {
                self.inner.core().add_interned(section, &owned, offset)?;
            }
        }
        Ok(())
    }

    /// Adds a string to a shared table unless the table already contains it, and returns its offset.
    fn intern_string(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64> {
        // A line may refer to the lines of tables before it.
        self.put_tables()?;
        if let Some(uses) = self.uses.get_mut(section) {
            if uses.is_of_groups && self.inner.core_ref().can_share() {
                return Err(Error::at(0, ErrorKind::Usage(UNSHARED)));
            }
            uses.is_interned = true;
        }
        self.intern(section, owned)
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

    /// Sets whether the writer is strict; see [`RecordWriter::set_strict`]. A strict writer also returns an error if a
    /// [line](Self::write) contains a reference to a missing element. Because the element may follow the reference, the
    /// error is returned at the end of the group at the latest, and describes the record that contains the reference.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf::container::{ErrorKind, WriteOptions};
    /// use metatf::dynamic::{OwnedRecord, Schema, Writer};
    ///
    /// let dtd = b"section log 1 { get: (tag, path) {
    ///         tag.value = 4; path.width = 2; path.interpretation = sectionOffset 2; } }
    ///     section paths 2 { path_entry: vfield; }";
    /// let schema = Schema::parse("log.dtd", dtd)?;
    /// let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
    /// writer.set_strict(true);
    /// let mut owned = OwnedRecord::default();
    /// let line = schema.read_json(br#"{"@section":"log","@record":"get","path":7}"#, &mut owned)?;
    /// writer.write(&line, &owned)?;
    /// let error = writer.finish().err().ok_or("the reference is accepted")?;
    /// assert_eq!(error.kind, ErrorKind::NoOffset { section: 2, offset: 7 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_strict(&mut self, strict: bool) {
        self.inner.set_strict(strict);
        let schema = self.schema.clone();
        self.references = if strict { References::new(&schema) } else { None };
        if strict {
            self.note_elements();
        }
    }

    /// Checks the references of a written line, which has this number. The writer must note its elements.
    #[doc(hidden)]
    pub fn check_line(
        &mut self,
        references: &mut References,
        number: u64,
        line: (&Line, &OwnedRecord),
    ) -> std::result::Result<(), Dangling> {
        references.take(number, line, self.elements.iter_mut().flat_map(|elements| elements.drain(..)), &self.inner)
    }

    /// Checks the references at the end of the trace.
    #[doc(hidden)]
    pub fn check_end(&mut self, references: &mut References) -> std::result::Result<(), Dangling> {
        references.finish(self.elements.iter_mut().flat_map(|elements| elements.drain(..)), &self.inner)
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
        let next = self.inner.next_offset(section);
        let offset = self.inner.core().intern(section, owned, |row| owned.encode(row))?;
        if let Some(elements) = self.elements.as_mut().filter(|_| offset >= next) {
            elements.push(WrittenElement { section, offset, shared: self.inner.core_ref().can_share() });
        }
        Ok(offset)
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
    /// As for [`RecordWriter::finish`], and for a dangling reference in a [strict](Self::set_strict) writer.
    pub fn finish(mut self) -> Result<S> {
        self.put_tables()?;
        if let Err(error) = self.check(|references, writer| writer.check_end(references)) {
            self.abandon();
            return Err(error);
        }
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
