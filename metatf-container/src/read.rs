//! The container reader, which opens a source and returns its parts in file order.
//!
//! This file has over 400 lines so that all ways to open a container are next to each other: from files, slices and
//! streams, with and without salvaging.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::chunk::{self, Probe};
use super::header::{Class, Header, INTS_AT, Order};
use super::loss::{LossCause, LossReport};
use super::part::{Content, ContentBytes, Part};
use super::ranges::ByteRanges;
use super::read_v0::{self, Extents};
use super::read_v1::{self, Chunks};
use super::salvage::{self, Salvage};
use super::source::Source;
use super::warning::{Warning, Warnings};
use crate::{Error, ErrorKind, Result};

/// A reader for the container of a trace, which consists of a header, a DTD and parts. The reader checks every rule of
/// spec 5.1 and 5.2 that does not depend on the contents of the DTD, and never panics. It keeps only one chunk in
/// memory, apart from the data that the documentation of its methods mentions.
///
/// The [crate's example](crate#examples) reads an intact trace.
///
/// # Examples
///
/// Salvaging skips a corrupt chunk and reports the number of records that it contained:
///
/// ```
/// use metatf_container::{CHUNK_HEADER_LEN, ChunkSpec, ChunkWriter, Reader, WriteOptions};
///
/// let mut writer = ChunkWriter::new(Vec::new(), &WriteOptions::default(), b"section log 1 { }")?;
/// let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
/// writer.data(spec, b"one")?;
/// writer.data(ChunkSpec { group: 1, ..spec }, b"two")?;
/// let mut file = writer.finish(2)?;
/// let first = Reader::from_slice(&file)?.chunks()?[1]; // Chunk 0 contains the DTD.
/// file[usize::try_from(first.offset + CHUNK_HEADER_LEN)?] ^= 1;
///
/// let mut reader = Reader::salvage_slice(&file)?;
/// let part = reader.next_part()?.ok_or("no part")?;
/// assert_eq!(reader.bytes(&part.content), b"two");
/// assert!(reader.next_part()?.is_none());
/// let report = reader.loss_report().ok_or("not salvaging")?;
/// assert_eq!((report.missing_chunks, report.records_lost()), (1, Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<'a> {
    pub(super) source: Source<'a>,
    pub(super) header: Header,
    pub(super) body: Body,
    warnings: Warnings,
    pub(super) salvage: Option<Box<Salvage>>,
    /// Whether an error was returned. After an error, the reader returns nothing more.
    pub(super) failed: bool,
    opening_error: Option<Error>,
}

/// The data to read.
pub(super) enum Body {
    Extents(Extents),
    Chunks(Box<Chunks>),
    /// A raw stream. `left` contains the unread parts in reverse order, and `parts` contains all parts.
    Raw {
        section: u8,
        left: Vec<(u8, Range<usize>)>,
        parts: Vec<(u8, Range<usize>)>,
    },
}

