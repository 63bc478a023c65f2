//! How records get into their columns: leaf by leaf, or in a straight line without those leaves that store nothing.

use super::columns::{Column, Records, Traits};
use crate::container::Order;
use crate::decode::ContentRow;
use crate::error::{Error, Result};
use crate::format::{ExprOp, Leaf, LeafKind, Record, Step, Steps};
use crate::formula::{LAST, Plan, evaluate, note, plain};
use crate::record::{Row, Stopped};
use std::marker::PhantomData;

/// Adds one record to its columns.
pub(super) struct Fill<'f> {
    pub(super) records: &'f mut Records,
    /// Previous values, by cell, and last values, by leaf of the section.
    pub(super) cells: &'f mut [u64],
    pub(super) last: &'f mut [u64],
    /// What is added, in values and bytes.
    pub(super) size: usize,
    pub(super) items: usize,
}

impl Fill<'_> {
    /// Takes the values of a row, in the order of the bytes.
    pub(super) fn record<'r>(&mut self, record: &Record, row: &mut impl Row<'r>) -> Result<()> {
        record.walk(1, &mut Filling { fill: self, row, data: PhantomData })
    }

    #[inline]
    fn number(&mut self, leaf: usize, value: u64) {
        let Records { columns, traits, first, .. } = &mut *self.records;
        if let (Some(column), Some(traits)) = (columns.get_mut(leaf), traits.get(leaf)) {
            number(column, traits, (value, *first + leaf), self.cells, self.last);
        }
        self.size += 1;
    }

    fn bytes(&mut self, leaf: usize, array: &[u8]) {
        if let (Some(column), Some(traits)) = (self.records.columns.get_mut(leaf), self.records.traits.get(leaf)) {
            bytes(column, traits, array);
        }
        self.size += 1 + array.len() / 8;
    }
}

/// A row whose values go into columns.
struct Filling<'w, 'f, 'r, R> {
    fill: &'w mut Fill<'f>,
    row: &'w mut R,
    data: PhantomData<&'r [u8]>,
}

impl<'r, R: Row<'r>> Steps for Filling<'_, '_, 'r, R> {
    type Error = Error;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<()> {
        let value = self.row.number(leaf).map_err(Into::into)?;
        self.fill.number(leaf.into(), value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<()> {
        let bytes = self.row.bytes(leaf).map_err(Into::into)?;
        self.fill.bytes(leaf.into(), bytes);
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64> {
        let Fill { records, last, .. } = &*self.fill;
        let count = last.get(records.first + usize::from(count)).copied().unwrap_or(0);
        Ok(self.row.items(count).map_err(Into::into)? as u64)
    }
}

/// Adds a number to the column of the leaf of this index.
#[inline(always)]
fn number(column: &mut Column, traits: &Traits, (value, leaf): (u64, usize), cells: &mut [u64], last: &mut [u64]) {
    if traits.alone() {
        column.push_alone(value);
    } else {
        column.push(value);
    }
    if traits.shared {
        column.previous.push(cells.get(traits.cell as usize).copied().unwrap_or(0));
    }
    if let Some(reference) = traits.reference {
        column.reference.push(last.get(reference as usize).copied().unwrap_or(0));
    }
    if let Some(cell) = cells.get_mut(traits.cell as usize) {
        *cell = value;
    }
    if let Some(last) = last.get_mut(leaf) {
        *last = value;
    }
}

#[inline(always)]
fn bytes(column: &mut Column, traits: &Traits, array: &[u8]) {
    column.bytes.extend_from_slice(array);
    if traits.repeated {
        column.push(array.len() as u64);
    } else {
        column.push_alone(array.len() as u64);
    }
}

/// How records of a kind without repetitions are read now: which of their leaves are asked for. The others store nothing, and
/// have the same value until the trace says otherwise.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    ready: bool,
    takes: Vec<Take>,
    /// Leaves that are not asked for, with their value; of byte arrays, which are empty, the length.
    constants: Vec<(u8, u64)>,
    /// Records whose constants are not in their columns yet.
    due: usize,
}

/// A leaf that is asked for.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// A number that nothing else looks at, by the formula without history.
    Plain(u8, Plan),
    /// Such a number, and right behind it a byte array that it is the length of.
    Counted(u8, Plan),
    /// A number that nothing else looks at.
    Alone(u8),
    Number(u8),
    Bytes(u8),
}

