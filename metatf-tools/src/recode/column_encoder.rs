//! Encodes records that are stored as columns, one after the other.

use super::leaf_column::{BlockRecords, LeafColumn, Values};
use metatf::Put;
use metatf::RowWriter;
use metatf::container::{Error, ErrorKind, Result};
use metatf::format::{ExprOp, LeafKind, Record, Step, Steps};

/// An encoder for the records of one kind.
#[derive(Debug)]
pub(crate) struct ColumnEncoder {
    at: usize,
    /// The leaves to encode, if the kind has no repetitions.
    leaves: Vec<LeafToEncode>,
    /// The position of the next byte of each leaf's arrays.
    starts: Vec<usize>,
    /// Whether metadata changes each leaf after the first record.
    changes: Vec<bool>,
    /// The positions of the next value (or length) and the next byte of each leaf, if the kind has repetitions. The
    /// second list contains the positions after the current record.
    cursors: Vec<(usize, usize)>,
    next: Vec<(usize, usize)>,
}

/// A leaf to encode.
#[derive(Clone, Copy, Debug)]
enum LeafToEncode {
    Number(u8),
    /// A byte array that is always empty.
    Empty(u8),
    Bytes(u8),
}

impl ColumnEncoder {
    pub(super) fn new(records: &BlockRecords, record: Option<&Record>) -> Self {
        let steps = record.and_then(|record| record.steps.get(record.first_value()..)).unwrap_or_default();
        let leaves = records.columns.len();
        let empty = |leaf: u8| records.columns.get(usize::from(leaf)).is_none_or(|column| column.bytes.is_empty());
        let leaf = |step: &Step| match *step {
            Step::Number(leaf) => Some(LeafToEncode::Number(leaf)),
            Step::Bytes(leaf) if empty(leaf) => Some(LeafToEncode::Empty(leaf)),
            Step::Bytes(leaf) => Some(LeafToEncode::Bytes(leaf)),
            Step::Repeat { .. } => None,
        };
        let cursors = vec![(0, 0); if records.repeats { leaves } else { 0 }];
        Self {
            at: 0,
            leaves: steps.iter().filter_map(leaf).collect(),
            starts: vec![0; leaves],
            changes: vec![false; leaves],
            next: cursors.clone(),
            cursors,
        }
    }

    /// Records that metadata changes the leaf before a record other than the first.
    pub(super) fn changes(&mut self, leaf: usize) {
        if let Some(changes) = self.changes.get_mut(leaf) {
            *changes = true;
        }
    }

    /// Encodes the next record without advancing, because a writer may request a record twice; see
    /// [`advance`](Self::advance).
    #[inline(always)]
    pub(crate) fn encode(&mut self, records: &BlockRecords, row: &mut RowWriter<'_>) -> Result<()> {
        if records.repeats {
            self.next.copy_from_slice(&self.cursors);
            let record = row.record();
            let mut encoder = RepeatingEncoder { records, row, cursors: &mut self.next };
            return record.walk(record.first_value(), &mut encoder);
        }
        for leaf in &self.leaves {
            match *leaf {
                LeafToEncode::Number(leaf) => {
                    let value = records.columns.get(usize::from(leaf)).and_then(|column| column.get(self.at));
                    row.number(leaf, value.ok_or(missing())?)?;
                }
                LeafToEncode::Empty(leaf) => row.bytes(leaf, &[])?,
                LeafToEncode::Bytes(leaf) => {
                    let column = records.columns.get(usize::from(leaf)).ok_or(missing())?;
                    let start = self.starts.get(usize::from(leaf)).copied().unwrap_or(0);
                    let array = column.bytes.get(start..start + length(column, self.at)?);
                    row.bytes(leaf, array.ok_or(missing())?)?;
                }
            }
        }
        Ok(())
    }

