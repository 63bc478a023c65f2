//! The subset of the protocol buffer encoding that `profile.proto` requires.

use hatf_trace::{Error, Result};

/// An output message.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// Appends a number. 0 is omitted, because it is the default.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    /// Appends bytes or a message.
    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Appends numbers as one packed field.
    pub(super) fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

/// The value of an input field.
pub(super) enum Value<'b> {
    Number(u64),
    /// Bytes, a message, or packed numbers, with their offset.
    Bytes(Fields<'b>),
    /// A value of a wire type that profiles do not use.
    Other,
}

/// The remaining fields of a message. Each is validated against the available bytes.
#[derive(Clone, Copy)]
pub(super) struct Fields<'b> {
    pub(super) bytes: &'b [u8],
    /// The offset of the bytes in the profile.
    pub(super) at: usize,
}

impl<'b> Fields<'b> {
    pub(super) fn error<T>(&self, text: &str) -> Result<T> {
        Err(Error::Trace(format!("pprof, byte {}: {text}", self.at).into()))
    }

    fn take(&mut self, length: u64) -> Result<Self> {
        let split = usize::try_from(length).ok().and_then(|length| self.bytes.split_at_checked(length));
        let Some((taken, rest)) = split else {
            return self
                .error(&format!("a field of {length} bytes, but only {} remain in its message", self.bytes.len()));
        };
        let part = Self { bytes: taken, at: self.at };
        (self.bytes, self.at) = (rest, self.at + taken.len());
        Ok(part)
    }

    /// Reads a varint of one to ten bytes.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for (number, byte) in self.bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * number);
            if byte & 0x80 == 0 {
                self.take(number as u64 + 1)?;
                return Ok(value);
            }
        }
        self.error("a varint is truncated or longer than ten bytes")
    }

    /// Reads the next field. Returns `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'b>)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let start = *self;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            kind => return start.error(&format!("invalid wire type {kind}")),
        };
        Ok(Some((key >> 3, value)))
    }

    /// Calls a function with each number of a field that may be repeated.
    pub(super) fn each_number(value: Value<'b>, mut each: impl FnMut(u64)) -> Result<()> {
        match value {
            Value::Number(number) => each(number),
            Value::Bytes(mut packed) => {
                while !packed.bytes.is_empty() {
                    each(packed.varint()?);
                }
            }
            Value::Other => {}
        }
        Ok(())
    }
}