impl Recipe {
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// It holds no longer. What is due was [settled](Self::settle), or is to be forgotten, too.
    pub(super) fn forget(&mut self) {
        self.ready = false;
        self.due = 0;
    }

    /// Puts the constants of the records since into their columns.
    pub(super) fn settle(&mut self, columns: &mut [Column]) {
        let due = std::mem::take(&mut self.due);
        for &(leaf, value) in self.constants.iter().filter(|_| due > 0) {
            if let Some(column) = columns.get_mut(usize::from(leaf)) {
                column.push_many(value, due);
            }
        }
    }

    /// Looks at how the row's record is stored.
    #[cold]
    #[inline(never)]
    pub(super) fn make(&mut self, traits: &[Traits], row: &mut ContentRow<'_, '_>) {
        self.takes.clear();
        self.constants.clear();
        for step in row.record.steps.get(1..).unwrap_or_default() {
            let (Step::Number(leaf) | Step::Bytes(leaf)) = *step else { continue };
            let alone = traits.get(usize::from(leaf)).is_some_and(|t| t.alone() && !t.watched);
            let take = match *step {
                Step::Number(_) => match constant(leaf, row).filter(|_| alone) {
                    Some(value) => {
                        self.constants.push((leaf, value));
                        continue;
                    }
                    None if alone => match formula(leaf, row) {
                        Some(plan) if plan.flags == 0 => Take::Plain(leaf, plan),
                        _ => Take::Alone(leaf),
                    },
                    None => Take::Number(leaf),
                },
                _ if let Some(Take::Alone(number)) = self.takes.last().copied()
                    && let Some(plan) = formula(number, row)
                    && is_count(number, leaf, row) =>
                {
                    self.takes.pop();
                    Take::Counted(number, plan)
                }
                _ if alone && self.is_empty(leaf, row) => {
                    self.constants.push((leaf, 0));
                    continue;
                }
                _ => Take::Bytes(leaf),
            };
            self.takes.push(take);
        }
        self.ready = true;
    }

    /// Whether a byte array has no bytes while the constants stay what they are.
    fn is_empty(&self, leaf: u8, row: &ContentRow<'_, '_>) -> bool {
        let Some(LeafKind::Variable(program)) = row.leaf(leaf).map(|leaf| &leaf.kind) else { return false };
        let value = |leaf: u8| self.constants.iter().find(|(constant, _)| *constant == leaf).map(|(_, value)| *value);
        let known = program.iter().all(|op| !matches!(*op, ExprOp::Leaf(leaf) if value(leaf).is_none()));
        known && evaluate(program, |leaf| value(leaf).unwrap_or(0)) == Some(0)
    }
}

/// The plan of a leaf that the formula without history tells, and whose value none but its own record looks at.
fn formula(leaf: u8, row: &ContentRow<'_, '_>) -> Option<Plan> {
    let plan = row.state.plan(row.first + usize::from(leaf)).copied()?;
    (row.order == Order::Little && plan.flags & !LAST == 0).then_some(plan)
}

/// Whether a number is the length of the array right behind it, and of nothing else.
fn is_count(number: u8, array: u8, row: &ContentRow<'_, '_>) -> bool {
    let names = |leaf: &Leaf| match &leaf.kind {
        LeafKind::Variable(program) => {
            program.iter().filter(|op| matches!(**op, ExprOp::Leaf(leaf) if leaf == number)).count()
        }
        _ => 0,
    };
    let alone = row.record.leaves.iter().map(names).sum::<usize>() == 1;
    alone
        && number + 1 == array
        && matches!(row.leaf(array).map(|l| &l.kind), Some(LeafKind::Variable(program)) if matches!(**program, [ExprOp::Leaf(leaf)] if leaf == number))
}