    /// Advances to the next record. Returns true after the first record.
    #[inline(always)]
    pub(crate) fn advance(&mut self, records: &BlockRecords) -> bool {
        for leaf in &self.leaves {
            if let LeafToEncode::Bytes(leaf) = *leaf
                && let Some(column) = records.columns.get(usize::from(leaf))
                && let Some(start) = self.starts.get_mut(usize::from(leaf))
            {
                *start += length(column, self.at).unwrap_or(0);
            }
        }
        self.at += 1;
        std::mem::swap(&mut self.cursors, &mut self.next);
        self.at == 1
    }

    /// Removes leaves that need not be encoded after the first record. Such a leaf stores nothing, has a single value
    /// in the block, and is not changed by later metadata. `unstored` returns the value of a leaf that stores nothing.
    pub(super) fn narrow(&mut self, records: &BlockRecords, record: &Record, unstored: impl Fn(u8) -> Option<u64>) {
        let mut constant = vec![false; self.changes.len()];
        let narrowed = |leaf: &LeafToEncode| match *leaf {
            LeafToEncode::Number(leaf) => {
                let index = usize::from(leaf);
                let is = self.one_value(records, index).is_some_and(|value| unstored(leaf) == Some(value));
                if let Some(constant) = constant.get_mut(index) {
                    *constant = is;
                }
                !is
            }
            LeafToEncode::Empty(leaf) => {
                let known =
                    |op: &ExprOp| !matches!(*op, ExprOp::Leaf(leaf) if constant.get(usize::from(leaf)) != Some(&true));
                match record.leaves.get(usize::from(leaf)).map(|leaf| &leaf.kind) {
                    Some(LeafKind::Variable(program)) => !program.iter().all(known),
                    _ => true,
                }
            }
            LeafToEncode::Bytes(_) => true,
        };
        let leaves: Vec<LeafToEncode> = self.leaves.iter().copied().filter(narrowed).collect();
        self.leaves = leaves;
    }

    /// Returns the value of a leaf that has a single value in the block and is not changed by later metadata.
    fn one_value(&self, records: &BlockRecords, leaf: usize) -> Option<u64> {
        let (column, traits) = (records.columns.get(leaf)?, records.traits.get(leaf)?);
        let Values::Same(value, _) = column.values() else { return None };
        (traits.alone() && self.changes.get(leaf) == Some(&false)).then_some(value)
    }
}

/// Returns the length of the byte array with this index.
fn length(column: &LeafColumn, at: usize) -> Result<usize> {
    usize::try_from(column.get(at).ok_or(missing())?).map_err(|_| missing())
}

fn missing() -> Error {
    Error::at(0, ErrorKind::Usage("a column has fewer values than records"))
}

/// An encoder of columns with repetitions, which writes items to a row.
struct RepeatingEncoder<'p, 'w> {
    records: &'p BlockRecords,
    row: &'p mut RowWriter<'w>,
    /// The positions of each leaf's next value and next bytes.
    cursors: &'p mut [(usize, usize)],
}

impl<'p> RepeatingEncoder<'p, '_> {
    /// Returns a leaf's column, its next value and the position of its next bytes, and advances the cursor to the next
    /// value.
    fn next(&mut self, leaf: u8) -> Option<(&'p LeafColumn, u64, &mut usize)> {
        let column = self.records.columns.get(usize::from(leaf))?;
        let (value, bytes) = self.cursors.get_mut(usize::from(leaf))?;
        *value += 1;
        Some((column, column.get(*value - 1)?, bytes))
    }
}

impl Steps for RepeatingEncoder<'_, '_> {
    type Error = Error;

    fn number(&mut self, leaf: u8) -> Result<()> {
        let (_, value, _) = self.next(leaf).ok_or(missing())?;
        self.row.number(leaf, value)
    }

    fn bytes(&mut self, leaf: u8) -> Result<()> {
        let (column, length, start) = self.next(leaf).ok_or(missing())?;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or(missing())?;
        let bytes = column.bytes.get(*start..end).ok_or(missing())?;
        *start = end;
        self.row.bytes(leaf, bytes)
    }

    fn items(&mut self, count: u8) -> Result<u64> {
        let items = self.row.last(count);
        self.row.items(usize::try_from(items).map_err(|_| missing())?)?;
        Ok(items)
    }
}
