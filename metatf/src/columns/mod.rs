//! Records as columns, with one vector per leaf, filled with up to 4096 records at a time. Code that needs one field of
//! many records finds its values in contiguous memory.
//!
//! `next_columns` fills [`Columns`] from a typed trace, the dynamic reader or a
//! [`RecordReader`](crate::reader::RecordReader). Generated code adds named access, such as `columns.alloc().size`.
//!
//! # Examples
//!
//! The DTD in this example declares the record `reading: (tag, time, vfield)`:
//!
//! ```
//! #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
//! mod readings {}
//! use readings::{Columns, Reading, Trace, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = Writer::new(Vec::new())?;
//! for time in 40..43 {
//!     writer.reading(&Reading { time, vfield: b"x" })?;
//! }
//! let file = writer.finish()?;
//!
//! let (mut trace, mut columns, mut sum) = (Trace::from_slice(&file)?, Columns::default(), 0);
//! while trace.next_columns(&mut columns)? {
//!     sum += columns.reading().time.iter().sum::<u64>();
//! }
//! assert_eq!(sum, 40 + 41 + 42);
//! # Ok(())
//! # }
//! ```

mod column;
mod slots;

pub use column::Arrays;
pub(crate) use column::{ArrayColumn, NumberColumn};
pub(crate) use slots::Slots;

use crate::format::{ExprOp, Floor, Format, LeafKind, METADATA, Record, SECTION, Step, floor};
use crate::record::{Visit, Walk, walk};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of records in [`Columns`].
pub const RECORDS: usize = 4096;

/// Number of values and bytes after which no more records are added. It limits memory use if items repeat or byte
/// arrays are long.
const WEIGHT: usize = 1 << 22;

/// Number of selections of leaves so far.
static SELECTIONS: AtomicU64 = AtomicU64::new(0);

/// The name of a field that no record contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField(String);

impl std::fmt::Display for UnknownField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no record of the format has the field `{}`, which must have the form `record.leaf`", self.0)
    }
}

impl std::error::Error for UnknownField {}

/// Consecutive data records of a trace, stored leaf by leaf.
///
/// # Examples
///
/// Columns for a single leaf, filled without generated record types. The DTD declares the record
/// `reading: (tag, time, vfield)`:
///
/// ```
/// #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
/// mod readings {}
/// use metatf::{columns::Columns, container::Reader};
/// use metatf::reader::{FormatRef, RecordReader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut writer = readings::Writer::new(Vec::new())?;
/// writer.reading(&readings::Reading { time: 40, vfield: b"x" })?;
/// writer.reading(&readings::Reading { time: 42, vfield: b"y" })?;
/// let file = writer.finish()?;
///
/// let mut columns = Columns::of_leaves(&readings::FORMAT, |_, _, leaf| leaf == 1); // Leaf 1 is the time.
/// let mut reader = RecordReader::new(FormatRef::Static(&readings::FORMAT), Reader::from_slice(&file)?)?;
/// assert!(reader.next_columns(&mut columns)?);
/// let records = columns.records().next().ok_or("no records")?;
/// assert_eq!(records.numbers(1), [40, 42]);
/// assert!(records.arrays(3).is_empty()); // The bytes of `vfield` were not requested.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Fingerprint of the records' format.
    fingerprint: Option<u64>,
    first: u64,
    order: Sequence,
    /// The columns of each record type, by section and by the record's position in the section.
    records: Vec<RecordColumns>,
    /// For each section, the index of its first record type in `records`.
    sections: Vec<usize>,
    /// Number of values and bytes stored.
    weight: usize,
    /// The number of the selection of leaves, which differs from that of all other selections, or 0 for all leaves.
    selection: u64,
}

/// For each record, the index of its columns in `Columns::records`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// The indices, at least `len` of them.
    slots: Vec<u32>,
    len: usize,
}

