//! How records held as columns are encoded again, one after the other.

use super::columns::{BlockRecords, LeafColumn, Values};
use crate::encode::RowWriter;
use crate::format::{ExprOp, LeafKind, Record, Step, Steps};
use crate::formula::{BYTES, HISTORY, SPECIAL, plain};
use crate::record::Put;
use crate::state::State;
use metatf_container::{Error, ErrorKind, Result};

/// Gives the records of one kind again.
#[derive(Debug)]
pub(crate) struct Player {
    at: usize,
    /// Of a kind without repetitions: the leaves to encode.
    plays: Vec<Play>,
    /// By leaf: the next byte of its arrays.
    starts: Vec<usize>,
    /// By leaf: metadata changes it after the first record.
    changes: Vec<bool>,
    /// Of a kind with repetitions: next value (or length) and next byte of each leaf, and the same behind the record in
    /// progress.
    cursors: Vec<(usize, usize)>,
    next: Vec<(usize, usize)>,
}

/// A leaf to encode.
#[derive(Clone, Copy, Debug)]
enum Play {
    Number(u8),
    /// A byte array that is always empty.
    Empty(u8),
    Bytes(u8),
}

impl Player {
    pub(super) fn new(records: &BlockRecords, record: Option<&Record>) -> Self {
        let steps = record.and_then(|record| record.steps.get(record.first_value()..)).unwrap_or_default();
        let leaves = records.columns.len();
        let empty = |leaf: u8| records.columns.get(usize::from(leaf)).is_none_or(|column| column.bytes.is_empty());
        let play = |step: &Step| match *step {
            Step::Number(leaf) => Some(Play::Number(leaf)),
            Step::Bytes(leaf) if empty(leaf) => Some(Play::Empty(leaf)),
            Step::Bytes(leaf) => Some(Play::Bytes(leaf)),
            Step::Repeat { .. } => None,
        };
        let cursors = vec![(0, 0); if records.repeats { leaves } else { 0 }];
        Self {
            at: 0,
            plays: steps.iter().filter_map(play).collect(),
            starts: vec![0; leaves],
            changes: vec![false; leaves],
            next: cursors.clone(),
            cursors,
        }
    }

    /// Metadata changes the leaf before a record that is not the first.
    pub(super) fn changes(&mut self, leaf: usize) {
        if let Some(changes) = self.changes.get_mut(leaf) {
            *changes = true;
        }
    }

    /// Encodes the next record; [`advance`](Self::advance) moves on, as a writer may ask twice.
    #[inline(always)]
    pub(crate) fn play(&mut self, records: &BlockRecords, row: &mut RowWriter<'_>) -> Result<()> {
        if records.repeats {
            self.next.copy_from_slice(&self.cursors);
            return row.record.walk(row.record.first_value(), &mut Playing { records, row, cursors: &mut self.next });
        }
        for play in &self.plays {
            match *play {
                Play::Number(leaf) => {
                    let value = records.columns.get(usize::from(leaf)).and_then(|column| column.get(self.at));
                    row.number(leaf, value.ok_or(missing())?)?;
                }
                Play::Empty(leaf) => row.bytes(leaf, &[])?,
                Play::Bytes(leaf) => {
                    let column = records.columns.get(usize::from(leaf)).ok_or(missing())?;
                    let start = self.starts.get(usize::from(leaf)).copied().unwrap_or(0);
                    let array = column.bytes.get(start..start + length(column, self.at)?);
                    row.bytes(leaf, array.ok_or(missing())?)?;
                }
            }
        }
        Ok(())
    }

    /// The record is written. True behind the first one.
    #[inline(always)]
    pub(crate) fn advance(&mut self, records: &BlockRecords) -> bool {
        for play in &self.plays {
            if let Play::Bytes(leaf) = *play
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

    /// Behind the first record: leaves that store nothing, have one value in the block and are not changed any more, need not
    /// be encoded. `state` is the section's, with the record's first plan.
    pub(super) fn narrow(&mut self, records: &BlockRecords, record: &Record, (state, first): (&State, usize)) {
        let mut constant = vec![false; self.changes.len()];
        let narrowed = |play: &Play| match *play {
            Play::Number(leaf) => {
                let index = usize::from(leaf);
                let is = self.is_constant(
                    records,
                    index,
                    state.encoding.plans.get(first + index).map(|p| (p.width.get(), p.flags, plain(0, p))),
                );
                if let Some(constant) = constant.get_mut(index) {
                    *constant = is;
                }
                !is
            }
            Play::Empty(leaf) => {
                let known =
                    |op: &ExprOp| !matches!(*op, ExprOp::Leaf(leaf) if constant.get(usize::from(leaf)) != Some(&true));
                match record.leaves.get(usize::from(leaf)).map(|leaf| &leaf.kind) {
                    Some(LeafKind::Variable(program)) => !program.iter().all(known),
                    _ => true,
                }
            }
            Play::Bytes(_) => true,
        };
        let plays: Vec<Play> = self.plays.iter().copied().filter(narrowed).collect();
        self.plays = plays;
    }

    fn is_constant(&self, records: &BlockRecords, leaf: usize, plan: Option<(u8, u8, u64)>) -> bool {
        let (Some(column), Some(traits)) = (records.columns.get(leaf), records.traits.get(leaf)) else { return false };
        let Values::Same(value, _) = column.values() else { return false };
        let stored = plan
            .is_none_or(|(width, flags, base)| width != 0 || base != value || flags & (HISTORY | SPECIAL | BYTES) != 0);
        traits.alone() && !stored && self.changes.get(leaf) == Some(&false)
    }
}

/// Of the byte array of this number.
fn length(column: &LeafColumn, at: usize) -> Result<usize> {
    usize::try_from(column.get(at).ok_or(missing())?).map_err(|_| missing())
}

fn missing() -> Error {
    Error::at(0, ErrorKind::Usage("a column has fewer values than records"))
}

/// Columns played to a row, item by item.
struct Playing<'p, 'w> {
    records: &'p BlockRecords,
    row: &'p mut RowWriter<'w>,
    /// By leaf: where its next value is, and its next bytes.
    cursors: &'p mut [(usize, usize)],
}

impl<'p> Playing<'p, '_> {
    /// The column of a leaf, its next value, and where its next bytes are. The cursor moves on to the next value.
    fn next(&mut self, leaf: u8) -> Option<(&'p LeafColumn, u64, &mut usize)> {
        let column = self.records.columns.get(usize::from(leaf))?;
        let (value, bytes) = self.cursors.get_mut(usize::from(leaf))?;
        *value += 1;
        Some((column, column.get(*value - 1)?, bytes))
    }
}

impl Steps for Playing<'_, '_> {
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
