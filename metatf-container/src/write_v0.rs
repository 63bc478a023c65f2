//! The writer for version 0 traces, in which a section table precedes the extents (spec 5.1).

use std::io::{Seek, SeekFrom, Write};

use super::files::{self, Spool};
use super::header::{Class, Header};
use super::options::{WriteOptions, representable};
use super::sink::Sink;
use crate::{Error, ErrorKind, Result};

/// The maximum offset and size in class 1.
const CLASS_1: u64 = u32::MAX as u64;

/// The destination of content.
enum Placement {
    /// Content is spooled until the table, which precedes it, is complete. The global part is spooled separately.
    Spooled { global: Spool, rest: Spool },
    /// Content goes directly to the sink, without a table.
    Through,
    /// Content goes directly to the sink, without a header or `section` records.
    Raw,
    /// For a raw stream, the data before the records, the records, and the data after the records are spooled
    /// separately, because the data before the records may be written last.
    RawAround { before: Spool, records: Spool, behind: Spool },
    /// Content goes directly into the sink's memory, as a single extent after the space for the header and the table.
    /// The value is the offset of this space. If content of another section follows, all content is spooled after all.
    InPlace(usize),
}

fn spooled() -> Placement {
    Placement::Spooled { global: files::spool(), rest: files::spool() }
}

/// A writer for a version 0 trace, which consists of the global part and extents. The section table is part of the
/// header, so the content is written at the end, unless the trace is written without a table.
///
/// # Examples
///
/// ```
/// use metatf_container::{ExtentWriter, Reader, WriteOptions};
///
/// let mut writer = ExtentWriter::new(Vec::new(), &WriteOptions { version: 0, ..WriteOptions::default() }, 1)?;
/// writer.extent(1, b"one")?;
/// writer.extent(1, b", two")?;
/// writer.extent(2, b"three")?;
/// let file = writer.finish(3)?;
///
/// let mut reader = Reader::from_slice(&file)?;
/// reader.set_tag_width(1);
/// let mut parts = Vec::new();
/// while let Some(part) = reader.next_part()? {
///     parts.push((part.section, reader.bytes(&part.content).to_vec()));
/// }
/// assert_eq!(parts, [(1, b"one, two".to_vec()), (2, b"three".to_vec())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ExtentWriter<W: Sink> {
    extents: Extents,
    sink: W,
}

impl<W: Sink> ExtentWriter<W> {
    /// Starts a trace with a section table. `tag_width` is the tag width of the DTD (1, 2 or 4).
    ///
    /// # Errors
    /// Returns an error if the URL is too long.
    pub fn new(sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        Ok(Self { extents: Extents::new(options, tag_width)?, sink })
    }

    /// Starts a trace without a table. The trace is written directly to the sink (such as a pipe). It cannot have
    /// stream sections, and `nrecords` is 0.
    ///
    /// # Errors
    /// Returns an error if writing fails or the URL is too long.
    pub fn without_table(mut sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let mut extents = Extents::new(options, tag_width)?;
        extents.content = Placement::Through;
        sink.write_all(&extents.header.emit(0))?;
        Ok(Self { extents, sink })
    }

    /// Sets the tag of `section` records if the DTD specifies a tag other than 2. Must be called before the first
    /// extent.
    pub fn set_section_tag(&mut self, tag: u32) {
        self.extents.set_section_tag(tag);
    }

    /// Appends content to a section: to its last extent if no other content has followed it, otherwise as a new extent.
    /// Content of the global section (0) is added to the single global part, which precedes everything else.
    ///
    /// # Errors
    /// Returns an error if writing fails, if a class 1 trace would exceed 4 GiB or, without a table, if section 0
    /// follows another section.
    pub fn extent(&mut self, section: u8, content: &[u8]) -> Result<()> {
        self.extents.extent(&mut self.sink, section, content)
    }

    /// Writes the header, the table and the content, unless they have been written already.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self, nrecords: u64) -> Result<W> {
        self.extents.finish(&mut self.sink, nrecords)?;
        Ok(self.sink)
    }
}

/// The state of an [`ExtentWriter`] without its sink, which is an argument of its methods. They are compiled once rather
/// than for each type of sink.
#[doc(hidden)]
pub struct Extents {
    header: Header,
    tag_width: u8,
    section_tag: u32,
    content: Placement,
    global_len: u64,
    /// Section number, start offset in the sections' content, and size of each extent.
    extents: Vec<(u8, u64, u64)>,
    /// Size of the sections' content so far in bytes, including `section` records.
    len: u64,
    /// Upper limit for offsets and sizes.
    limit: u64,
    /// In a raw stream, each section other than the section of the records, and whether it precedes the records.
    around: Vec<(u8, bool)>,
}