/// The value of a leaf that stores nothing and has no history.
fn constant(leaf: u8, row: &mut ContentRow<'_, '_>) -> Option<u64> {
    let plan = *row.state.plan(row.first + usize::from(leaf))?;
    if plan.width != 0 || plan.flags & !LAST != 0 {
        return None;
    }
    let value = plain(0, &plan);
    // A width may look at it, in a record that does not ask for it.
    note(value, &plan, &mut row.state.cells);
    Some(value)
}

/// The next number by the formula without history; none where fewer than eight bytes are left.
#[inline(always)]
fn take_plain(row: &mut ContentRow<'_, '_>, plan: &Plan) -> Option<u64> {
    let eight = row.data.get(row.position..)?.first_chunk()?;
    row.position += usize::from(plan.width);
    Some(plain(u64::from_le_bytes(*eight) & plan.mask, plan))
}

/// Adds the row's record to the columns of its kind, whose recipe is ready; gives what was added, in values and bytes.
#[inline(always)]
pub(super) fn straight(
    records: &mut Records,
    cells: &mut [u64],
    last: &mut [u64],
    row: &mut ContentRow<'_, '_>,
) -> Result<usize, Stopped> {
    let Records { recipe, columns, traits, first, .. } = records;
    let mut size = 1 + recipe.takes.len() + recipe.constants.len();
    for take in &recipe.takes {
        match *take {
            Take::Plain(leaf, ref plan) => {
                let value = match take_plain(row, plan) {
                    Some(value) => value,
                    None => row.number(leaf)?,
                };
                if let Some(column) = columns.get_mut(usize::from(leaf)) {
                    column.push_alone(value);
                }
            }
            Take::Counted(leaf, ref plan) => {
                let at = row.position;
                let length = take_plain(row, plan);
                let bytes =
                    length.and_then(|length| row.data.get(row.position..)?.get(..usize::try_from(length).ok()?));
                let (length, bytes) = match length.zip(bytes) {
                    Some((length, bytes)) => {
                        row.position += bytes.len();
                        (length, bytes)
                    }
                    // At the end of the data, or wrong.
                    None => {
                        row.position = at;
                        (row.number(leaf)?, row.bytes(leaf + 1)?)
                    }
                };
                if let Some([number, array]) = columns.get_mut(usize::from(leaf)..).and_then(<[_]>::first_chunk_mut) {
                    number.push_alone(length);
                    array.push_alone(length);
                    array.bytes.extend_from_slice(bytes);
                }
                size += 1 + bytes.len() / 8;
            }
            Take::Alone(leaf) => {
                let value = row.number(leaf)?;
                if let Some(column) = columns.get_mut(usize::from(leaf)) {
                    column.push_alone(value);
                }
            }
            Take::Number(leaf) => {
                let value = row.number(leaf)?;
                let leaf = usize::from(leaf);
                if let (Some(column), Some(traits)) = (columns.get_mut(leaf), traits.get(leaf)) {
                    number(column, traits, (value, *first + leaf), cells, last);
                }
            }
            Take::Bytes(leaf) => {
                let array = row.bytes(leaf)?;
                let leaf = usize::from(leaf);
                if let (Some(column), Some(traits)) = (columns.get_mut(leaf), traits.get(leaf)) {
                    bytes(column, traits, array);
                }
                size += array.len() / 8;
            }
        }
    }
    recipe.due += 1;
    Ok(size)
}

/// Stops a row with an error, which may be a stand-in for one that is there already.
#[cold]
pub(super) fn stop(row: &mut ContentRow<'_, '_>, error: Error) -> Stopped {
    if row.stopped.is_some() { Stopped(()) } else { row.stop(error) }
}
