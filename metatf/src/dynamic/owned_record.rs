//! Owned values of a record.

use crate::decode::ContentRow;
use crate::encode::RowWriter;
use crate::format::Steps;
use crate::reader::{Item, RecordView};
use crate::record::{Put, Visit};
use metatf_container::{Error, ErrorKind, Result};

/// The values of a record in leaf order, excluding a constant tag. Repeated leaves contribute one value per occurrence,
/// and the counts that determine the number of occurrences are included as ordinary values. Memory is reused from
/// record to record.
///
/// See the example of the [module](crate::dynamic#examples).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

/// A single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    /// The start and end of the array in the bytes of all values.
    Bytes(usize, usize),
}

impl OwnedRecord {
    /// Removes all values.
    #[inline]
    pub fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no values.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        self.values.get(index).map(|&value| self.item(value))
    }

    /// Returns the values in order.
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

    /// Appends a number.
    #[inline]
    pub fn push_number(&mut self, value: u64) {
        self.values.push(Value::Number(value));
    }

    /// Appends a byte array.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.values.push(Value::Bytes(start, self.bytes.len()));
    }

    /// Replaces the values with the values of a record being decoded.
    ///
    /// # Errors
    /// Returns an error if the record is malformed.
    pub fn decode(&mut self, row: &mut ContentRow<'_, '_>) -> Result<()> {
        self.clear();
        Ok(row.walk(self)?)
    }

    /// Fills a row of the writer with the values.
    ///
    /// # Errors
    /// Returns an error if the values do not match the row's record, or an error from the row.
    pub(super) fn encode(&self, row: &mut RowWriter<'_>) -> Result<()> {
        let mut putting = Putting { row, owned: self, next: 0 };
        putting.row.record.walk(putting.row.record.first_value(), &mut putting)?;
        if putting.next != self.len() {
            return Err(Error::at(0, ErrorKind::Usage("there are too many values for the record")));
        }
        Ok(())
    }

    /// Copies the values of another owned record.
    #[doc(hidden)]
    pub fn copy(&mut self, other: &Self) {
        self.values.clone_from(&other.values);
        self.bytes.clone_from(&other.bytes);
    }

    /// Copies the values of a record.
    pub(crate) fn take(&mut self, record: &RecordView<'_>) {
        // In this common case, the loop skips exactly one value and need not check any lengths.
        match record.first_value() {
            0 => self.take_all(record),
            _ => self.take_items(record.iter().skip(1)),
        }
    }

    /// Copies the values of a record that includes its tag as a value.
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

    /// Sets the number at `index`, if the value there is a number.
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
    Error::at(0, ErrorKind::Usage("the values do not match the record"))
}

/// A row being filled from an owned record.
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
