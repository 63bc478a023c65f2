//! Writing version 0: extents, and the section table before them (spec 5.1).

use std::io::{Seek, SeekFrom, Write};

use super::files::{self, Spool};
use super::header::{Class, Header};
use super::options::{WriteOptions, representable};
use super::sink::Sink;
use crate::{Error, ErrorKind, Result};

/// The largest offset and size of class 1.
const CLASS_1: u64 = u32::MAX as u64;

/// Where content goes.
enum Placement {
    /// It waits for the table that is to precede it: the global part, and what comes after it.
    Spooled { global: Spool, rest: Spool },
    /// To the sink at once, without a table.
    Through,
    /// To the sink at once, without header and `section` records.
    Raw,
    /// A raw stream that begins with what comes last: before the records, these, behind them.
    RawAround { before: Spool, records: Spool, behind: Spool },
    /// Into the sink, which is memory: one extent, behind place for header and table, which begins at this place. If anything
    /// else comes it is spooled after all.
    InPlace(usize),
}

fn spooled() -> Placement {
    Placement::Spooled { global: files::spool(), rest: files::spool() }
}

/// Writes a version 0 trace: the global part first, then extents. The section table stands in the header, so the
/// content waits until the end, unless the trace is written without a table.
pub struct ExtentWriter<W: Sink> {
    sink: W,
    header: Header,
    tag_width: u8,
    section_tag: u32,
    content: Placement,
    global_len: u64,
    /// Number, start in the sections' content, size.
    extents: Vec<(u8, u64, u64)>,
    /// Bytes of the sections' content so far, `section` records included.
    len: u64,
    /// No offset or size is over this.
    limit: u64,
    /// Of a raw stream: sections beside that of the records, and whether they stand before it.
    around: Vec<(u8, bool)>,
}

