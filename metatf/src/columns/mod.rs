//! Records in columns: a vector for each leaf, filled some thousand records at a time. What looks at one field of many
//! records finds its values side by side.
//!
//! [`Columns`] is filled by `next_columns` of a typed trace, of the universal reader and of
//! [`RecordReader`](crate::reader::RecordReader). Generated code puts names to it: `columns.alloc().size`.

mod column;
mod slots;

pub use column::Arrays;
pub(crate) use column::{ArrayColumn, NumberColumn};
pub(crate) use slots::Slots;

use crate::format::{ExprOp, Floor, Format, LeafKind, METADATA, Record, SECTION, Step, floor};
use crate::record::{Visit, Walk, walk};
use std::cell::Cell;

/// How many records [`Columns`] takes at most.
pub const RECORDS: usize = 4096;

/// After this many values and bytes it takes no more records: memory is bounded where items repeat, and byte arrays are long.
const WEIGHT: usize = 1 << 22;

/// Data records that stand one after the other in a trace, leaf by leaf.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Of the format that its records are of.
    fingerprint: Option<u64>,
    first: u64,
    order: Sequence,
    /// By section, by position.
    records: Vec<RecordColumns>,
    /// By section: where its records begin in `records`.
    sections: Vec<usize>,
    /// Values and bytes that it holds.
    weight: usize,
}

/// For each record: where its columns are in those of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// At least `len`.
    slots: Vec<u32>,
    len: usize,
}

/// The leaves of the records of one type in one section.
#[derive(Clone, Debug, Default)]
pub struct RecordColumns {
    section: usize,
    record: u16,
    /// Index of its first plan in the section.
    plan: usize,
    count: usize,
    /// The layout has repetitions.
    repeats: bool,
    /// There are some, or were.
    came: bool,
    leaves: Vec<Column>,
    /// What the leaves had before the last record, where they repeat.
    marks: Vec<usize>,
}

/// The values of a leaf.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Numbers(NumberColumn),
    Arrays(ArrayColumn),
    /// A tag, or the length right before its byte array: said already. Or a leaf that is not wanted.
    Empty,
}

impl Columns {
    /// Columns for the records of this format.
    #[must_use]
    pub fn of(format: &Format) -> Self {
        let mut columns = Self::default();
        columns.begin(format, 0);
        columns
    }

    /// Columns for some leaves of the records of this format: those that are `wanted`, by the indices of a section and a record in the
    /// format and of the leaf in the record. Others stay empty, and are decoded only where what follows depends on them. Filled from a trace
    /// of another format, they are for all leaves again.
    #[must_use]
    pub fn of_leaves(format: &Format, wanted: impl Fn(usize, u16, u8) -> bool) -> Self {
        let mut columns = Self::of(format);
        for records in &mut columns.records {
            for (index, leaf) in (0..).zip(&mut records.leaves) {
                if !wanted(records.section, records.record, index) {
                    *leaf = Column::Empty;
                }
            }
        }
        columns
    }

