//! Stream writer.

use super::state::State;
use super::{COMMENT, Change, Error, ErrorKind, Field, Interpretation, Kind, METADATA, Part, Record, Result, Width};
use std::io::Write;

/// A writer that writes a stream record by record. If a value does not fit into its field, the writer first emits
/// metadata to make room: times are then stored as differences, and other fields are stored unchanged in 1, 2, 4 or 8
/// bytes.
///
/// # Examples
///
/// Two metadata records precede the first nonzero time:
///
/// ```
/// use hatf_trace::hatf1::{Kind, Record, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// let alloc = Record { size: 24, address: 0x1000, ..Record::new(Kind::Alloc) };
/// writer.record(&alloc)?;
/// writer.record(&Record { time: 1_000_000, ..alloc })?;
/// writer.record(&Record { time: 1_000_001, ..alloc })?;
/// // A record occupies 9 bytes without a time and 13 bytes with a time. The metadata occupies 4 and 12 bytes.
/// assert_eq!(writer.finish()?.len(), 9 + 4 + 12 + 13 + 13);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<W> {
    output: W,
    state: State,
    /// The current record.
    bytes: Vec<u8>,
    /// The number of bytes written.
    offset: u64,
}

/// A value that does not fit into its field.
enum Misfit {
    /// A number, and the number of bytes it needs.
    Number(Field, u8),
    /// The attributes.
    Attributes(Width),
}

impl<W: Write> Writer<W> {
    /// Starts a stream. The output should be buffered, because it receives many small writes.
    pub fn new(output: W) -> Self {
        Self { output, state: State::new(), bytes: Vec::new(), offset: 0 }
    }

    /// Writes a record, preceded by the metadata that it needs.
    ///
    /// # Errors
    /// The output failed, or the attributes have more than 65535 bytes.
    pub fn record(&mut self, record: &Record<'_>) -> Result<()> {
        // Every iteration widens a field, and widths never shrink.
        loop {
            let before = self.state;
            self.bytes.clear();
            self.bytes.push(record.kind as u8);
            match self.encode(record)? {
                None => return self.put(),
                Some(misfit) => {
                    self.state = before;
                    self.make_room(&misfit, record)?;
                }
            }
        }
    }

    /// Writes a comment.
    ///
    /// # Errors
    /// The output failed, or the comment has more than 65535 bytes.
    pub fn comment(&mut self, text: &[u8]) -> Result<()> {
        let Ok(length) = u16::try_from(text.len()) else {
            return Err(self.too_long("a comment", text.len(), None));
        };
        self.bytes.clear();
        self.bytes.push(COMMENT);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(text);
        self.put()
    }

