//! Writing version 0: extents, and the section table before them (spec 5.1).

use std::io::{Seek, SeekFrom, Write};

use super::header::{Class, Header};
use super::options::{WriteOptions, representable};
use crate::{Error, ErrorKind, Result};

/// Content up to this size waits for the table in memory, more in an unlinked temporary file.
const IN_MEMORY: usize = 8 << 20;

/// The largest offset and size of class 1.
const CLASS_1: u64 = u32::MAX as u64;

/// Writes a version 0 trace: the global part first, then extents. The section table stands in the header, so the
/// content waits until the end, unless the trace is written without a table.
pub struct ExtentWriter<W: Write> {
    sink: W,
    header: Header,
    tag_width: u8,
    /// The content, where a table is to precede it.
    spool: Option<tempfile::SpooledTempFile>,
    /// The global part, which stands before all else whenever it is written; where there is no table it has gone to
    /// the sink.
    global: tempfile::SpooledTempFile,
    global_len: u64,
    /// Number, start in the sections' content, size.
    extents: Vec<(u8, u64, u64)>,
    /// Bytes of the sections' content so far, `section` records included.
    len: u64,
    /// No offset or size is over this.
    limit: u64,
}

impl<W: Write> ExtentWriter<W> {
    /// Begins a trace with a section table. `tag_width` is the DTD's (1, 2 or 4).
    ///
    /// # Errors
    /// The URL is too long.
    pub fn new(sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let limit = if options.class == Class::Bits32 { CLASS_1 } else { u64::MAX };
        Ok(Self {
            sink,
            header: options.header(0)?,
            tag_width,
            spool: Some(tempfile::spooled_tempfile(IN_MEMORY)),
            global: tempfile::spooled_tempfile(IN_MEMORY),
            global_len: 0,
            extents: Vec::new(),
            len: 0,
            limit,
        })
    }

    /// Begins a trace without a table, which goes to the sink at once (a pipe). Such a trace has no stream sections,
    /// and `nrecords` is 0.
    ///
    /// # Errors
    /// Writing failed; the URL is too long.
    pub fn without_table(sink: W, options: &WriteOptions, tag_width: u8) -> Result<Self> {
        let mut writer = Self::new(sink, options, tag_width)?;
        writer.spool = None;
        writer.sink.write_all(&writer.header.emit(0))?;
        Ok(writer)
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
        if section == 0 {
            return self.append_global(content);
        }
        let last = self.extents.last().map(|extent| extent.0);
        let mut record = Vec::new();
        if last != Some(section) {
            self.header.order.write(2, self.tag_width.into(), &mut record);
            record.push(section);
            self.extents.push((section, self.len + record.len() as u64, 0));
        }
        let len = self.len + record.len() as u64 + content.len() as u64;
        self.check_limit(self.global_len, len)?;
        for bytes in [&record[..], content] {
            match &mut self.spool {
                Some(spool) => spool.write_all(bytes)?,
                None => self.sink.write_all(bytes)?,
            }
        }
        self.len = len;
        if let Some(extent) = self.extents.last_mut() {
            extent.2 += content.len() as u64;
        }
        Ok(())
    }

    fn append_global(&mut self, content: &[u8]) -> Result<()> {
        let len = self.global_len + content.len() as u64;
        self.check_limit(len, self.len)?;
        if self.spool.is_some() {
            self.global.write_all(content)?;
        } else if self.extents.is_empty() {
            self.sink.write_all(content)?;
        } else {
            return Err(Error::at(0, ErrorKind::Usage("without a table the global part comes before the sections")));
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
        let table = if self.spool.is_some() { self.extents.len() * 3 * self.header.class.int_size() } else { 0 };
        self.header.len + table as u64
    }

    /// Writes header, table and content, as far as they are not written yet.
    ///
    /// # Errors
    /// Writing failed.
    pub fn finish(mut self, nrecords: u64) -> Result<W> {
        let start = self.start();
        if let Some(mut spool) = self.spool.take() {
            let header = Header { start, nrecords: representable(self.header.class, nrecords), ..self.header.clone() };
            let mut bytes = header.emit(self.extents.len() as u64);
            for (number, at, size) in &self.extents {
                for value in [u64::from(*number), start + self.global_len + at, *size] {
                    self.header.order.write(value, self.header.class.int_size(), &mut bytes);
                }
            }
            self.sink.write_all(&bytes)?;
            for content in [&mut self.global, &mut spool] {
                content.seek(SeekFrom::Start(0))?;
                std::io::copy(content, &mut self.sink)?;
            }
        }
        self.sink.flush()?;
        Ok(self.sink)
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
}