    /// How many records there are, of all types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.len == 0
    }

    /// How many data records stand before these in what the trace's reader has read.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// For each record, in the order of the trace: its section and itself, as indices of the format.
    pub fn order(&self) -> impl ExactSizeIterator<Item = (usize, u16)> + '_ {
        let of = |&slot: &u32| self.records.get(slot as usize).map_or((0, 0), |r| (r.section, r.record));
        self.order.slots().iter().map(of)
    }

    /// The records of one type in one section, by the indices of both in the format.
    #[must_use]
    pub fn record(&self, section: usize, record: u16) -> Option<&RecordColumns> {
        let first = *self.sections.get(section)?;
        self.records.get(first..)?.iter().take_while(|r| r.section == section).find(|r| r.record == record)
    }

    /// As [`record`](Self::record), for generated code; none where these are the columns of another format.
    #[doc(hidden)]
    #[must_use]
    pub fn record_of(&self, format: &Format, section: usize, record: u16) -> Option<&RecordColumns> {
        self.record(section, record).filter(|_| self.fingerprint == Some(format.fingerprint))
    }

    /// The types of records of which there are some.
    pub fn records(&self) -> impl Iterator<Item = &RecordColumns> {
        self.records.iter().filter(|r| r.count > 0)
    }

    /// Starts over, for records of this format. Memory is used again.
    pub(crate) fn begin(&mut self, format: &Format, first: u64) {
        if self.fingerprint != Some(format.fingerprint) {
            *self = Self { fingerprint: Some(format.fingerprint), ..Self::default() };
            for (index, section) in format.sections.iter().enumerate() {
                self.sections.push(self.records.len());
                let mut plan = 0;
                for &record in section.records.iter() {
                    self.records.push(RecordColumns { plan, ..RecordColumns::new(format, index, record) });
                    let leaves = format.records.get(usize::from(record)).map_or(0, |record| record.leaves.len());
                    plan += if record == SECTION || record == METADATA { 0 } else { leaves };
                }
            }
        }
        self.first = first;
        self.weight = 0;
        self.order.len = 0;
        self.records.iter_mut().filter(|r| r.count > 0).for_each(RecordColumns::clear);
    }

    /// How many more records there is room for.
    pub(crate) fn room(&self) -> usize {
        if self.weight < WEIGHT { RECORDS.saturating_sub(self.order.len) } else { 0 }
    }

    /// Where the columns of a section's records begin, and those of all sections.
    pub(crate) fn split(&mut self, section: usize) -> (usize, &mut [RecordColumns], &mut Sequence, &mut usize) {
        let first = self.sections.get(section).copied().unwrap_or(0);
        (first, &mut self.records, &mut self.order, &mut self.weight)
    }

    /// Adds a record, given by the position of its type in its section.
    pub(crate) fn push<'a, R: Walk<'a>>(
        &mut self,
        format: &Format,
        section: usize,
        position: usize,
        row: &mut R,
    ) -> Result<(), R::Error> {
        let slot = self.sections.get(section).map_or(usize::MAX, |first| first + position);
        let Some(columns) = self.records.get_mut(slot) else { return Ok(()) };
        let Some(record) = format.records.get(usize::from(columns.record)) else { return Ok(()) };
        self.weight += columns.push(record, row)?;
        self.order.push(u32::try_from(slot).unwrap_or(u32::MAX));
        Ok(())
    }
}

impl Sequence {
    fn slots(&self) -> &[u32] {
        self.slots.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, slot: u32) {
        match self.slots.get_mut(self.len) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        self.len += 1;
    }

    pub(crate) fn extend(&mut self, slots: impl Iterator<Item = u32>) {
        self.slots.truncate(self.len);
        self.slots.extend(slots);
        self.len = self.slots.len();
    }

    /// Places for as many as there may be, those that are there among them.
    fn cells(&mut self) -> Option<&[Cell<u32>; RECORDS]> {
        if self.slots.len() < RECORDS {
            self.slots.resize(RECORDS, 0);
        }
        Cell::from_mut(&mut *self.slots).as_slice_of_cells().first_chunk()
    }
}

