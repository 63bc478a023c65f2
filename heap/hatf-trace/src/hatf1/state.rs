//! Widths, interpretations and previous values of the six fields shared by all records (spec 6), and the rules by which
//! metadata changes them (spec 4).

use super::error::ErrorKind;
use super::field::Field;

/// The number of bytes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A fixed number of bytes: 0, 1, 2, 4 or 8.
    Fixed(u8),
    /// A length field of 1 or 2 bytes followed by that many bytes; for attributes only.
    Variable(u8),
}

impl Width {
    /// Returns the width for a code if the field can have that width.
    pub(super) fn from_code(code: u8, field: Field) -> Option<Self> {
        match code {
            0 | 1 | 2 | 4 | 8 => Some(Self::Fixed(code)),
            9 | 10 if field == Field::Attributes => Some(Self::Variable(code - 8)),
            _ => None,
        }
    }

    /// Returns the code of the width in a metadata record.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Fixed(width) => width,
            Self::Variable(length) => 8 + length,
        }
    }
}

/// The rule that computes a value from its stored bytes (spec 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// The stored bytes are the value.
    None,
    /// Nothing is stored; the value is this constant.
    Default(u64),
    /// The value is the sum of the sign-extended bytes and this base.
    BaseOffset(u64),
    /// The value is the sum of the sign-extended bytes and the previous value, which is initially this number.
    Delta(u64),
    /// Nothing is stored; the value is the sum of the previous value, which is initially the first number, and the
    /// second number.
    Stride(u64, u64),
}

impl Interpretation {
    pub(super) fn stores(self) -> bool {
        matches!(self, Self::None | Self::BaseOffset(_) | Self::Delta(_))
    }

    /// Returns the code of the interpretation in a metadata record, its arguments and their number.
    pub(super) fn code(self) -> (u8, [u64; 2], usize) {
        match self {
            Self::None => (0, [0, 0], 0),
            Self::Default(value) => (1, [value, 0], 1),
            Self::BaseOffset(base) => (2, [base, 0], 1),
            Self::Delta(initial) => (3, [initial, 0], 1),
            Self::Stride(initial, stride) => (4, [initial, stride], 2),
        }
    }
}

/// The change that a metadata record makes to its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new width.
    Width(Width),
    /// A new interpretation.
    Interpretation(Interpretation),
}

/// The current encoding of one field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// The width, used while the interpretation stores bytes.
    pub(super) width: Width,
    /// The last nonzero width.
    pub(super) remembered: Option<Width>,
    pub(super) interpretation: Interpretation,
    pub(super) previous: u64,
}

/// The encodings of all fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct State([Setting; 6]);

impl State {
    /// Returns the state at the start of a stream.
    pub(super) fn new() -> Self {
        let bytes = Setting {
            width: Width::Fixed(4),
            remembered: Some(Width::Fixed(4)),
            interpretation: Interpretation::None,
            previous: 0,
        };
        let nothing = Setting {
            width: Width::Fixed(0),
            remembered: None,
            interpretation: Interpretation::Default(0),
            previous: 0,
        };
        Self([bytes, bytes, nothing, nothing, nothing, nothing])
    }

    pub(super) fn of(&mut self, field: Field) -> &mut Setting {
        let [size, address, time, thread, heap, attributes] = &mut self.0;
        match field {
            Field::Size => size,
            Field::Address => address,
            Field::Time => time,
            Field::Thread => thread,
            Field::Heap => heap,
            Field::Attributes => attributes,
        }
    }

    /// Applies a change. Attributes support only `none` and `default`, which the reader ensures.
    pub(super) fn apply(&mut self, field: Field, change: Change) -> Result<(), ErrorKind> {
        let setting = self.of(field);
        match change {
            Change::Width(width) => {
                if setting.interpretation.stores() {
                    setting.width = width;
                }
                if width != Width::Fixed(0) {
                    setting.remembered = Some(width);
                }
            }
            Change::Interpretation(interpretation) => {
                if interpretation.stores() {
                    setting.width = setting.remembered.ok_or(ErrorKind::NoWidth)?;
                }
                setting.interpretation = interpretation;
                if let Interpretation::Delta(initial) | Interpretation::Stride(initial, _) = interpretation {
                    setting.previous = initial;
                }
            }
        }
        Ok(())
    }
}

impl Setting {
    /// Returns the number of bytes that a number occupies.
    pub(super) fn bytes(&self) -> u8 {
        match self.width {
            Width::Fixed(width) if self.interpretation.stores() => width,
            _ => 0,
        }
    }

    /// Decodes the stored bytes `raw` and remembers the value as the previous one.
    pub(super) fn decode(&mut self, raw: u64) -> u64 {
        let extended = sign_extended(raw, self.bytes());
        let value = match self.interpretation {
            Interpretation::None => raw,
            Interpretation::Default(value) => value,
            Interpretation::BaseOffset(base) => base.wrapping_add(extended),
            Interpretation::Delta(_) => self.previous.wrapping_add(extended),
            Interpretation::Stride(_, stride) => self.previous.wrapping_add(stride),
        };
        self.previous = value;
        value
    }

    /// Encodes a value and remembers it as the previous one. The error is the width that the value needs.
    pub(super) fn encode(&mut self, value: u64) -> Result<u64, u8> {
        let (raw, signed) = match self.interpretation {
            Interpretation::None => (value, false),
            Interpretation::BaseOffset(base) => (value.wrapping_sub(base), true),
            Interpretation::Delta(_) => (value.wrapping_sub(self.previous), true),
            Interpretation::Default(default) if default == value => (0, false),
            Interpretation::Stride(_, stride) if self.previous.wrapping_add(stride) == value => (0, false),
            Interpretation::Default(_) | Interpretation::Stride(..) => return Err(width_for(value, false)),
        };
        let needed = width_for(raw, signed);
        if self.interpretation.stores() && needed > self.bytes() {
            return Err(needed);
        }
        self.previous = value;
        Ok(raw)
    }
}

fn sign_extended(raw: u64, width: u8) -> u64 {
    match width {
        0 => 0,
        8.. => raw,
        _ => {
            let top = 1 << (8 * u32::from(width) - 1);
            (raw ^ top).wrapping_sub(top)
        }
    }
}

/// Returns the minimum width that fits a number: 0, 1, 2, 4 or 8.
pub(super) fn width_for(raw: u64, signed: bool) -> u8 {
    let fits = |width: u8| {
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - 8 * u32::from(width)) };
        let cut = raw & mask;
        if signed { sign_extended(cut, width) == raw } else { cut == raw }
    };
    [0, 1, 2, 4].into_iter().find(|width| fits(*width)).unwrap_or(8)
}