impl Extents {
    /// As for [`ExtentWriter::new`].
    ///
    /// # Errors
    /// Returns an error if the URL is too long.
    pub fn new(options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let limit = if options.class == Class::Bits32 && !options.raw { CLASS_1 } else { u64::MAX };
        Ok(Self {
            header: options.header(0)?,
            tag_width,
            section_tag: 2,
            content: if options.raw { Placement::Raw } else { spooled() },
            global_len: 0,
            extents: Vec::new(),
            len: 0,
            limit,
            around: Vec::new(),
        })
    }

    /// Sets the sections of a raw stream before and after its records (spec 5.4). Must be called before the first
    /// extent.
    pub fn set_raw_around(&mut self, before: impl IntoIterator<Item = u8>, behind: Option<u8>) {
        if matches!(self.content, Placement::Raw) {
            self.around = before.into_iter().map(|n| (n, true)).chain(behind.map(|n| (n, false))).collect();
            if !self.around.is_empty() {
                self.content =
                    Placement::RawAround { before: files::spool(), records: files::spool(), behind: files::spool() };
            }
        }
    }

    /// Sets the tag of `section` records if the DTD specifies a tag other than 2. Must be called before the first
    /// extent.
    pub fn set_section_tag(&mut self, tag: u32) {
        self.section_tag = tag;
    }

    /// As for [`ExtentWriter::extent`].
    ///
    /// # Errors
    /// As for [`ExtentWriter::extent`].
    pub fn extent(&mut self, sink: &mut dyn Sink, section: u8, content: &[u8]) -> Result<()> {
        if let Placement::RawAround { before, behind, .. } = &mut self.content
            && let Some((_, is_before)) = self.around.iter().find(|(number, _)| *number == section)
        {
            return Ok(if *is_before { before } else { behind }.write_all(content)?);
        }
        if section == 0 {
            return self.append_global(sink, content);
        }
        self.spool_unless(sink, section)?;
        let record = self.open(section, content.len())?;
        for bytes in [&record[..], content] {
            match &mut self.content {
                Placement::Spooled { rest, .. } | Placement::RawAround { records: rest, .. } => {
                    rest.write_all(bytes)?
                }
                Placement::Through | Placement::Raw | Placement::InPlace(_) => sink.write_all(bytes)?,
            }
        }
        self.appended(&record, content.len());
        Ok(())
    }