impl<W: Sink> ExtentWriter<W> {
    /// Begins a trace with a section table. `tag_width` is the DTD's (1, 2 or 4).
    ///
    /// # Errors
    /// The URL is too long.
    pub fn new(sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let limit = if options.class == Class::Bits32 && !options.raw { CLASS_1 } else { u64::MAX };
        Ok(Self {
            sink,
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

    /// Sections of a raw stream that stand before its records, and behind them (spec 5.4), to be set before the first extent.
    pub fn set_raw_around(&mut self, before: impl IntoIterator<Item = u8>, behind: Option<u8>) {
        if matches!(self.content, Placement::Raw) {
            self.around = before.into_iter().map(|n| (n, true)).chain(behind.map(|n| (n, false))).collect();
            if !self.around.is_empty() {
                self.content =
                    Placement::RawAround { before: files::spool(), records: files::spool(), behind: files::spool() };
            }
        }
    }

    /// Begins a trace without a table, which goes to the sink at once (a pipe). Such a trace has no stream sections,
    /// and `nrecords` is 0.
    ///
    /// # Errors
    /// Writing failed; the URL is too long.
    pub fn without_table(sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let mut writer = Self::new(sink, options, tag_width)?;
        writer.content = Placement::Through;
        writer.sink.write_all(&writer.header.emit(0))?;
        Ok(writer)
    }

    /// The tag of `section` records, if it is not 2, to be set before the first extent.
    pub fn set_section_tag(&mut self, tag: u32) {
        self.section_tag = tag;
    }

    /// The trace's class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.header.class
    }

    /// Appends content of a section: to its last extent if nothing came after it, else as a new extent. Content of the
    /// global section (0) goes to the one global part, which stands before all else.
    ///
    /// # Errors
    /// Writing failed; the trace would pass 4 GiB in class 1; without a table, section 0 after another.
    pub fn extent(&mut self, section: u8, content: &[u8]) -> Result<()> {
        if let Placement::RawAround { before, behind, .. } = &mut self.content
            && let Some((_, is_before)) = self.around.iter().find(|(number, _)| *number == section)
        {
            return Ok(if *is_before { before } else { behind }.write_all(content)?);
        }
        if section == 0 {
            return self.append_global(content);
        }
        self.spool_unless(section)?;
        let record = self.open(section, content.len())?;
        for bytes in [&record[..], content] {
            match &mut self.content {
                Placement::Spooled { rest, .. } | Placement::RawAround { records: rest, .. } => {
                    rest.write_all(bytes)?
                }
                Placement::Through | Placement::Raw | Placement::InPlace(_) => self.sink.write_all(bytes)?,
            }
        }
        self.appended(&record, content.len());
        Ok(())
    }

    /// Before content of a section: the `section` record that has to stand there, if any.
    fn open(&mut self, section: u8, content: usize) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        if self.extents.last().map(|extent| extent.0) != Some(section) {
            if !matches!(self.content, Placement::Raw | Placement::RawAround { .. }) {
                self.header.order.write(self.section_tag.into(), self.tag_width.into(), &mut record);
                record.push(section);
            } else if self.global_len > 0 || !self.extents.is_empty() {
                return Err(Error::at(0, ErrorKind::Usage("a raw stream holds records of one section")));
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

    /// The sink's memory, for content of a section to be put behind what is there. None where the sink is not memory, or has to
    /// wait for other content. Nothing can be written until it is [given back](Self::return_memory).
    ///
    /// # Errors
    /// As [`extent`](Self::extent).
    #[doc(hidden)]
    pub fn borrow_memory(&mut self, section: u8) -> Result<Option<Vec<u8>>> {
        let nothing = self.extents.is_empty() && self.global_len == 0;
        if matches!(self.content, Placement::Spooled { .. }) && nothing && section != 0 {
            let Some(memory) = self.sink.memory() else { return Ok(None) };
            self.content = Placement::InPlace(memory.len());
            let record = self.open(section, 0)?;
            let head = vec![0; self.head(0).len()];
            self.sink.write_all(&[head, record.clone()].concat())?;
            self.appended(&record, 0);
        }
        let goes_on =
            matches!(self.content, Placement::InPlace(_)) && self.extents.last().is_some_and(|e| e.0 == section);
        Ok(self.sink.memory().filter(|_| goes_on).map(std::mem::take))
    }

    /// Gives borrowed memory back, content from `start` on to the end; on an error it is without that.
    ///
    /// # Errors
    /// The trace would pass 4 GiB in class 1.
    #[doc(hidden)]
    pub fn return_memory(&mut self, mut memory: Vec<u8>, start: usize) -> Result<()> {
        let content = memory.len().saturating_sub(start);
        let fits = self.check_limit(self.global_len, self.len + content as u64);
        match fits {
            Ok(()) => self.appended(&[], content),
            Err(_) => memory.truncate(start),
        }
        if let Some(sink) = self.sink.memory() {
            *sink = memory;
        }
        fits
    }

    /// Gives up: without its header and table, nothing that is in place is of use to a reader.
    pub fn abandon(mut self) {
        if let (Placement::InPlace(at), Some(memory)) = (&self.content, self.sink.memory()) {
            memory.truncate(*at);
        }
    }

    /// Takes back an extent in place to which nothing came, so that the bytes are those of a sink that is not memory. Whether
    /// there was one.
    fn drop_empty_in_place(&mut self) -> bool {
        let Placement::InPlace(at) = self.content else { return false };
        if self.extents.iter().any(|extent| extent.2 != 0) {
            return false;
        }
        if let Some(memory) = self.sink.memory() {
            memory.truncate(at);
        }
        (self.extents, self.len, self.content) = (Vec::new(), 0, spooled());
        true
    }

    /// Content that is in place already has to wait after all, unless more of its section is all that comes.
    fn spool_unless(&mut self, section: u8) -> Result<()> {
        let Placement::InPlace(at) = self.content else { return Ok(()) };
        if self.extents.last().is_some_and(|extent| extent.0 == section) {
            return Ok(());
        }
        if self.drop_empty_in_place() {
            return Ok(());
        }
        let (head, mut content) = (self.head(0).len(), spooled());
        if let (Placement::Spooled { rest, .. }, Some(memory)) = (&mut content, self.sink.memory()) {
            rest.write_all(memory.get(at + head..).unwrap_or_default())?;
            memory.truncate(at);
        }
        self.content = content;
        Ok(())
    }

    fn append_global(&mut self, content: &[u8]) -> Result<()> {
        self.spool_unless(0)?;
        let len = self.global_len + content.len() as u64;
        self.check_limit(len, self.len)?;
        match &mut self.content {
            Placement::Spooled { global, .. } => global.write_all(content)?,
            Placement::Through | Placement::Raw if self.extents.is_empty() => self.sink.write_all(content)?,
            Placement::Raw | Placement::RawAround { .. } => {
                return Err(Error::at(0, ErrorKind::Usage("a raw stream holds records of one section")));
            }
            Placement::Through | Placement::InPlace(_) => {
                return Err(Error::at(
                    0,
                    ErrorKind::Usage("without a table the global part comes before the sections"),
                ));
            }
        }
        self.global_len = len;
        Ok(())
    }

    /// Spec 5.1: in class 1 no trace passes 4 GiB.
    fn check_limit(&self, global_len: u64, len: u64) -> Result<()> {
        let end = self.start().saturating_add(global_len).saturating_add(len);
        if end <= self.limit {
            return Ok(());
        }
        let why = "4 GiB: class 1 has 32-bit offsets and sizes, class 2 has 64-bit ones";
        Err(Error::at(end, ErrorKind::Limit(why)))
    }

    /// Offset of the first data byte, by the table as it is now.
    fn start(&self) -> u64 {
        let extents = if matches!(self.content, Placement::Through) { 0 } else { self.extents.len() };
        self.header.len + (extents * 3 * self.header.class.int_size()) as u64
    }

    /// Writes header, table and content, as far as they are not written yet.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self, nrecords: u64) -> Result<W> {
        self.drop_empty_in_place();
        let head = self.head(nrecords);
        match &mut self.content {
            Placement::Through | Placement::Raw => {}
            Placement::RawAround { before, records, behind } => {
                for content in [before, records, behind] {
                    content.seek(SeekFrom::Start(0))?;
                    std::io::copy(content, &mut self.sink)?;
                }
            }
            Placement::InPlace(at) => self.sink.overwrite(*at as u64, &head)?,
            Placement::Spooled { global, rest } => {
                self.sink.write_all(&head)?;
                for content in [global, rest] {
                    content.seek(SeekFrom::Start(0))?;
                    std::io::copy(content, &mut self.sink)?;
                }
            }
        }
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// Header and table.
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
            assert_eq!(writer.limit, u64::from(u32::MAX));
            writer.limit = 100; // As if 4 GiB less were left.
            writer.extent(0, &[0; 20]).unwrap();
            writer.extent(1, &[0; 20]).unwrap();
            for section in [1, 2] {
                let error = writer.extent(section, &[0; 40]).unwrap_err();
                assert!(error.to_string().contains("4 GiB"), "{error}");
            }
        }
        let writer = ExtentWriter::new(Vec::new(), &WriteOptions::default(), 1).unwrap();
        assert_eq!(writer.limit, u64::MAX);
    }

    /// A trace of these contents, of which those of the first section are made in the sink's memory as long as it can be borrowed.
    fn written(sink: impl Sink, contents: &[(u8, &[u8])], in_memory: bool) -> (Vec<u8>, usize) {
        let mut writer = ExtentWriter::new(sink, &WriteOptions::default(), 2).unwrap();
        let mut in_place = 0;
        for &(section, content) in contents {
            let memory = if in_memory { writer.borrow_memory(section).unwrap() } else { None };
            let Some(mut memory) = memory else {
                writer.extent(section, content).unwrap();
                continue;
            };
            let start = memory.len();
            memory.extend_from_slice(content);
            writer.return_memory(memory, start).unwrap();
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
        let mut memory = writer.borrow_memory(1).unwrap().unwrap();
        let start = memory.len();
        memory.extend_from_slice(b"it");
        writer.return_memory(memory, start).unwrap();
        writer.limit = 200; // As if 4 GiB less were left.
        let mut memory = writer.borrow_memory(1).unwrap().unwrap();
        let start = memory.len();
        memory.resize(start + 200, 0);
        assert!(writer.return_memory(memory, start).unwrap_err().to_string().contains("4 GiB"));
        assert!(writer.finish(1).unwrap().ends_with(b"it"));
    }
}
