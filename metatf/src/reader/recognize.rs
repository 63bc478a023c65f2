//! Files without a header that describe their own byte order and the start and end of their records (spec 5.4).

use super::header::HeaderValues;
use super::{Event, RecordReader};
use crate::decode::ContentRow;
use crate::format::{FormatRef, RawStart};
use crate::record::Visit;
use metatf_container::{Class, Error, ErrorKind, Order, Reader, Result};
use std::ops::Range;

/// The properties needed to read a file without a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecognizedFile {
    /// The byte order of the file.
    pub order: Order,
    /// The section number of the file's records.
    pub section: u8,
    /// The parts of the file with their section numbers: the data before the records, the records, and the data after
    /// them.
    pub parts: Vec<(u8, Range<u64>)>,
}

/// Minimum number of nonzero bytes in magic number fields for which these fields alone identify a file.
const SURE_BYTES: u32 = 4;

/// Number of complete records that must follow if the magic number has fewer nonzero bytes than [`SURE_BYTES`].
const RECORDS: usize = 2;

/// Checks whether a file has this format, based on the record at its start. Returns `None` if the file has a different
/// format, or if the format does not define how its files begin.
///
/// # Errors
/// Returns an error if the file begins like a file of the format, but the fields that locate its records are corrupt.
pub fn recognize(format: &FormatRef, bytes: &[u8], class: Class) -> Result<Option<RecognizedFile>> {
    for begins in tries(format, bytes, class) {
        if let Begins::As(file) = begins? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Configures the reader of a raw stream according to the first record of the stream.
///
/// # Errors
/// As for [`recognize`]. Also returns an error if the file does not begin as the format requires.
pub fn recognized<'a>(format: &FormatRef, mut container: Reader<'a>) -> Result<Reader<'a>> {
    let file = recognize(format, container.input().unwrap_or_default(), container.header().class)?;
    let Some(file) = file else {
        return Err(Error::at(0, ErrorKind::Usage("the start of the file does not match this format")));
    };
    container.set_raw_file(file.order, file.section, file.parts);
    Ok(container)
}

/// Returns whether a file that begins with the bytes in `head` matches the format, or `None` if there are too few bytes
/// to decide.
#[must_use]
pub fn begins_as(format: &FormatRef, head: &[u8], class: Class) -> Option<bool> {
    let mut may_begin = Some(false);
    for begins in tries(format, head, class) {
        match begins {
            Ok(Begins::Otherwise) => {}
            Ok(Begins::TooShort) => may_begin = None,
            // An error in a later field is ignored, because only the beginning of the file is examined here.
            Ok(Begins::As(_)) | Err(_) => return Some(true),
        }
    }
    may_begin
}

/// Examines the start of the file as every possible first record, in each byte order.
fn tries<'f>(format: &'f FormatRef, bytes: &'f [u8], class: Class) -> impl Iterator<Item = Result<Begins>> + 'f {
    let orders = |start| [Order::Little, Order::Big].map(|order| (start, order));
    format.raw.iter().flat_map(move |raw| {
        raw.starts.iter().flat_map(orders).map(move |(start, order)| {
            File { format, bytes, class, order }.begins_with(start, raw.records, raw.trailer)
        })
    })
}

/// The outcome of examining the start of a file.
enum Begins {
    /// The file begins differently.
    Otherwise,
    /// The available bytes match, but they are too few to decide.
    TooShort,
    As(RecognizedFile),
}

/// A file examined in one byte order.
struct File<'f> {
    format: &'f FormatRef,
    bytes: &'f [u8],
    class: Class,
    order: Order,
}