impl<'a> Reader<'a> {
    /// Opens a file. A regular file is mapped; anything else (a pipe, `/dev/stdin`) is read as a stream. Without the
    /// feature `files`, a regular file is read into memory.
    ///
    /// A mapped file should not change while it is being read. If another process writes to it, the reader sees a
    /// mixture of old and new bytes and returns wrong records or an error, as for a corrupt file. If another process
    /// truncates it, accessing the missing part kills this process with SIGBUS (on Unix). To read a file that other
    /// processes may write to, use [`Reader::read`].
    ///
    /// # Errors
    /// As for [`Reader::from_read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::open(path.as_ref())?, false)
    }

    /// Reads a file chunk by chunk without mapping it. If another process truncates the file in the meantime, the
    /// result is an [error](crate::error::SystemError::is_truncated), not a signal. Like a mapped file, a regular file
    /// can be read from any offset and by several threads.
    ///
    /// # Errors
    /// Returns an error from the system, or any error that [`Reader::from_read`] returns.
    pub fn read(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::read(path.as_ref())?, false)
    }

    /// Reads a trace in memory.
    ///
    /// # Errors
    /// As for [`Reader::from_read`].
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self> {
        Self::start(Source::slice(bytes), false)
    }

    /// Reads a stream. Version 1 is read chunk by chunk. Version 0 requires random access for its table, so it is first
    /// copied to an unlinked temporary file, or to memory without the `files` feature. To read standard input, pass
    /// `io::stdin()` instead of its lock, which is not `Send`.
    ///
    /// # Errors
    /// Returns an error if the header is invalid (spec 5.1) or reading fails.
    pub fn from_read(read: impl Read + Send + 'a) -> Result<Self> {
        Self::start(Source::stream(read), false)
    }

    /// Reads the byte ranges of a file or an object. As with a file, the reader can start at any group and several
    /// threads can read; only the header, the index and the requested groups are read. Version 0 requires all bytes, so
    /// it is first copied to an unlinked temporary file, or to memory without the `files` feature.
    ///
    /// # Errors
    /// As for [`Reader::from_read`].
    pub fn from_ranges(ranges: impl ByteRanges + 'a) -> Result<Self> {
        Self::start(Source::ranges(ranges)?, false)
    }

    /// Opens a file like [`Reader::open`], but for salvaging. Even a corrupt file header is tolerated if chunks reveal
    /// the class and the byte order.
    ///
    /// # Errors
    /// Returns an error if reading fails or the file contains neither a header nor a chunk.
    pub fn salvage(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::read(path.as_ref())?, true)
    }

    /// Opens a trace in memory for salvaging; see [`Reader::salvage`].
    ///
    /// # Errors
    /// Returns an error if the trace contains neither a header nor a chunk.
    pub fn salvage_slice(bytes: &'a [u8]) -> Result<Self> {
        Self::start(Source::slice(bytes), true)
    }

    /// Opens a stream like [`Reader::from_read`], but for salvaging; see [`Reader::salvage`].
    ///
    /// # Errors
    /// Returns an error if reading fails or the stream contains neither a header nor a chunk.
    pub fn salvage_read(read: impl Read + Send + 'a) -> Result<Self> {
        Self::start(Source::stream(read), true)
    }

    /// Opens a file without a header (spec 5.4). The whole file is one part of `section`.
    ///
    /// # Errors
    /// Returns an error if reading fails.
    pub fn open_raw(path: impl AsRef<Path>, class: Class, order: Order, section: u8) -> Result<Reader<'static>> {
        Reader::start_raw(Source::open(path.as_ref())?, class, order, section)
    }

    /// Reads a raw file in memory, as [`Reader::open_raw`] does.
    ///
    /// # Errors
    /// Never returns an error. The return type matches that of the other constructors.
    pub fn raw_from_slice(bytes: &'a [u8], class: Class, order: Order, section: u8) -> Result<Self> {
        Self::start_raw(Source::slice(bytes), class, order, section)
    }

    /// Reads a raw file from a stream, as [`Reader::open_raw`] does. The stream is copied to an unlinked temporary
    /// file, or to memory without the `files` feature.
    ///
    /// # Errors
    /// Returns an error if reading fails.
    pub fn raw_from_read(read: impl Read + Send + 'a, class: Class, order: Order, section: u8) -> Result<Self> {
        Self::start_raw(Source::stream(read), class, order, section)
    }

    fn start_raw(source: Source<'a>, class: Class, order: Order, section: u8) -> Result<Self> {
        let header = Header {
            class,
            order,
            version: 0,
            start: 0,
            nrecords: 0,
            dtd_url: String::new(),
            sections: Vec::new(),
            features: 0,
            len: 0,
        };
        let source = source.spool()?;
        let all = vec![(section, 0..source.all().map_or(0, <[u8]>::len))];
        Ok(Self::with(source, header, Body::Raw { section, left: all.clone(), parts: all }))
    }

    /// Returns the section that a raw stream contains, or `None` for a trace.
    #[must_use]
    pub fn raw_section(&self) -> Option<u8> {
        match self.body {
            Body::Raw { section, .. } => Some(section),
            _ => None,
        }
    }

    /// Restricts a raw stream to these byte ranges of its section, each of which becomes a part. The section's state is
    /// reset for each part, and parts that extend past the end of the file are truncated. Parts of [other
    /// sections](Self::set_raw_file) are kept. Must be called before the first `next_part`; has no effect on traces.
    pub fn set_raw_parts(&mut self, wanted: impl IntoIterator<Item = Range<u64>>) {
        let Some(section) = self.raw_section() else { return };
        let others: Vec<_> = self.all_raw_parts().filter(|(other, _)| *other != section).collect();
        let wanted = wanted.into_iter().map(|part| (section, part));
        self.put_raw_parts(others.into_iter().chain(wanted).collect());
    }

    /// Describes a raw stream by its byte order, the section of its records, and its parts with their section numbers
    /// (spec 5.4). Must be called before the first `next_part`; has no effect on traces.
    pub fn set_raw_file(&mut self, file_order: Order, records: u8, wanted: impl IntoIterator<Item = (u8, Range<u64>)>) {
        if let Body::Raw { section, .. } = &mut self.body {
            *section = records;
            self.header.order = file_order;
            self.put_raw_parts(wanted.into_iter().collect());
        }
    }

    fn put_raw_parts(&mut self, mut wanted: Vec<(u8, Range<u64>)>) {
        let len = self.source.all().map_or(0, <[u8]>::len);
        wanted.sort_by_key(|(_, part)| part.start);
        if let Body::Raw { left, parts, .. } = &mut self.body {
            let place = |at: u64| usize::try_from(at).map_or(len, |at| at.min(len));
            let wanted = wanted.into_iter().map(|(number, part)| (number, place(part.start)..place(part.end)));
            *parts = wanted.filter(|(_, part)| !part.is_empty()).collect();
            *left = parts.iter().rev().cloned().collect();
        }
    }

    /// Returns the parts of a raw stream that belong to its section. This is the whole file, unless other parts were
    /// [set](Self::set_raw_parts). The result is empty for a trace.
    pub fn raw_parts(&self) -> impl Iterator<Item = Range<u64>> {
        let section = self.raw_section();
        self.all_raw_parts().filter(move |(number, _)| Some(*number) == section).map(|(_, part)| part)
    }

    /// Returns all parts of a raw stream with their section numbers.
    fn all_raw_parts(&self) -> impl Iterator<Item = (u8, Range<u64>)> {
        let parts = if let Body::Raw { parts, .. } = &self.body { &parts[..] } else { &[] };
        parts.iter().map(|(number, part)| (*number, part.start as u64..part.end as u64))
    }

    /// Reports to salvaging of a raw stream that the bytes in `place` contain no complete records because of `error`.
    /// Has no effect on traces.
    pub fn report_raw_loss(&mut self, place: Range<u64>, error: Error) {
        if let Body::Raw { section, .. } = self.body {
            let salvage = self.salvage.get_or_insert_with(|| Box::new(Salvage::new()));
            salvage.report.open_end = true;
            salvage.lose(place, LossCause::Damaged(error), Some(section), None);
        }
    }

    pub(super) fn start(mut source: Source<'a>, salvage: bool) -> Result<Self> {
        let len = Header::most_len(source.view(0, INTS_AT)?);
        let parsed = Header::parse(source.view(0, len)?);
        if salvage {
            return Self::start_salvage(source, parsed);
        }
        let (header, table_len) = parsed?;
        if header.version == 0 { Self::start_v0(source, header, table_len) } else { Self::start_v1(source, header) }
    }

    fn start_v0(source: Source<'a>, mut header: Header, table_len: u64) -> Result<Self> {
        let source = source.spool()?;
        header.parse_table(source.all().unwrap_or(&[]), table_len)?;
        let body = Body::Extents(Extents::new(&header));
        Ok(Self::with(source, header, body))
    }

    fn start_v1(mut source: Source<'a>, header: Header) -> Result<Self> {
        let (chunks, opening_error) = Chunks::open(&mut source, &header)?;
        let mut reader = Self::with(source, header, Body::Chunks(Box::new(chunks)));
        reader.opening_error = opening_error;
        Ok(reader)
    }

    /// Starts salvaging. If the header is corrupt, or specifies version 0 but is followed by a chunk, its contents are
    /// derived from the chunks.
    fn start_salvage(mut source: Source<'a>, parsed: Result<(Header, u64)>) -> Result<Self> {
        let damage = match parsed {
            Ok((header, _)) if header.version == 1 => {
                let mut reader = Self::start_v1(source, header)?;
                reader.set_salvage(true);
                return Ok(reader);
            }
            Ok((header, table_len)) => {
                let at = header.len;
                match chunk::probe(&mut source, at)? {
                    Probe::Whole(first) if first.sequence == 0 => {
                        let expected = "1, because chunks follow the header";
                        Error::at(7, ErrorKind::Invalid { what: "version (pad[0])", found: 0, expected })
                    }
                    _ => return Self::start_v0(source, header, table_len),
                }
            }
            Err(error) => error,
        };
        let Some(header) = salvage::header_from_chunks(&mut source)? else { return Err(damage) };
        let lost = 0..header.start;
        let mut reader = Self::start_v1(source, header)?;
        let mut salvage = Salvage::new();
        salvage.lose(lost, LossCause::Damaged(damage), None, None);
        reader.salvage = Some(Box::new(salvage));
        Ok(reader)
    }

    pub(super) fn with(source: Source<'a>, header: Header, body: Body) -> Self {
        Self { source, header, body, warnings: Warnings::default(), salvage: None, failed: false, opening_error: None }
    }

    /// Returns the file header (spec 5.1). For a raw stream, it contains the values supplied by the caller.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the text of the embedded DTD, which is available from the start. Returns `None` if there is no DTD or
    /// its chunk is corrupt; see [`Reader::opening_error`].
    #[must_use]
    pub fn dtd_text(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Chunks(chunks) => chunks.dtd.as_deref(),
            _ => None,
        }
    }

    /// Returns the error that prevented the first chunk from being read, which explains why the DTD is missing. Unless
    /// salvaging, [`Reader::next_part`] returns the same error.
    #[must_use]
    pub fn opening_error(&self) -> Option<Error> {
        self.opening_error
    }

    /// Returns the user metadata found so far (spec 5.2), as JSON objects in file order. Later objects override earlier
    /// ones. Neither UTF-8 nor JSON is validated. A trace with more than 64 MiB of user metadata is invalid.
    #[must_use]
    pub fn user_metadata(&self) -> &[Vec<u8>] {
        match &self.body {
            Body::Chunks(chunks) => &chunks.user,
            _ => &[],
        }
    }

    /// Returns the warnings, which report irregularities that are not errors. The list is complete once `next_part` has
    /// returned `None`.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.all()
    }

    /// Calls `tell` with each warning as soon as it occurs.
    pub fn on_warning(&mut self, tell: impl Fn(Warning) + Send + Sync + 'static) {
        self.warnings.tell(Box::new(tell));
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Warns if `found`, the number of data records in the trace, differs from the number in the header of a trace
    /// without a footer (spec 5.1). Must be called after all records have been read. When salvaging, the loss report
    /// covers this case.
    #[doc(hidden)]
    pub fn check_records(&mut self, found: u64) {
        let declared = self.header.nrecords;
        // A header contains a nonzero count only if the trace was finished, so the end of the file is missing.
        let is_open = self.warnings().contains(&Warning::NotClosed);
        if is_open && declared != 0 && declared != found && self.salvage.is_none() {
            self.warn(Warning::Records { declared, found });
        }
    }

    /// Sets the tag width of the DTD (1, 2 or 4), which determines the length of the `section` records before the
    /// extents. Must be called before the first `next_part` of a version 0 file with a table.
    pub fn set_tag_width(&mut self, width: u8) {
        if let Body::Extents(extents) = &mut self.body {
            extents.set_tag_width(width);
        }
    }

    /// Sets the tag of `section` records if the DTD specifies a tag other than 2. Must be called together with
    /// [`set_tag_width`](Self::set_tag_width).
    pub fn set_section_tag(&mut self, tag: u32) {
        if let Body::Extents(extents) = &mut self.body {
            extents.set_section_tag(tag);
        }
    }

    /// Turns salvaging on or off (spec 5.2). Must be called before the first `next_part`; has no effect on version 0.
    /// For a raw stream, the complete records can be found only with the DTD; see [`Reader::set_raw_parts`].
    pub fn set_salvage(&mut self, on: bool) {
        self.salvage = match (&self.body, self.salvage.take()) {
            (Body::Chunks(_), kept) if on => Some(kept.unwrap_or_else(|| Box::new(Salvage::new()))),
            _ => None,
        };
    }

    /// Returns the next part, or `None` at the end of the file, after checking the index, the footer and the end of the
    /// file.
    ///
    /// When salvaging, corrupt data is skipped, and so are later parts whose section's state has not been reset since.
    /// An error is returned only if reading the source fails. Callers that know the DTD must drop a returned part that
    /// is [`Part::group_damaged`] if its section strides through a stream section.
    ///
    /// # Errors
    /// Returns the first problem in the file, or an error if reading fails. After an error, only `None` is returned.
    pub fn next_part(&mut self) -> Result<Option<Part>> {
        if self.failed {
            return Ok(None);
        }
        let part = self.advance();
        self.failed = part.is_err();
        part
    }

    fn advance(&mut self) -> Result<Option<Part>> {
        match &mut self.body {
            Body::Extents(extents) => extents.next(&self.header, self.source.all().unwrap_or(&[])),
            Body::Chunks(chunks) => match &mut self.salvage {
                None => chunks.next(&mut self.source, &self.header, &mut self.warnings),
                Some(salvage) => salvage.next(chunks, &mut self.source, &self.header, &mut self.warnings),
            },
            Body::Raw { left, .. } => Ok(left.pop().map(|(section, part)| read_v0::whole(section, part, true))),
        }
    }

    /// Returns the bytes of a part returned by this reader. Content returned by another reader of the same bytes is
    /// also accepted. Content from an unrelated reader yields arbitrary bytes, or no bytes.
    #[inline]
    #[must_use]
    pub fn bytes<'s>(&'s self, content: &'s Content) -> &'s [u8] {
        self.bytes_of(content).unwrap_or_default()
    }

    /// Returns the same as [`bytes`](Self::bytes), or `None` if the bytes are outside this reader's input. Checking for
    /// `None` once per record is faster than substituting an empty slice.
    #[inline]
    #[must_use]
    pub fn bytes_of<'s>(&'s self, content: &'s Content) -> Option<&'s [u8]> {
        read_v1::bytes(&self.source, content)
    }

    /// Returns the bytes of content returned by this reader in a form that can outlive the borrow. Only bytes of a
    /// mapped file are copied.
    #[must_use]
    pub fn keep(&self, content: &Content) -> ContentBytes<'a> {
        ContentBytes::new(&self.source, content)
    }

    /// Returns the whole input if it is mapped, in memory, or spooled.
    #[must_use]
    pub fn input(&self) -> Option<&[u8]> {
        self.source.all()
    }

    /// Returns the losses so far if salvaging. The report is complete once `next_part` has returned `None`.
    #[must_use]
    pub fn loss_report(&self) -> Option<&LossReport> {
        self.salvage.as_deref().map(|salvage| &salvage.report)
    }

    /// Reports to salvaging that this part's records are invalid and that none of them were delivered (spec 5.2). If
    /// the part belongs to the group being read, later parts of its section are dropped until a reset, and all later
    /// parts of the group are `group_damaged`. This method must therefore be called before the next part is requested.
    pub fn report_bad_content(&mut self, part: &Part, error: Error) {
        if let (Body::Chunks(chunks), Some(salvage)) = (&self.body, &mut self.salvage) {
            salvage.bad_content(part, error, chunks.sequence.group());
        }
    }

    /// Reports to salvaging that the content of this part is invalid from some point on and that the records before
    /// this point were delivered. `part.records` is the number of omitted records. Later parts of its section are
    /// dropped until a reset.
    pub fn report_bad_end(&mut self, part: &Part, error: Error) {
        if let (Body::Chunks(chunks), Some(salvage)) = (&self.body, &mut self.salvage) {
            salvage.bad_end(part, error, chunks.sequence.group());
        }
    }

    /// Reports to salvaging that this part is intact but was not delivered because it depends on lost data. Later
    /// parts of its section in the group being read are dropped until a reset, because they depend on this part.
    pub fn report_lost(&mut self, part: &Part) {
        if let (Body::Chunks(chunks), Some(salvage)) = (&self.body, &mut self.salvage) {
            salvage.lost(part, LossCause::Dependent, chunks.sequence.group());
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("header", &self.header).finish_non_exhaustive()
    }
}
