//! How records held as columns are encoded again, one after the other.

use super::columns::{Column, Records, Values};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{ExprOp, LeafKind, Record, Step};
use crate::row::plain;
use crate::row_write::{Put, RowWriter};
use crate::state::{BYTES, HISTORY, SPECIAL, State};

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
    pub(super) fn new(records: &Records, steps: &[Step]) -> Self {
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
            plays: steps.get(1..).unwrap_or_default().iter().filter_map(play).collect(),
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
    pub(crate) fn play(&mut self, records: &Records, row: &mut RowWriter<'_>) -> Result<()> {
        if records.repeats {
            let steps = row.record.steps.get(1..).unwrap_or_default();
            self.next.copy_from_slice(&self.cursors);
            return play_steps(records, row, steps, 1, &mut self.next);
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
    pub(crate) fn advance(&mut self, records: &Records) -> bool {
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
    pub(super) fn narrow(&mut self, records: &Records, record: &Record, (state, first): (&State, usize)) {
        let mut constant = vec![false; self.changes.len()];
        let narrowed = |play: &Play| match *play {
            Play::Number(leaf) => {
                let index = usize::from(leaf);
                let is = self.is_constant(
                    records,
                    index,
                    state.plans.get(first + index).map(|p| (p.width, p.flags, plain(0, p))),
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

    fn is_constant(&self, records: &Records, leaf: usize, plan: Option<(u8, u8, u64)>) -> bool {
        let (Some(column), Some(traits)) = (records.columns.get(leaf), records.traits.get(leaf)) else { return false };
        let Values::Same(value, _) = column.values() else { return false };
        let stored = plan
            .is_none_or(|(width, flags, base)| width != 0 || base != value || flags & (HISTORY | SPECIAL | BYTES) != 0);
        traits.alone() && !stored && self.changes.get(leaf) == Some(&false)
    }
}

/// Of the byte array of this number.
fn length(column: &Column, at: usize) -> Result<usize> {
    usize::try_from(column.get(at).ok_or(missing())?).map_err(|_| missing())
}

fn missing() -> Error {
    Error::at(0, ErrorKind::Usage("a column has fewer values than records"))
}

/// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
fn play_steps(
    records: &Records,
    row: &mut RowWriter<'_>,
    steps: &[Step],
    offset: usize,
    cursors: &mut [(usize, usize)],
) -> Result<()> {
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        at += 1;
        match *step {
            Step::Number(leaf) => {
                let index = usize::from(leaf);
                let (column, cursor) = records.columns.get(index).zip(cursors.get_mut(index)).ok_or(missing())?;
                row.number(leaf, column.get(cursor.0).ok_or(missing())?)?;
                cursor.0 += 1;
            }
            Step::Bytes(leaf) => {
                let index = usize::from(leaf);
                let (column, cursor) = records.columns.get(index).zip(cursors.get_mut(index)).ok_or(missing())?;
                let length = usize::try_from(column.get(cursor.0).ok_or(missing())?).map_err(|_| missing())?;
                row.bytes(leaf, column.bytes.get(cursor.1..cursor.1 + length).ok_or(missing())?)?;
                cursor.0 += 1;
                cursor.1 += length;
            }
            Step::Repeat { count, end } => {
                let end = usize::from(end).saturating_sub(offset).max(at);
                let body = steps.get(at..end).unwrap_or_default();
                let items = usize::try_from(row.last(count)).map_err(|_| missing())?;
                row.items(items)?;
                for _ in 0..items {
                    play_steps(records, row, body, offset + at, cursors)?;
                }
                at = end;
            }
        }
    }
    Ok(())
}
