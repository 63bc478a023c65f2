//! The reader of all containers: opens a source, and hands out its parts in file order.
//!
//! It has over 400 lines: the ways to open one, of files, slices and streams, whole or to be salvaged, are read side by side.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::chunk::{self, Probe};
use super::header::{Class, Header, INTS_AT, Order};
use super::loss::{LossCause, LossReport};
use super::part::{Content, ContentBytes, Part};
use super::read_v0::{self, Extents};
use super::read_v1::{self, Chunks};
use super::salvage::{self, Salvage};
use super::source::Source;
use super::warning::{Warning, Warnings};
use crate::{Error, ErrorKind, Result};

/// Reads a trace's container: header, DTD, parts. It checks every rule of spec 5.1 and 5.2 that does not need the
/// DTD's meaning, never panics, and holds one chunk in memory, and what its methods name.
pub struct Reader<'a> {
    pub(super) source: Source<'a>,
    pub(super) header: Header,
    pub(super) body: Body,
    warnings: Warnings,
    pub(super) salvage: Option<Box<Salvage>>,
    /// An error was returned: nothing more comes.
    pub(super) failed: bool,
    opening_error: Option<Error>,
}

/// What there is to read.
pub(super) enum Body {
    Extents(Extents),
    Chunks(Box<Chunks>),
    /// What is left of the parts, the next one last, and what they were.
    Raw {
        section: u8,
        left: Vec<(u8, Range<usize>)>,
        parts: Vec<(u8, Range<usize>)>,
    },
}

