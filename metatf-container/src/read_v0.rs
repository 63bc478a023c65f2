//! Reads version 0 traces: the extents listed in the section table, or all the remaining data if there is no table
//! (spec 5.1).

use super::header::{Header, SectionEntry};
use super::part::{Content, Origin, Part};
use crate::{Error, ErrorKind, Result};

/// The position in a version 0 file.
pub(crate) struct Extents {
    tag_width: u8,
    section_tag: u32,
    /// Index of the next table entry.
    next: usize,
    /// End of the last extent.
    pos: u64,
    started: bool,
    seen: Box<[bool; 256]>,
}

impl Extents {
    pub(crate) fn new(file: &Header) -> Self {
        let seen = Box::new([false; 256]);
        Self { tag_width: 1, section_tag: 2, next: 0, pos: file.start, started: false, seen }
    }

    /// Sets the tag width. A `section` record, consisting of a tag and a byte, precedes each extent in the table.
    pub(crate) fn set_tag_width(&mut self, width: u8) {
        self.tag_width = width;
    }

    /// Sets the tag of the `section` records before extents.
    pub(crate) fn set_section_tag(&mut self, tag: u32) {
        self.section_tag = tag;
    }

    /// Returns the next extent, or `None` at the end.
    pub(crate) fn next(&mut self, file: &Header, bytes: &[u8]) -> Result<Option<Part>> {
        if file.sections.is_empty() {
            if std::mem::replace(&mut self.started, true) {
                return Ok(None);
            }
            let end = bytes.len() as u64;
            let mut part = self.part(0, self.pos, end);
            part.follow = true;
            self.pos = end;
            return Ok(Some(part));
        }
        if !std::mem::replace(&mut self.started, true) {
            check_table(file, self.record_len(), bytes.len() as u64)?;
            if let Some(part) = self.global(file, bytes)? {
                return Ok(Some(part));
            }
        }
        let Some(entry) = file.sections.get(self.next) else {
            if self.pos < bytes.len() as u64 {
                let found = bytes.len() as u64 - self.pos;
                let what = "the number of bytes after the last extent";
                return Err(Error::at(self.pos, ErrorKind::Invalid { what, found, expected: "0" }));
            }
            return Ok(None);
        };
        self.next += 1;
        self.check_record(file, entry, bytes)?;
        let end = end_in_file(file, entry, bytes)?;
        self.pos = end;
        Ok(Some(self.part(entry.number, entry.start, end)))
    }

    fn record_len(&self) -> u64 {
        u64::from(self.tag_width) + 1
    }

    /// Returns the global part unless it is empty. This is the extent of entry 0 or, without such an entry, the data
    /// before the first `section` record.
    fn global(&mut self, file: &Header, bytes: &[u8]) -> Result<Option<Part>> {
        let Some(first) = file.sections.first() else { return Ok(None) };
        let end = if first.number == 0 {
            self.next = 1;
            end_in_file(file, first, bytes)?
        } else {
            first.start - self.record_len()
        };
        let start = std::mem::replace(&mut self.pos, end);
        Ok((start < end).then(|| self.part(0, start, end)))
    }

    /// Checks the `section` record before an extent: its tag and the section's number.
    fn check_record(&self, file: &Header, entry: &SectionEntry, bytes: &[u8]) -> Result<()> {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let tag_end = self.pos + u64::from(self.tag_width);
        let tag = bytes.get(at(self.pos)..at(tag_end));
        let Some((tag, &number)) = tag.zip(bytes.get(at(tag_end))) else {
            return Err(Error::at(self.pos, ErrorKind::Truncated("the section record before an extent")));
        };
        let tag = file.order.read(tag);
        if tag != u64::from(self.section_tag) {
            let what = "the tag before an extent";
            let kind = ErrorKind::Invalid { what, found: tag, expected: "the tag of the extent's section record" };
            return Err(Error::at(self.pos, kind));
        }
        if number != entry.number {
            let what = "the section record's number";
            let kind = ErrorKind::Invalid { what, found: number.into(), expected: "the number in the section table" };
            return Err(Error::at(tag_end, kind));
        }
        Ok(())
    }

    fn part(&mut self, section: u8, start: u64, end: u64) -> Part {
        let first = !std::mem::replace(&mut self.seen[usize::from(section)], true);
        let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        whole(section, index(start)..index(end), first)
    }
}

/// Returns the end of an extent, which must be inside the file.
fn end_in_file(file: &Header, entry: &SectionEntry, bytes: &[u8]) -> Result<u64> {
    let end = entry.start.checked_add(entry.size).filter(|end| *end <= bytes.len() as u64);
    end.ok_or_else(|| {
        let at = entry.entry_offset + 2 * file.class.int_size() as u64;
        let expected = "the size of an extent that ends inside the file";
        Error::at(at, ErrorKind::Invalid { what: "sh_size", found: entry.size, expected })
    })
}

/// Creates a part that covers a byte range of a version 0 file or a raw stream.
pub(crate) fn whole(section: u8, range: std::ops::Range<usize>, reset: bool) -> Part {
    let start = range.start as u64;
    let place = start..range.end as u64;
    Part {
        section,
        content: Content::Mapped(range),
        origin: Origin::Stored(start),
        base: start,
        reset,
        group_start: false,
        shared: false,
        group: 0,
        width: 0,
        transposed: false,
        records: None,
        follow: false,
        place,
        damage_before: false,
        group_damaged: false,
    }
}

/// Checks the complete table: file order, overlaps, gaps, space for each `section` record, and overflowing sums.
/// Whether an extent ends inside the file is checked only when the extent is reached, so that the data before it is
/// delivered.
fn check_table(file: &Header, record_len: u64, file_len: u64) -> Result<()> {
    let int = file.class.int_size() as u64;
    let mut pos = file.start;
    for (n, entry) in file.sections.iter().enumerate() {
        let start_at = entry.entry_offset + int;
        let wrong =
            |expected| Err(Error::at(start_at, ErrorKind::Invalid { what: "sh_start", found: entry.start, expected }));
        if entry.start > file_len {
            return wrong("an offset inside the file");
        }
        if entry.start.checked_add(entry.size).is_none() {
            let what = "sh_size";
            let kind = ErrorKind::Invalid {
                what,
                found: entry.size,
                expected: "the size of an extent that ends inside the file",
            };
            return Err(Error::at(start_at + int, kind));
        }
        if entry.number == 0 {
            if n != 0 {
                return wrong("a section number: only the first entry can be 0");
            }
            if entry.start != file.start {
                return wrong("the header's start, because the entry has number 0");
            }
        } else {
            let Some(record) = entry.start.checked_sub(record_len).filter(|record| *record >= pos) else {
                return wrong("an offset after the preceding extent and a section record");
            };
            if record > pos && n > 0 {
                let what = "the number of bytes between two extents";
                let kind = ErrorKind::Invalid { what, found: record - pos, expected: "0 before the section record" };
                return Err(Error::at(pos, kind));
            }
        }
        pos = entry.start + entry.size;
    }
    Ok(())
}