/// The columns for the leaves of one record type in one section.
#[derive(Clone, Debug, Default)]
pub struct RecordColumns {
    section: usize,
    record: u16,
    /// Index of the plan of the record's first leaf, among the plans of the section.
    plan: usize,
    count: usize,
    /// Whether the layout contains repetitions.
    repeats: bool,
    /// Whether records of this type have ever been added to these columns.
    came: bool,
    leaves: Vec<Column>,
    /// The lengths of the columns before the last record was added, if leaves repeat. They are restored if the record
    /// cannot be read completely.
    marks: Vec<usize>,
}

/// The values of a leaf.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Numbers(NumberColumn),
    Arrays(ArrayColumn),
    /// Values that are not stored, because the leaf is a tag, a length directly before its byte array, or a leaf that
    /// was not requested.
    Empty,
}

impl Columns {
    /// Creates columns for the records of this format.
    #[must_use]
    pub fn of(format: &Format) -> Self {
        let mut columns = Self::default();
        columns.begin(format, 0);
        columns
    }

    /// Creates columns for those leaves of the format for which `wanted` returns true. Its arguments are the indices of
    /// a section and a record in the format, and of the leaf in the record. The columns of other leaves stay empty, and
    /// these leaves are decoded only if later values depend on them. Filling the columns from a trace of another format
    /// resets the selection to all leaves.
    #[must_use]
    pub fn of_leaves(format: &Format, wanted: impl Fn(usize, u16, u8) -> bool) -> Self {
        let mut columns = Self::of(format);
        columns.selection = SELECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
        for records in &mut columns.records {
            for (index, leaf) in (0..).zip(&mut records.leaves) {
                if !wanted(records.section, records.record, index) {
                    *leaf = Column::Empty;
                }
            }
        }
        columns
    }

    /// Creates columns like [`of_leaves`](Self::of_leaves) for fields given by name. Each name consists of the names of a
    /// record and a leaf, such as `access.took_us`, and selects the leaf in every section that contains the record.
    ///
    /// # Errors
    /// Returns the first name that does not exist.
    pub fn of_fields(format: &Format, names: &[&str]) -> Result<Self, UnknownField> {
        let is = |name: &str, record: u16, leaf: u8| {
            let record = format.records.get(usize::from(record));
            record.zip(name.split_once('.')).is_some_and(|(record, (of, path))| {
                record.name == of && record.leaves.get(usize::from(leaf)).is_some_and(|leaf| leaf.path == path)
            })
        };
        let exists = |name: &&&str| {
            let records = (METADATA + 1..).zip(format.records.iter().skip(usize::from(METADATA) + 1));
            records.into_iter().any(|(record, r)| (0..=u8::MAX).zip(&*r.leaves).any(|(leaf, _)| is(name, record, leaf)))
        };
        if let Some(unknown) = names.iter().find(|name| !exists(name)) {
            return Err(UnknownField((*unknown).to_owned()));
        }
        Ok(Self::of_leaves(format, |_, record, leaf| names.iter().any(|name| is(name, record, leaf))))
    }

