//! Stream reader.

use super::state::State;
use super::{COMMENT, Change, Error, ErrorKind, Field, Interpretation, Item, Kind, METADATA, Record, Result, Width};
use std::io::{self, Read};

/// A reader that returns one record of a stream after the other.
///
/// No input can cause a panic. Its memory is a single buffer that fits the longest record, which is about 64 KiB. No
/// item follows an error.
///
/// # Examples
///
/// ```
/// use hatf_trace::hatf1::{Item, Kind, Reader, Record};
///
/// // An alloc record (tag, size, address), and a free record (tag, address) that lacks three bytes.
/// let stream = [0_u8, 0, 0, 0, 24, 0, 0, 0x10, 0, 1, 0];
/// let mut reader = Reader::new(&stream[..]);
/// let alloc = Record { size: 24, address: 0x1000, ..Record::new(Kind::Alloc) };
/// assert_eq!(reader.next()?, Some(Item::Record(alloc)));
/// assert_eq!(reader.next().map(|_| ()).map_err(|error| error.offset), Err(10));
/// assert_eq!(reader.next()?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Start of the unread part of `buffer`.
    start: usize,
    end: usize,
    /// Stream offset of `buffer[start]`.
    offset: u64,
    /// Offset of the current record.
    record: u64,
    state: State,
    done: bool,
}

/// Size of the buffer, which exceeds the longest record, a comment of 65535 bytes.
const BUFFER: usize = 1 << 18;

impl<R: Read> Reader<R> {
    /// Creates a reader at the start of a stream.
    pub fn new(input: R) -> Self {
        let (buffer, state) = (vec![0; BUFFER], State::new());
        Self { input, buffer, start: 0, end: 0, offset: 0, record: 0, state, done: false }
    }

    /// Reads the next item. Returns `None` at the end and after an error.
    ///
    /// # Errors
    /// The first error in the stream.
    #[allow(clippy::should_implement_trait, reason = "a lending iterator")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        if self.done {
            return Ok(None);
        }
        // Stays set unless this call succeeds.
        self.done = true;
        self.record = self.offset;
        if self.available(1)? == 0 {
            return Ok(None);
        }
        let tag = self.byte(None)?;
        if let Some(&kind) = Kind::ALL.get(usize::from(tag)) {
            let mut record = Record::new(kind);
            for &part in kind.numbers() {
                *record.number_mut(part) = self.number(part.field())?;
            }
            let length = self.attributes()?;
            self.done = false;
            record.attributes = self.take(length);
            return Ok(Some(Item::Record(record)));
        }
        match tag {
            COMMENT => {
                let length = self.length(2, None)?;
                self.done = false;
                Ok(Some(Item::Comment(self.take(length))))
            }
            METADATA => {
                let (field, change) = self.metadata()?;
                self.done = false;
                Ok(Some(Item::Metadata(field, change)))
            }
            _ => {
                let kind = ErrorKind::Unknown { item: "tag", found: tag, expected: "0 to 11" };
                Err(self.error(kind, self.record, None))
            }
        }
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn error(&self, kind: ErrorKind, offset: u64, field: Option<Field>) -> Error {
        Error { kind, offset, record: self.record, field }
    }

    /// Fills the buffer until it contains `wanted` bytes or the stream ends. Returns the number of available bytes.
    fn available(&mut self, wanted: usize) -> Result<usize> {
        while self.end - self.start < wanted {
            if self.start + wanted > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
            match self.input.read(room) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(ErrorKind::Io(error), self.offset, None)),
            }
        }
        Ok(self.end - self.start)
    }

    /// Ensures that `length` bytes are available.
    fn need(&mut self, length: usize, field: Option<Field>) -> Result<()> {
        let there = self.available(length)?;
        if there < length {
            let missing = ErrorKind::Truncated((length - there) as u64);
            return Err(self.error(missing, self.offset, field));
        }
        Ok(())
    }

    /// Consumes bytes known to be available.
    fn take(&mut self, length: usize) -> &[u8] {
        let bytes = self.buffer.get(self.start..self.start + length).unwrap_or_default();
        self.start += bytes.len();
        self.offset += bytes.len() as u64;
        bytes
    }

    /// Reads a big-endian integer of `width` bytes.
    fn integer(&mut self, width: usize, field: Option<Field>) -> Result<u64> {
        self.need(width, field)?;
        Ok(self.take(width).iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn byte(&mut self, field: Option<Field>) -> Result<u8> {
        self.need(1, field)?;
        Ok(self.take(1).first().copied().unwrap_or_default())
    }

    fn number(&mut self, field: Field) -> Result<u64> {
        let width = self.state.of(field).bytes();
        let raw = if width == 0 { 0 } else { self.integer(width.into(), Some(field))? };
        Ok(self.state.of(field).decode(raw))
    }

    /// Ensures that the attributes are available. Returns their length.
    fn attributes(&mut self) -> Result<usize> {
        let field = Some(Field::Attributes);
        let setting = self.state.of(Field::Attributes);
        if !setting.interpretation.stores() {
            return Ok(0);
        }
        match setting.width {
            Width::Fixed(width) => {
                self.need(width.into(), field)?;
                Ok(width.into())
            }
            Width::Variable(width) => self.length(width.into(), field),
        }
    }

    /// Reads a length of `width` bytes (at most 2) and checks that this many bytes follow.
    fn length(&mut self, width: usize, field: Option<Field>) -> Result<usize> {
        let length = self.integer(width, field)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(usize::from(u16::MAX));
        self.need(length, field)?;
        Ok(length)
    }

    fn metadata(&mut self) -> Result<(Field, Change)> {
        let at = self.offset;
        let op = self.byte(None)?;
        if !matches!(op, 1 | 2) {
            let kind = ErrorKind::Unknown { item: "op", found: op, expected: "1 (width) or 2 (interpretation)" };
            return Err(self.error(kind, at, None));
        }
        let at = self.offset;
        let number = self.byte(None)?;
        let Some(&field) = Field::ALL.get(usize::from(number)) else {
            let kind = ErrorKind::Unknown { item: "field", found: number, expected: "0 to 5" };
            return Err(self.error(kind, at, None));
        };
        let at = self.offset;
        let code = self.byte(Some(field))?;
        let change = if op == 1 {
            let expected = match field {
                Field::Attributes => "0, 1, 2, 4, 8, 9 or 10",
                _ => "0, 1, 2, 4 or 8",
            };
            let kind = ErrorKind::Unknown { item: "width code", found: code, expected };
            Width::from_code(code, field).map(Change::Width).ok_or(self.error(kind, at, Some(field)))?
        } else {
            Change::Interpretation(self.interpretation(field, code, at)?)
        };
        let applied = self.state.apply(field, change);
        applied.map_err(|kind| self.error(kind, at, Some(field)))?;
        Ok((field, change))
    }

    fn interpretation(&mut self, field: Field, code: u8, at: u64) -> Result<Interpretation> {
        let bytes = field == Field::Attributes;
        let mut argument = || self.integer(8, Some(field));
        Ok(match code {
            0 => Interpretation::None,
            1 => Interpretation::Default(argument()?),
            2 if !bytes => Interpretation::BaseOffset(argument()?),
            3 if !bytes => Interpretation::Delta(argument()?),
            4 if !bytes => Interpretation::Stride(argument()?, argument()?),
            _ => {
                let expected = if bytes { "0 (none) or 1 (default)" } else { "0 to 4" };
                let kind = ErrorKind::Unknown { item: "interpretation", found: code, expected };
                return Err(self.error(kind, at, Some(field)));
            }
        })
    }
}
