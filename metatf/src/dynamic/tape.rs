//! A record's values, in the order of its leaves.

use crate::reader::{Item, RecordView};
use crate::record::Visit;
use std::ops::Range;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// Of a numeric leaf.
    Number(u64),
    /// Of a byte array: a range of the tape's bytes.
    Bytes(Range<usize>),
}

/// The values of a record one after the other, repeated leaves as often as they occur. The counts that tell how often
/// are values like others. A tape is used again from record to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    data: Vec<Datum>,
    bytes: Vec<u8>,
}

impl Tape {
    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        self.data.clear();
        self.bytes.clear();
    }

    /// The values.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[Datum] {
        &self.data
    }

    /// The bytes of a [`Datum::Bytes`]; none for others.
    #[must_use]
    pub fn bytes(&self, datum: &Datum) -> &[u8] {
        match datum {
            Datum::Bytes(range) => self.bytes.get(range.clone()).unwrap_or_default(),
            Datum::Number(_) => &[],
        }
    }

    /// Adds a number.
    #[inline]
    pub fn push_number(&mut self, value: u64) {
        self.data.push(Datum::Number(value));
    }

    /// Adds a byte array.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.data.push(Datum::Bytes(start..self.bytes.len()));
    }

    /// Takes the values of another tape.
    pub(crate) fn copy(&mut self, other: &Self) {
        self.data.clone_from(&other.data);
        self.bytes.clone_from(&other.bytes);
    }

    /// Takes the values of a record.
    pub(crate) fn take(&mut self, record: &RecordView<'_>) {
        self.clear();
        let Self { data, bytes: all } = self;
        data.extend(record.iter().skip(1).map(|item| match item {
            Item::Number(number) => Datum::Number(number),
            Item::Bytes(bytes) => {
                let start = all.len();
                if !bytes.is_empty() {
                    all.extend_from_slice(bytes);
                }
                Datum::Bytes(start..all.len())
            }
        }));
    }

    /// Sets the number at `index`, if one stands there.
    pub(crate) fn set_number(&mut self, index: usize, value: u64) {
        if let Some(datum @ Datum::Number(_)) = self.data.get_mut(index) {
            *datum = Datum::Number(value);
        }
    }
}

impl Visit<'_> for Tape {
    #[inline]
    fn number(&mut self, _: u8, value: u64) {
        self.push_number(value);
    }

    #[inline]
    fn bytes(&mut self, _: u8, bytes: &[u8]) {
        self.push_bytes(bytes);
    }
}