    /// Returns the number of records of all types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.len == 0
    }

    /// Returns the number of data records that the trace's reader read before these records.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the section and record index of each record, in trace order.
    pub fn order(&self) -> impl ExactSizeIterator<Item = (usize, u16)> + '_ {
        let of = |&slot: &u32| self.records.get(slot as usize).map_or((0, 0), |r| (r.section, r.record));
        self.order.slots().iter().map(of)
    }

    /// Returns the records of one type in one section, both given by their index in the format.
    #[must_use]
    pub fn record(&self, section: usize, record: u16) -> Option<&RecordColumns> {
        let first = *self.sections.get(section)?;
        self.records.get(first..)?.iter().take_while(|r| r.section == section).find(|r| r.record == record)
    }

    /// Returns the same as [`record`](Self::record) for generated code, or `None` if these columns belong to another
    /// format.
    #[doc(hidden)]
    #[must_use]
    pub fn record_of(&self, format: &Format, (section, record): (usize, u16)) -> Option<&RecordColumns> {
        self.record(section, record).filter(|_| self.fingerprint == Some(format.fingerprint))
    }

    /// Returns the columns of the record types that occur.
    pub fn records(&self) -> impl Iterator<Item = &RecordColumns> {
        self.records.iter().filter(|r| r.count > 0)
    }

    /// Sets the number of the first record.
    pub(crate) fn set_first(&mut self, first: u64) {
        self.first = first;
    }

    /// Starts over for records of this format, reusing memory.
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

    /// Returns whether some leaves were not requested.
    pub(crate) fn is_partial(&self) -> bool {
        self.selection != 0
    }

    /// Returns the number of the selection of leaves.
    pub(crate) fn selection(&self) -> u64 {
        self.selection
    }

    /// Returns whether the values of a leaf are stored, given the position of its record in the section.
    pub(crate) fn wants(&self, section: usize, position: u16, leaf: u8) -> bool {
        let first = self.sections.get(section).copied().unwrap_or(usize::MAX);
        self.records.get(first.saturating_add(position.into())).is_some_and(|records| records.wants(leaf))
    }

    /// Returns the number of records that can still be added.
    pub(crate) fn room(&self) -> usize {
        if self.weight < WEIGHT { RECORDS.saturating_sub(self.order.len) } else { 0 }
    }

    /// Returns the start of a section's columns, along with the columns of all sections.
    pub(crate) fn split(&mut self, section: usize) -> (usize, &mut [RecordColumns], &mut Sequence, &mut usize) {
        let first = self.sections.get(section).copied().unwrap_or(0);
        (first, &mut self.records, &mut self.order, &mut self.weight)
    }

    /// Adds the record that a row reads. The position of its type in the section is given.
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

    pub(crate) fn push(&mut self, slot: u32) {
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

    /// Returns cells for the maximum number of records. The first cells contain the slots of the existing records.
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
            Some(LeafKind::Number { .. } | LeafKind::AnyTag | LeafKind::Computed(_) | LeafKind::Scanned(_)) => {
                Column::Numbers(NumberColumn::new(fixed(leaf)))
            }
            Some(LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_) | LeafKind::Rest) => {
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

    /// Returns the section's index in the format.
    #[must_use]
    pub fn section(&self) -> usize {
        self.section
    }

    /// Returns the record's index in the format.
    #[must_use]
    pub fn record(&self) -> u16 {
        self.record
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the values of a numeric leaf, one per record. The values of a repeated leaf are concatenated, and the
    /// column of its count contains the number of values in each record. The result is empty for a tag, a byte array,
    /// the length directly before a byte array, and a leaf that is [not wanted](Columns::of_leaves).
    #[must_use]
    pub fn numbers(&self, leaf: u8) -> &[u64] {
        match self.leaves.get(usize::from(leaf)) {
            Some(Column::Numbers(column)) => column.values(),
            _ => &[],
        }
    }

    /// Returns the same as [`numbers`](Self::numbers), reinterpreted in two's complement (format `signed`).
    #[must_use]
    pub fn signed(&self, leaf: u8) -> &[i64] {
        bytemuck::cast_slice(self.numbers(leaf))
    }

    /// Returns the same as [`numbers`](Self::numbers), reinterpreted as the bits of floating-point numbers (format
    /// `f64`).
    #[must_use]
    pub fn floats(&self, leaf: u8) -> &[f64] {
        bytemuck::cast_slice(self.numbers(leaf))
    }

    /// Returns the byte arrays of a leaf, arranged like the values of [`numbers`](Self::numbers). The result is empty
    /// for a numeric leaf.
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

    /// Returns whether the values of a leaf are stored.
    pub(crate) fn wants(&self, leaf: u8) -> bool {
        self.leaves.get(usize::from(leaf)).is_some_and(|leaf| !matches!(leaf, Column::Empty))
    }

    pub(crate) fn leaf(&mut self, leaf: usize) -> Option<&mut Column> {
        self.leaves.get_mut(leaf)
    }

    /// Increases the number of records, whose leaves must have been added to the columns.
    pub(crate) fn add(&mut self, records: usize) {
        self.count += records;
        self.came = true;
    }

    /// Adds one record and returns its weight. If a record cannot be read completely, none of it is kept.
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

/// Returns whether the leaf is the length of a byte array that directly follows it.
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

/// Columns that receive the values of a record.
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