    /// Writes a metadata record. This is optional, because the writer emits the metadata that values need.
    ///
    /// # Errors
    /// The output failed, or the interpretation stores bytes but the field never had a width.
    pub fn set(&mut self, field: Field, change: Change) -> Result<()> {
        let fits = match change {
            Change::Width(Width::Variable(_)) => field == Field::Attributes,
            Change::Width(width) => Width::from_code(width.code(), field).is_some(),
            Change::Interpretation(Interpretation::None | Interpretation::Default(_)) => true,
            Change::Interpretation(_) => field != Field::Attributes,
        };
        let applied = if fits {
            self.state.apply(field, change)
        } else {
            let expected = "valid for this field";
            Err(ErrorKind::Unknown { item: "width or interpretation", found: field as u8, expected })
        };
        applied.map_err(|kind| self.error(kind, Some(field)))?;
        self.bytes.clear();
        self.bytes.push(METADATA);
        match change {
            Change::Width(width) => self.bytes.extend_from_slice(&[1, field as u8, width.code()]),
            Change::Interpretation(interpretation) => {
                let (code, arguments, count) = interpretation.code();
                self.bytes.extend_from_slice(&[2, field as u8, code]);
                for argument in arguments.iter().take(count) {
                    self.bytes.extend_from_slice(&argument.to_be_bytes());
                }
            }
        }
        self.put()
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// The output failed.
    pub fn finish(mut self) -> Result<W> {
        let flushed = self.output.flush();
        flushed.map_err(|error| self.error(ErrorKind::Io(error), None))?;
        Ok(self.output)
    }

    fn error(&self, kind: ErrorKind, field: Option<Field>) -> Error {
        Error { kind, offset: self.offset, record: self.offset, field }
    }

    fn too_long(&self, item: &'static str, length: usize, field: Option<Field>) -> Error {
        self.error(ErrorKind::TooLong { item, length: length as u64 }, field)
    }

    fn put(&mut self) -> Result<()> {
        let written = self.output.write_all(&self.bytes);
        written.map_err(|error| self.error(ErrorKind::Io(error), None))?;
        self.offset += self.bytes.len() as u64;
        Ok(())
    }

    /// Encodes the part of a record after its tag. Returns a value that does not fit, if there is one.
    fn encode(&mut self, record: &Record<'_>) -> Result<Option<Misfit>> {
        for &part in record.kind.numbers() {
            let setting = self.state.of(part.field());
            let width = usize::from(setting.bytes());
            match setting.encode(record.number(part)) {
                Ok(raw) => self.bytes.extend_from_slice(raw.to_be_bytes().get(8 - width..).unwrap_or_default()),
                Err(needed) => return Ok(Some(Misfit::Number(part.field(), needed))),
            }
        }
        self.encode_attributes(record.attributes)
    }

    fn encode_attributes(&mut self, attributes: &[u8]) -> Result<Option<Misfit>> {
        let setting = *self.state.of(Field::Attributes);
        let stores = setting.interpretation.stores();
        match setting.width {
            _ if !stores && attributes.is_empty() => return Ok(None),
            Width::Fixed(width) if stores && usize::from(width) == attributes.len() => {}
            Width::Variable(1) if stores && let Ok(length) = u8::try_from(attributes.len()) => self.bytes.push(length),
            Width::Variable(2) if stores && let Ok(length) = u16::try_from(attributes.len()) => {
                self.bytes.extend_from_slice(&length.to_be_bytes());
            }
            _ => {
                let width = match attributes.len() {
                    0..=0xff => Width::Variable(1),
                    0x100..=0xffff => Width::Variable(2),
                    length => return Err(self.too_long("attributes", length, Some(Field::Attributes))),
                };
                return Ok(Some(Misfit::Attributes(width)));
            }
        }
        self.bytes.extend_from_slice(attributes);
        Ok(None)
    }

    fn make_room(&mut self, misfit: &Misfit, record: &Record<'_>) -> Result<()> {
        match *misfit {
            Misfit::Attributes(width) => {
                self.set(Field::Attributes, Change::Width(width))?;
                self.store(Field::Attributes, Interpretation::None)
            }
            Misfit::Number(Field::Time, _) => self.make_room_for_time(record),
            Misfit::Number(field, needed) => {
                let remembered = match self.state.of(field).remembered {
                    Some(Width::Fixed(width)) => width,
                    _ => 0,
                };
                if remembered < needed {
                    self.set(field, Change::Width(Width::Fixed(needed)))?;
                }
                // If the field already stores bytes, the new width is already in effect, and this call changes nothing.
                self.store(field, Interpretation::None)
            }
        }
    }

    /// Stores times as differences from the previous time.
    fn make_room_for_time(&mut self, record: &Record<'_>) -> Result<()> {
        let setting = *self.state.of(Field::Time);
        let previous = setting.previous;
        let stores = setting.interpretation.stores();
        let needed = match setting.interpretation {
            Interpretation::None => super::state::width_for(record.time, false),
            Interpretation::BaseOffset(base) => super::state::width_for(record.time.wrapping_sub(base), true),
            _ => super::state::width_for(record.time.wrapping_sub(previous), true),
        };
        let remembered = match setting.remembered {
            Some(Width::Fixed(width)) => width,
            _ => 0,
        };
        if needed.max(1) > remembered || stores {
            self.set(Field::Time, Change::Width(Width::Fixed(needed.max(1).max(remembered))))?;
        }
        self.store(Field::Time, Interpretation::Delta(previous))
    }

    /// Sets an interpretation that stores bytes unless the field already has one.
    fn store(&mut self, field: Field, interpretation: Interpretation) -> Result<()> {
        if self.state.of(field).interpretation.stores() {
            return Ok(());
        }
        self.set(field, Change::Interpretation(interpretation))
    }
}

impl Kind {
    /// Returns whether records of this kind contain the number.
    #[must_use]
    pub fn has(self, part: Part) -> bool {
        self.numbers().contains(&part)
    }
}