    /// Returns the `section` record to write before content of a section, or an empty vector if none is needed.
    fn open(&mut self, section: u8, content: usize) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        if self.extents.last().map(|extent| extent.0) != Some(section) {
            if !matches!(self.content, Placement::Raw | Placement::RawAround { .. }) {
                self.header.order.write(self.section_tag.into(), self.tag_width.into(), &mut record);
                record.push(section);
            } else if self.global_len > 0 || !self.extents.is_empty() {
                return Err(Error::at(0, ErrorKind::Usage("a raw stream can contain records of only one section")));
            }
            self.extents.push((section, self.len + record.len() as u64, 0));
        }
        self.check_limit(self.global_len, self.len + record.len() as u64 + content as u64)?;
        Ok(record)
    }

    fn appended(&mut self, record: &[u8], content: usize) {
        self.len += record.len() as u64 + content as u64;
        if let Some(extent) = self.extents.last_mut() {
            extent.2 += content as u64;
        }
    }

    /// Returns the sink's memory, so that content of a section can be appended to it. Returns `None` if the sink is not
    /// memory or must wait for other content. Nothing can be written until the memory is
    /// [returned](Self::return_memory).
    ///
    /// # Errors
    /// As for [`extent`](Self::extent).
    #[doc(hidden)]
    pub fn borrow_memory(&mut self, sink: &mut dyn Sink, section: u8) -> Result<Option<Vec<u8>>> {
        let nothing = self.extents.is_empty() && self.global_len == 0;
        if matches!(self.content, Placement::Spooled { .. }) && nothing && section != 0 {
            let Some(memory) = sink.memory() else { return Ok(None) };
            self.content = Placement::InPlace(memory.len());
            let record = self.open(section, 0)?;
            let head = vec![0; self.head(0).len()];
            sink.write_all(&[head, record.clone()].concat())?;
            self.appended(&record, 0);
        }
        let goes_on =
            matches!(self.content, Placement::InPlace(_)) && self.extents.last().is_some_and(|e| e.0 == section);
        Ok(sink.memory().filter(|_| goes_on).map(std::mem::take))
    }

    /// Hands borrowed memory back to the sink, with new content from `start` to the end of the memory. On an error, the
    /// new content is removed.
    ///
    /// # Errors
    /// Returns an error if a class 1 trace would exceed 4 GiB.
    #[doc(hidden)]
    pub fn return_memory(&mut self, sink: &mut dyn Sink, mut memory: Vec<u8>, start: usize) -> Result<()> {
        let content = memory.len().saturating_sub(start);
        let fits = self.check_limit(self.global_len, self.len + content as u64);
        match fits {
            Ok(()) => self.appended(&[], content),
            Err(_) => memory.truncate(start),
        }
        if let Some(place) = sink.memory() {
            *place = memory;
        }
        fits
    }

    /// Abandons the trace. Content that was built in the sink's memory is removed, because readers cannot use it
    /// without the header and the table.
    pub fn abandon(self, sink: &mut dyn Sink) {
        if let (Placement::InPlace(at), Some(memory)) = (&self.content, sink.memory()) {
            memory.truncate(*at);
        }
    }

    /// Removes an empty extent from the sink's memory, so that the output is the same as for other sinks. Returns
    /// whether there was such an extent.
    fn drop_empty_in_place(&mut self, sink: &mut dyn Sink) -> bool {
        let Placement::InPlace(at) = self.content else { return false };
        if self.extents.iter().any(|extent| extent.2 != 0) {
            return false;
        }
        if let Some(memory) = sink.memory() {
            memory.truncate(at);
        }
        (self.extents, self.len, self.content) = (Vec::new(), 0, spooled());
        true
    }

    /// Moves content from the sink's memory to a spool, unless the following content belongs to the same section.
    fn spool_unless(&mut self, sink: &mut dyn Sink, section: u8) -> Result<()> {
        let Placement::InPlace(at) = self.content else { return Ok(()) };
        if self.extents.last().is_some_and(|extent| extent.0 == section) {
            return Ok(());
        }
        if self.drop_empty_in_place(sink) {
            return Ok(());
        }
        let (head, mut content) = (self.head(0).len(), spooled());
        if let (Placement::Spooled { rest, .. }, Some(memory)) = (&mut content, sink.memory()) {
            rest.write_all(memory.get(at + head..).unwrap_or_default())?;
            memory.truncate(at);
        }
        self.content = content;
        Ok(())
    }

    fn append_global(&mut self, sink: &mut dyn Sink, content: &[u8]) -> Result<()> {
        self.spool_unless(sink, 0)?;
        let len = self.global_len + content.len() as u64;
        self.check_limit(len, self.len)?;
        match &mut self.content {
            Placement::Spooled { global, .. } => global.write_all(content)?,
            Placement::Through | Placement::Raw if self.extents.is_empty() => sink.write_all(content)?,
            Placement::Raw | Placement::RawAround { .. } => {
                return Err(Error::at(0, ErrorKind::Usage("a raw stream can contain records of only one section")));
            }
            Placement::Through | Placement::InPlace(_) => {
                return Err(Error::at(
                    0,
                    ErrorKind::Usage("without a section table, the global part must precede the sections"),
                ));
            }
        }
        self.global_len = len;
        Ok(())
    }

    /// Checks that a class 1 trace does not exceed 4 GiB (spec 5.1).
    fn check_limit(&self, global_len: u64, len: u64) -> Result<()> {
        let end = self.start().saturating_add(global_len).saturating_add(len);
        if end <= self.limit {
            return Ok(());
        }
        let why = "4 GiB: class 1 has 32-bit offsets and sizes, class 2 has 64-bit ones";
        Err(Error::at(end, ErrorKind::Limit(why)))
    }

    /// Returns the offset of the first data byte for the current size of the table.
    fn start(&self) -> u64 {
        let extents = if matches!(self.content, Placement::Through) { 0 } else { self.extents.len() };
        self.header.len + (extents * 3 * self.header.class.int_size()) as u64
    }

    /// As for [`ExtentWriter::finish`].
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self, sink: &mut dyn Sink, nrecords: u64) -> Result<()> {
        self.drop_empty_in_place(sink);
        let head = self.head(nrecords);
        match &mut self.content {
            Placement::Through | Placement::Raw => {}
            Placement::RawAround { before, records, behind } => {
                for content in [before, records, behind] {
                    content.seek(SeekFrom::Start(0))?;
                    std::io::copy(content, sink)?;
                }
            }
            Placement::InPlace(at) => sink.overwrite(*at as u64, &head)?,
            Placement::Spooled { global, rest } => {
                sink.write_all(&head)?;
                for content in [global, rest] {
                    content.seek(SeekFrom::Start(0))?;
                    std::io::copy(content, sink)?;
                }
            }
        }
        Ok(sink.flush()?)
    }

    /// Returns the header and the table.
    fn head(&self, nrecords: u64) -> Vec<u8> {
        let start = self.start();
        let header = Header { start, nrecords: representable(self.header.class, nrecords), ..self.header.clone() };
        let mut bytes = header.emit(self.extents.len() as u64);
        for (number, at, size) in &self.extents {
            for value in [u64::from(*number), start + self.global_len + at, *size] {
                self.header.order.write(value, self.header.class.int_size(), &mut bytes);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_1_ends_at_4_gib() {
        let options = WriteOptions { class: Class::Bits32, ..WriteOptions::default() };
        for table in [true, false] {
            let make = if table { ExtentWriter::new } else { ExtentWriter::without_table };
            let mut writer = make(Vec::new(), &options, 1).unwrap();
            assert_eq!(writer.extents.limit, u64::from(u32::MAX));
            writer.extents.limit = 100; // Simulates reaching 4 GiB.
            writer.extent(0, &[0; 20]).unwrap();
            writer.extent(1, &[0; 20]).unwrap();
            for section in [1, 2] {
                let error = writer.extent(section, &[0; 40]).unwrap_err();
                assert!(error.to_string().contains("4 GiB"), "{error}");
            }
        }
        let writer = ExtentWriter::new(Vec::new(), &WriteOptions::default(), 1).unwrap();
        assert_eq!(writer.extents.limit, u64::MAX);
    }

    /// Writes a trace with these contents. The contents of the first section are built in the sink's memory if it can
    /// be borrowed.
    fn written(sink: impl Sink, contents: &[(u8, &[u8])], in_memory: bool) -> (Vec<u8>, usize) {
        let mut writer = ExtentWriter::new(sink, &WriteOptions::default(), 2).unwrap();
        let mut in_place = 0;
        for &(section, content) in contents {
            let memory =
                if in_memory { writer.extents.borrow_memory(&mut writer.sink, section).unwrap() } else { None };
            let Some(mut memory) = memory else {
                writer.extent(section, content).unwrap();
                continue;
            };
            let start = memory.len();
            memory.extend_from_slice(content);
            writer.extents.return_memory(&mut writer.sink, memory, start).unwrap();
            in_place += 1;
        }
        let mut sink = writer.finish(5).unwrap();
        (std::mem::take(sink.memory().unwrap()), in_place)
    }

    #[test]
    fn what_is_in_place_is_what_would_be_written() {
        let own = [(7, &b"one"[..]), (7, b""), (7, b"three")];
        let global = [own[0], own[2], (0, b"global"), own[2], (0, b"more")];
        let other = [own[0], own[2], (9, b"other"), own[2], (9, b"more")];
        let global_first = [(0, &b"global"[..]), own[0]];
        for (contents, in_place) in [(&own[..], 3), (&global, 2), (&other, 2), (&global_first, 0), (&[], 0)] {
            let spooled = written(b"before".to_vec(), contents, false);
            assert_eq!(spooled.1, 0);
            assert_eq!(written(b"before".to_vec(), contents, true), (spooled.0, in_place), "{contents:?}");
        }
    }

    #[test]
    fn memory_that_was_borrowed_for_nothing_leaves_nothing() {
        for others in [&[][..], &[(0, &b"global"[..])], &[(9, b"other"), (7, b"own")]] {
            let borrowed = [&[(7, &b""[..])], others].concat();
            let spooled = written(b"before".to_vec(), others, false);
            assert_eq!(written(b"before".to_vec(), &borrowed, true).0, spooled.0, "{others:?}");
        }
    }

    #[test]
    fn what_is_in_place_ends_at_4_gib() {
        let options = WriteOptions { class: Class::Bits32, ..WriteOptions::default() };
        let mut writer = ExtentWriter::new(Vec::new(), &options, 1).unwrap();
        let mut memory = writer.extents.borrow_memory(&mut writer.sink, 1).unwrap().unwrap();
        let start = memory.len();
        memory.extend_from_slice(b"it");
        writer.extents.return_memory(&mut writer.sink, memory, start).unwrap();
        writer.extents.limit = 200; // Simulates reaching 4 GiB.
        let mut memory = writer.extents.borrow_memory(&mut writer.sink, 1).unwrap().unwrap();
        let start = memory.len();
        memory.resize(start + 200, 0);
        assert!(
            writer.extents.return_memory(&mut writer.sink, memory, start).unwrap_err().to_string().contains("4 GiB")
        );
        assert!(writer.finish(1).unwrap().ends_with(b"it"));
    }
}