impl File<'_> {
    fn begins_with(&self, start: &RawStart, records: u8, trailer: Option<u8>) -> Result<Begins> {
        let mut seen = Seen { start, found: 0, is_other: false, size: None, values: HeaderValues::default() };
        let read = self.read_start(start, &mut seen);
        match read {
            _ if seen.is_other => return Ok(Begins::Otherwise),
            Err(error) if seen.found < start.magic.len() => {
                let is_cut = matches!(error.kind, ErrorKind::Truncated(_) | ErrorKind::Length(_));
                return Ok(if is_cut { Begins::TooShort } else { Begins::Otherwise });
            }
            Ok(None) => return Ok(Begins::Otherwise),
            _ => {}
        }
        let is_prologue = start.section != records;
        let is_sure = self.format.magic_bytes(start) >= SURE_BYTES;
        let begin = match read {
            Ok(Some(end)) if is_prologue => end,
            Ok(_) => 0,
            // An error in a record is reported when the record is read.
            Err(_) if !is_prologue && is_sure => 0,
            Err(error) if is_prologue && is_sure => return Err(error),
            Err(_) => return Ok(Begins::TooShort),
        };
        let len = self.bytes.len() as u64;
        let end = match seen.size {
            None => len,
            Some(size) => match begin.checked_add(size).filter(|end| *end <= len) {
                Some(end) => end,
                None => return Err(self.too_long(start, begin, size)),
            },
        };
        if !is_sure && !self.has_whole_records(records, begin..end, &seen.values.0) {
            return Ok(Begins::TooShort);
        }
        let before = is_prologue.then_some((start.section, 0..begin));
        let behind = trailer.map(|number| (number, end..len));
        let parts = before.into_iter().chain([(records, begin..end)]).chain(behind);
        Ok(Begins::As(RecognizedFile { order: self.order, section: records, parts: parts.collect() }))
    }

    /// Reads the record that the file must begin with. Returns the end of the record, or `None` if it is a different
    /// record.
    fn read_start(&self, start: &RawStart, seen: &mut Seen<'_>) -> Result<Option<u64>> {
        let mut reader = self.reader(start.section, 0..self.bytes.len() as u64)?;
        let is_start = match reader.next_event()? {
            Some(Event::Record(at) | Event::Element(at, _)) => at.record == start.record,
            _ => false,
        };
        if !is_start {
            return Ok(None);
        }
        // The tag was consumed to identify the record.
        let tag = self.format.records.get(usize::from(start.record)).filter(|r| r.first_value() == 1);
        if let Some(record) = tag {
            seen.number(0, record.tag.into());
        }
        reader.decode(|row| Ok(row.walk(seen)?))?;
        Ok(Some(reader.position() as u64))
    }

    /// Returns whether the data begins with two complete records, or consists of a single complete record. A catch-all
    /// record does not count, because any bytes may look like one.
    fn has_whole_records(&self, section: u8, place: Range<u64>, header: &[u64]) -> bool {
        let Ok(mut reader) = self.reader(section, place) else { return false };
        reader.set_header(header);
        for read in 0..RECORDS {
            let is_whole = match reader.next_event() {
                Ok(Some(Event::Record(at) | Event::Element(at, _))) => {
                    let record = self.format.records.get(usize::from(at.record));
                    record.is_some_and(|record| !record.is_catch_all())
                        && reader.decode(|row: &mut ContentRow<'_, '_>| Ok(row.walk(&mut ())?)).is_ok()
                }
                Ok(None) => return read > 0,
                _ => false,
            };
            if !is_whole {
                return false;
            }
        }
        true
    }

    fn reader(&self, section: u8, place: Range<u64>) -> Result<RecordReader<'_>> {
        let mut container = Reader::raw_from_slice(self.bytes, self.class, self.order, section)?;
        container.set_raw_parts([place]);
        let mut reader = RecordReader::new(self.format.clone(), container)?;
        reader.set_all(true);
        Ok(reader)
    }

    fn too_long(&self, start: &RawStart, begin: u64, found: u64) -> Error {
        let what =
            ErrorKind::Invalid { what: "the size of the records", found, expected: "a size that ends inside the file" };
        let mut error = Error::at(begin, what);
        error.place.section = Some(start.section);
        error.place.leaf = start.records_size;
        error
    }
}

/// The relevant fields of the first record.
struct Seen<'s> {
    start: &'s RawStart,
    /// Number of magic number fields with an allowed value.
    found: usize,
    /// Whether a magic number field has a value that is not allowed.
    is_other: bool,
    size: Option<u64>,
    values: HeaderValues,
}

impl Visit<'_> for Seen<'_> {
    fn number(&mut self, leaf: u8, value: u64) {
        self.values.number(leaf, value);
        if let Some(magic) = self.start.magic.iter().find(|magic| magic.leaf == leaf) {
            if magic.values.contains(&value) {
                self.found += 1;
            } else {
                self.is_other = true;
            }
        }
        if self.start.records_size == Some(leaf) {
            self.size = Some(value);
        }
    }

    fn bytes(&mut self, _: u8, _: &[u8]) {}
}
