//! A record's values, owned.

use crate::decode::ContentRow;
use crate::encode::RowWriter;
use crate::format::Steps;
use crate::reader::{Item, RecordView};
use crate::record::{Put, Visit};
use metatf_container::{Error, ErrorKind, Result};

/// The values of a record in the order of its leaves, a tag that is always the same apart, those of repeated leaves as often as they
/// occur. The counts that tell how often are values like others. Memory is used again from record to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    /// Where its bytes begin and end.
    Bytes(usize, usize),
}

impl OwnedRecord {
    /// Empties it.
    #[inline]
    pub fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }

    /// How many values there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        self.values.get(index).map(|&value| self.item(value))
    }

    /// The values, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Item<'_>> + DoubleEndedIterator {
        self.values.iter().map(|&value| self.item(value))
    }

    #[inline]
    fn item(&self, value: Value) -> Item<'_> {
        match value {
            Value::Number(number) => Item::Number(number),
            Value::Bytes(start, end) => Item::Bytes(self.bytes.get(start..end).unwrap_or_default()),
        }
    }

    /// Adds a number.
    #[inline]
    pub fn push_number(&mut self, value: u64) {
        self.values.push(Value::Number(value));
    }

    /// Adds a byte array.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.values.push(Value::Bytes(start, self.bytes.len()));
    }

    /// Takes the values of a record that a reader decodes.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn decode(&mut self, row: &mut ContentRow<'_, '_>) -> Result<()> {
        self.clear();
        Ok(row.walk(self)?)
    }

    /// Fills a row of the writer with the values.
    ///
    /// # Errors
    /// Values that are not those of the row's record; the row's.
    pub(super) fn encode(&self, row: &mut RowWriter<'_>) -> Result<()> {
        let mut putting = Putting { row, owned: self, next: 0 };
        putting.row.record.walk(putting.row.record.first_value(), &mut putting)?;
        if putting.next != self.len() {
            return Err(Error::at(0, ErrorKind::Usage("there are more values than the record has")));
        }
        Ok(())
    }

    /// Takes the values of another one.
    #[doc(hidden)]
    pub fn copy(&mut self, other: &Self) {
        self.values.clone_from(&other.values);
        self.bytes.clone_from(&other.bytes);
    }

    /// Takes the values of a record.
    pub(crate) fn take(&mut self, record: &RecordView<'_>) {
        // That one is skipped, and how many are not asked, makes the loop short.
        match record.first_value() {
            0 => self.take_all(record),
            _ => self.take_items(record.iter().skip(1)),
        }
    }

    /// Takes the values of a record whose tag is one of them.
    #[cold]
    #[inline(never)]
    fn take_all(&mut self, record: &RecordView<'_>) {
        self.take_items(record.iter());
    }

    #[inline(always)]
    fn take_items<'v>(&mut self, items: impl Iterator<Item = Item<'v>>) {
        self.clear();
        let Self { values, bytes: all } = self;
        values.extend(items.map(|item| match item {
            Item::Number(number) => Value::Number(number),
            Item::Bytes(bytes) => {
                let start = all.len();
                if !bytes.is_empty() {
                    all.extend_from_slice(bytes);
                }
                Value::Bytes(start, all.len())
            }
        }));
    }

    /// Sets the number at `index`, if one stands there.
    #[inline]
    pub fn set_number(&mut self, index: usize, value: u64) {
        if let Some(known @ Value::Number(_)) = self.values.get_mut(index) {
            *known = Value::Number(value);
        }
    }
}

impl Visit<'_> for OwnedRecord {
    #[inline]
    fn number(&mut self, _: u8, value: u64) {
        self.push_number(value);
    }

    #[inline]
    fn bytes(&mut self, _: u8, bytes: &[u8]) {
        self.push_bytes(bytes);
    }
}

fn missing() -> Error {
    Error::at(0, ErrorKind::Usage("the values are not those of the record"))
}

/// A row that is being filled from an owned record.
struct Putting<'p, 'w> {
    row: &'p mut RowWriter<'w>,
    owned: &'p OwnedRecord,
    next: usize,
}

impl Steps for Putting<'_, '_> {
    type Error = Error;

    fn number(&mut self, leaf: u8) -> Result<()> {
        let Some(Item::Number(value)) = self.owned.get(self.next) else { return Err(missing()) };
        self.next += 1;
        self.row.number(leaf, value)
    }

    fn bytes(&mut self, leaf: u8) -> Result<()> {
        let Some(Item::Bytes(bytes)) = self.owned.get(self.next) else { return Err(missing()) };
        self.next += 1;
        self.row.bytes(leaf, bytes)
    }

    fn items(&mut self, count: u8) -> Result<u64> {
        let items = self.row.last(count);
        self.row.items(usize::try_from(items).map_err(|_| missing())?)?;
        Ok(items)
    }
}