impl RecordColumns {
    fn new(format: &Format, section: usize, index: u16) -> Self {
        let record = format.records.get(usize::from(index)).filter(|_| index > METADATA);
        let leaves = record.map_or(&[][..], |record| &record.leaves);
        let fixed = |leaf| match record.map(|record| floor(record, leaf)) {
            Some(Floor::Fixed(value)) => Some(value),
            _ => None,
        };
        let column = |leaf: usize| match leaves.get(leaf).map(|leaf| &leaf.kind) {
            Some(LeafKind::Number { .. }) if record.is_some_and(|record| is_length(record, leaf)) => Column::Empty,
            Some(LeafKind::Number { .. } | LeafKind::AnyTag | LeafKind::Computed(_)) => {
                Column::Numbers(NumberColumn::new(fixed(leaf)))
            }
            Some(LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_)) => {
                Column::Arrays(ArrayColumn::default())
            }
            _ => Column::Empty,
        };
        Self {
            section,
            record: index,
            repeats: record.is_some_and(|r| r.steps.iter().any(|step| matches!(step, Step::Repeat { .. }))),
            leaves: (0..leaves.len()).map(column).collect(),
            ..Self::default()
        }
    }

    /// Index of the section in the format.
    #[must_use]
    pub fn section(&self) -> usize {
        self.section
    }

    /// Index of the record in the format.
    #[must_use]
    pub fn record(&self) -> u16 {
        self.record
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values of a numeric leaf: one a record, or those of a repeated leaf one after the other, of which the leaf that
    /// counts them says how many belong to each record. None for a tag, a byte array, the length right before one, and a leaf that is
    /// [not wanted](Columns::of_leaves).
    #[must_use]
    pub fn numbers(&self, leaf: u8) -> &[u64] {
        match self.leaves.get(usize::from(leaf)) {
            Some(Column::Numbers(column)) => column.values(),
            _ => &[],
        }
    }

    /// As [`numbers`](Self::numbers), in two's complement (format `signed`).
    #[must_use]
    pub fn signed(&self, leaf: u8) -> &[i64] {
        bytemuck::cast_slice(self.numbers(leaf))
    }

    /// As [`numbers`](Self::numbers), as bits of floating-point numbers (format `f64`).
    #[must_use]
    pub fn floats(&self, leaf: u8) -> &[f64] {
        bytemuck::cast_slice(self.numbers(leaf))
    }

    /// The byte arrays of a leaf, as many as [`numbers`](Self::numbers) would be. None for a numeric leaf.
    #[must_use]
    pub fn arrays(&self, leaf: u8) -> Arrays<'_> {
        match self.leaves.get(usize::from(leaf)) {
            Some(Column::Arrays(column)) => column.arrays(),
            _ => Arrays::default(),
        }
    }

    fn clear(&mut self) {
        self.count = 0;
        for leaf in &mut self.leaves {
            match leaf {
                Column::Numbers(column) => column.clear(),
                Column::Arrays(column) => column.clear(),
                Column::Empty => {}
            }
        }
    }

    pub(crate) fn leaf(&mut self, leaf: usize) -> Option<&mut Column> {
        self.leaves.get_mut(leaf)
    }

    /// There are this many records more, whose leaves were added to each column.
    pub(crate) fn add(&mut self, records: usize) {
        self.count += records;
        self.came = true;
    }

    /// Adds one record. Gives its weight. Of a record that cannot be read to its end nothing is kept.
    fn push<'a, R: Walk<'a>>(&mut self, record: &Record, row: &mut R) -> Result<usize, R::Error> {
        if self.repeats {
            self.marks.clear();
            self.marks.extend(self.leaves.iter().map(Column::len));
        }
        let mut filling = RowOfColumns { leaves: &mut self.leaves, weight: 0 };
        let walked = walk(row, record, record.first_value(), &mut filling).and_then(|()| row.end());
        let weight = filling.weight;
        match walked {
            Ok(()) => {
                self.add(1);
                Ok(weight)
            }
            Err(error) => {
                for (index, leaf) in self.leaves.iter_mut().enumerate() {
                    leaf.truncate(if self.repeats { self.marks.get(index).copied().unwrap_or(0) } else { self.count });
                }
                Err(error)
            }
        }
    }
}

/// Whether a byte array, right behind this leaf, is as long as it says.
fn is_length(record: &Record, leaf: usize) -> bool {
    let behind = |pair: &[Step]| match *pair {
        [Step::Number(length), Step::Bytes(array)] => usize::from(length) == leaf && usize::from(array) == leaf + 1,
        _ => false,
    };
    match record.leaves.get(leaf + 1).map(|next| &next.kind) {
        Some(LeafKind::Variable(program)) => {
            matches!(**program, [ExprOp::Leaf(length)] if usize::from(length) == leaf)
                && record.steps.windows(2).any(behind)
        }
        _ => false,
    }
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(column) => column.values().len(),
            Self::Arrays(column) => column.arrays().len(),
            Self::Empty => 0,
        }
    }

    fn truncate(&mut self, len: usize) {
        match self {
            Self::Numbers(column) => column.truncate(len),
            Self::Arrays(column) => column.truncate(len),
            Self::Empty => {}
        }
    }
}

/// Columns that take the values of a record.
struct RowOfColumns<'c> {
    leaves: &'c mut [Column],
    weight: usize,
}

impl Visit<'_> for RowOfColumns<'_> {
    #[inline]
    fn number(&mut self, leaf: u8, value: u64) {
        if let Some(Column::Numbers(column)) = self.leaves.get_mut(usize::from(leaf)) {
            column.push(value);
            self.weight += 1;
        }
    }

    #[inline]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) {
        if let Some(Column::Arrays(column)) = self.leaves.get_mut(usize::from(leaf)) {
            column.push(bytes);
            self.weight += bytes.len() + 1;
        }
    }
}