impl<'a> Reader<'a> {
    /// Opens a file: mapped if it is a regular one, else (a pipe, `/dev/stdin`) read as a stream. Without the feature `files` a
    /// regular file is read into memory.
    ///
    /// A mapped file should not change while it is read. If another process writes to it, the reader meets old bytes and new
    /// ones, and returns wrong records or an error, as from a damaged file. If another process truncates it, reading what
    /// is gone ends this process with SIGBUS (on Unix). Read a file that others write with [`Reader::read`].
    ///
    /// # Errors
    /// What [`Reader::from_read`] reports.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::open(path.as_ref())?, false)
    }

    /// Reads a file chunk by chunk, without mapping it. If another process truncates the file meanwhile, that is an
    /// [error](crate::error::SystemError::is_truncated) and not a signal. A regular file can be read from any place and by several threads,
    /// like a mapped one.
    ///
    /// # Errors
    /// The system's, and what [`Reader::from_read`] reports.
    pub fn read(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::read(path.as_ref())?, false)
    }

    /// Reads a trace that is in memory.
    ///
    /// # Errors
    /// What [`Reader::from_read`] reports.
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self> {
        Self::start(Source::slice(bytes), false)
    }

    /// Reads a stream. Version 1 is read chunk by chunk; version 0, which needs its table and random access, goes
    /// into an unlinked temporary file first, or into memory without the feature `files`. `io::stdin()` is `Send`, its lock is not.
    ///
    /// # Errors
    /// The header is wrong (spec 5.1), or reading failed.
    pub fn from_read(read: impl Read + Send + 'a) -> Result<Self> {
        Self::start(Source::stream(read), false)
    }

    /// As [`Reader::open`], to salvage: even a damaged file header is done without where chunks still tell class and
    /// byte order.
    ///
    /// # Errors
    /// Reading failed, or there is no header and no chunk.
    pub fn salvage(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        Reader::start(Source::read(path.as_ref())?, true)
    }

    /// As [`Reader::from_slice`], to salvage; see [`Reader::salvage`].
    ///
    /// # Errors
    /// There is no header and no chunk.
    pub fn salvage_slice(bytes: &'a [u8]) -> Result<Self> {
        Self::start(Source::slice(bytes), true)
    }

    /// As [`Reader::from_read`], to salvage; see [`Reader::salvage`].
    ///
    /// # Errors
    /// Reading failed, or there is no header and no chunk.
    pub fn salvage_read(read: impl Read + Send + 'a) -> Result<Self> {
        Self::start(Source::stream(read), true)
    }

    /// A file without a header (spec 5.4): all of it is one part of `section`.
    ///
    /// # Errors
    /// Reading failed.
    pub fn open_raw(path: impl AsRef<Path>, class: Class, order: Order, section: u8) -> Result<Reader<'static>> {
        Reader::start_raw(Source::open(path.as_ref())?, class, order, section)
    }

    /// As [`Reader::open_raw`], from memory.
    ///
    /// # Errors
    /// None; for symmetry.
    pub fn raw_from_slice(bytes: &'a [u8], class: Class, order: Order, section: u8) -> Result<Self> {
        Self::start_raw(Source::slice(bytes), class, order, section)
    }

    /// As [`Reader::open_raw`], from a stream, by way of an unlinked temporary file, or of memory without the feature `files`.
    ///
    /// # Errors
    /// Reading failed.
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
            len: 0,
        };
        let source = source.spool()?;
        let all = vec![(section, 0..source.all().map_or(0, <[u8]>::len))];
        Ok(Self::with(source, header, Body::Raw { section, left: all.clone(), parts: all }))
    }

    /// The section that a raw stream is the content of; `None` of a trace.
    #[must_use]
    pub fn raw_section(&self) -> Option<u8> {
        match self.body {
            Body::Raw { section, .. } => Some(section),
            _ => None,
        }
    }

    /// Has a raw stream give these parts of its section alone, each with the section's state reset; those outside of the file are cut.
    /// Parts of [other sections](Self::set_raw_file) stay. Before the first `next_part`; no effect on traces.
    pub fn set_raw_parts(&mut self, wanted: impl IntoIterator<Item = Range<u64>>) {
        let Some(section) = self.raw_section() else { return };
        let others: Vec<_> = self.all_raw_parts().filter(|(other, _)| *other != section).collect();
        let wanted = wanted.into_iter().map(|part| (section, part));
        self.put_raw_parts(others.into_iter().chain(wanted).collect());
    }

    /// Says what a raw stream holds: its byte order, the section of its records, and its parts with the numbers of their sections (spec 5.4).
    /// Before the first `next_part`; no effect on traces.
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

    /// The parts of its section that a raw stream gives: all of the file, unless that was [set](Self::set_raw_parts). None of a trace.
    pub fn raw_parts(&self) -> impl Iterator<Item = Range<u64>> {
        let section = self.raw_section();
        self.all_raw_parts().filter(move |(number, _)| Some(*number) == section).map(|(_, part)| part)
    }

    /// All parts of a raw stream, with the numbers of their sections.
    fn all_raw_parts(&self) -> impl Iterator<Item = (u8, Range<u64>)> {
        let parts = if let Body::Raw { parts, .. } = &self.body { &parts[..] } else { &[] };
        parts.iter().map(|(number, part)| (*number, part.start as u64..part.end as u64))
    }

    /// Salvage of a raw stream: these bytes of it hold no whole records, for this reason. No effect on traces.
    pub fn report_raw_loss(&mut self, place: Range<u64>, error: Error) {
        if let Body::Raw { section, .. } = self.body {
            let salvage = self.salvage.get_or_insert_with(|| Box::new(Salvage::new()));
            salvage.report.open_end = true;
            salvage.lose(place, LossCause::Damaged(error), Some(section), None);
        }
    }

    fn start(mut source: Source<'a>, salvage: bool) -> Result<Self> {
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

    /// Where the header is damaged, or has version 0 and a chunk follows it, the chunks decide.
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
                        let expected = "1, as chunks follow the header";
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

    /// The file header (spec 5.1). For a raw stream it holds what the caller gave.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The source of the embedded DTD, known from the start. `None` where there is none, or where the chunk it should
    /// be in is damaged, see [`Reader::opening_error`].
    #[must_use]
    pub fn dtd_text(&self) -> Option<&[u8]> {
        match &self.body {
            Body::Chunks(chunks) => chunks.dtd.as_deref(),
            _ => None,
        }
    }

    /// Why the first chunk could not be read: the true reason of a missing DTD. (Unless salvage is asked for,
    /// [`Reader::next_part`] returns the same error.)
    #[must_use]
    pub fn opening_error(&self) -> Option<Error> {
        self.opening_error
    }

    /// The user metadata seen so far (spec 5.2: JSON objects, later ones override earlier ones), as they are in the
    /// file: neither UTF-8 nor JSON is checked. Their total is at most 64 MiB, more is an error of the trace.
    #[must_use]
    pub fn user_metadata(&self) -> &[Vec<u8>] {
        match &self.body {
            Body::Chunks(chunks) => &chunks.user,
            _ => &[],
        }
    }

    /// What is not as it should be, and no error. Complete once `next_part` has returned `None`.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.all()
    }

    /// Passes each warning on as soon as it is known.
    pub fn on_warning(&mut self, tell: impl Fn(Warning) + Send + Sync + 'static) {
        self.warnings.tell(Box::new(tell));
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// All was read, and there were this many data records: warns if the header says otherwise. Salvage reports what was lost by itself.
    #[doc(hidden)]
    pub fn check_records(&mut self, found: u64) {
        let declared = self.header.nrecords;
        // A header has a count only where the trace was finished, when all of its records were there.
        if declared != 0 && declared != found && self.salvage.is_none() {
            self.warn(Warning::Records { declared, found });
        }
    }

    /// Width of tags as the DTD has it (1, 2 or 4), to be set before the first `next_part` of a version 0 file with
    /// a table: it tells how long the `section` records before the extents are.
    pub fn set_tag_width(&mut self, width: u8) {
        if let Body::Extents(extents) = &mut self.body {
            extents.set_tag_width(width);
        }
    }

    /// The tag of `section` records as the DTD has it, if it is not 2, to be set with the width of tags.
    pub fn set_section_tag(&mut self, tag: u32) {
        if let Body::Extents(extents) = &mut self.body {
            extents.set_section_tag(tag);
        }
    }

    /// Asks to salvage (spec 5.2), before the first `next_part`. No effect on version 0. Of a raw stream those who know the DTD find
    /// the whole records, see [`Reader::set_raw_parts`].
    pub fn set_salvage(&mut self, on: bool) {
        self.salvage = match (&self.body, self.salvage.take()) {
            (Body::Chunks(_), kept) if on => Some(kept.unwrap_or_else(|| Box::new(Salvage::new()))),
            _ => None,
        };
    }

    /// The next part; `None` at the end of the file, when index, footer and what else ends it are checked.
    ///
    /// In salvage, damage is skipped, and so are parts whose section's state was not reset since; only a failing
    /// source is an error. Of the parts that come, anyone who knows the DTD drops those that are
    /// [`Part::group_damaged`] and whose section strides through a stream section.
    ///
    /// # Errors
    /// The first thing that is wrong, or reading failed. After an error only `None` comes.
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

    /// The bytes of a part of this reader. (Content of another reader of the same bytes will do; of others it is
    /// whatever lies there, or nothing.)
    #[inline]
    #[must_use]
    pub fn bytes<'s>(&'s self, content: &'s Content) -> &'s [u8] {
        self.bytes_of(content).unwrap_or_default()
    }

    /// Returns the [`bytes`](Self::bytes), or none where they lie outside of this reader's input. To ask that once for a record is
    /// faster than to put nothing in their place.
    #[inline]
    #[must_use]
    pub fn bytes_of<'s>(&'s self, content: &'s Content) -> Option<&'s [u8]> {
        read_v1::bytes(&self.source, content)
    }

    /// Returns the bytes of content that this reader has returned, to be kept beside it. Only those of a mapped file are
    /// copied.
    #[must_use]
    pub fn keep(&self, content: &Content) -> ContentBytes<'a> {
        ContentBytes::new(&self.source, content)
    }

    /// The whole input, where it is at hand: mapped, in memory, or spooled.
    #[must_use]
    pub fn input(&self) -> Option<&[u8]> {
        self.source.all()
    }

    /// Salvage: what is lost so far. Complete once `next_part` has returned `None`.
    #[must_use]
    pub fn loss_report(&self) -> Option<&LossReport> {
        self.salvage.as_deref().map(|salvage| &salvage.report)
    }

    /// Salvage: this part's records are wrong, and nothing of it is delivered (spec 5.2). If it is of the group that is
    /// being read, later parts of its section are dropped until a reset, and all later parts of the group are
    /// `group_damaged`: so tell before asking for the next part.
    pub fn report_bad_content(&mut self, part: &Part, error: Error) {
        if let (Body::Chunks(chunks), Some(salvage)) = (&self.body, &mut self.salvage) {
            salvage.bad_content(part, error, chunks.sequence.group());
        }
    }

    /// Salvage: the content of this part is wrong from some place on, and what stands before it was delivered; `part.records` is how
    /// many records that leaves out. Later parts of its section are dropped until a reset.
    pub fn report_bad_end(&mut self, part: &Part, error: Error) {
        if let (Body::Chunks(chunks), Some(salvage)) = (&self.body, &mut self.salvage) {
            salvage.bad_end(part, error, chunks.sequence.group());
        }
    }

    /// Salvage: this part was not delivered, though it is whole: it needs what is lost. Later parts of its section in the group
    /// that is being read are dropped until a reset, as they need this one.
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
