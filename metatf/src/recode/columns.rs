//! Records held as columns, a leaf's values one after the other: what planners look at, and what is encoded again.

use crate::dynamic::{Datum, Tape};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, Interpretation, LeafKind, METADATA, SECTION, Step};
use crate::row::Row;
use crate::row_write::{Put, RowWriter};

/// The values of one leaf in a block.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// A number for each occurrence; none where they are all `same`.
    values: Vec<u64>,
    /// The number that all occurrences were so far, and how many they are.
    same: (u64, usize),
    /// For a leaf that shares its previous value: that value at each occurrence.
    pub(crate) previous: Vec<u64>,
    /// For a leaf with a referenced base: the base at each occurrence.
    pub(crate) reference: Vec<u64>,
    /// For a repeated leaf: number of occurrences up to the end of each record.
    pub(crate) ends: Vec<u32>,
    /// Of a byte array: all bytes, and the length of each.
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Column {
    /// All numbers.
    pub(crate) fn values(&self) -> Values<'_> {
        if self.same.1 > 0 { Values::Same(self.same.0, self.same.1) } else { Values::Each(&self.values) }
    }

    /// Adds a number.
    #[inline(always)]
    fn push(&mut self, value: u64) {
        if self.same.1 > 0 {
            if value == self.same.0 {
                self.same.1 += 1;
                return;
            }
            self.spread();
        }
        self.values.push(value);
    }

    /// Adds a number to a column of which numbers may come again and again: one of a record that has one of them.
    #[inline(always)]
    fn push_alone(&mut self, value: u64) {
        if self.values.is_empty() && self.same.1 == 0 {
            self.same = (value, 1);
        } else {
            self.push(value);
        }
    }

    #[cold]
    fn spread(&mut self) {
        self.values.resize(self.same.1, self.same.0);
        self.same.1 = 0;
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Option<u64> {
        if at < self.same.1 { Some(self.same.0) } else { self.values.get(at).copied() }
    }

    fn clear(&mut self) {
        self.values.clear();
        self.same.1 = 0;
        self.previous.clear();
        self.reference.clear();
        self.ends.clear();
        self.bytes.clear();
        self.lengths.clear();
    }
}

/// The numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'c> {
    /// One number, so many times.
    Same(u64, usize),
    /// Each.
    Each(&'c [u64]),
}

impl Values<'_> {
    /// There are none.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self, Self::Each(values) if values.is_empty())
    }
}

/// What is to be known of a leaf to fill its column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// Its cell in the section.
    pub(crate) cell: u32,
    /// Other leaves write the same cell.
    pub(crate) shared: bool,
    /// A leaf before it in its record writes the same cell.
    pub(crate) behind: bool,
    /// It stands in a repetition.
    pub(crate) repeated: bool,
    /// The plan index of the leaf its DTD takes the base from.
    reference: Option<u32>,
}

impl Traits {
    /// It has its previous value to itself, and one occurrence in a record.
    #[inline(always)]
    pub(crate) fn alone(&self) -> bool {
        !self.shared && !self.repeated && self.reference.is_none()
    }
}

/// All records of one kind in a block.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Which of the section's records each is.
    pub(crate) rows: Vec<u32>,
    /// By leaf.
    pub(crate) columns: Vec<Column>,
    pub(crate) traits: Vec<Traits>,
    /// Index of the first leaf among all of the section.
    first: usize,
    repeats: bool,
    /// Repeated items of the record that has most of them.
    pub(crate) most_items: usize,
}

/// The records of one section in a block.
#[derive(Debug)]
pub(crate) struct SectionColumns {
    section: usize,
    /// Kinds of records, as the section lists them.
    pub(crate) kinds: Vec<Records>,
    /// Of each record, its kind.
    pub(crate) order: Vec<u16>,
    /// Previous values, by cell, and last values, by leaf, behind the records held.
    cells: Vec<u64>,
    last: Vec<u64>,
    /// Cells at the start of the block.
    pub(crate) start_cells: Vec<u64>,
    /// What is held, in values and bytes.
    pub(crate) size: usize,
}

impl SectionColumns {
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut kinds = Vec::new();
        let mut leaves = 0;
        if let Some(s) = format.sections.get(section) {
            let firsts = firsts(format, section);
            let mut users = vec![0_u32; s.initials.len()];
            for &cell in s.cells.iter() {
                if let Some(n) = users.get_mut(cell as usize) {
                    *n += 1;
                }
            }
            for &record in s.records.iter() {
                let Some(r) = format.records.get(usize::from(record)) else { continue };
                let mut kind = Records { first: leaves, ..Records::default() };
                if record != SECTION && record != METADATA {
                    kind.columns.resize_with(r.leaves.len(), Column::default);
                    kind.traits = traits(format, section, record, leaves, &firsts, &users);
                    kind.repeats = kind.traits.iter().any(|t| t.repeated);
                    leaves += r.leaves.len();
                }
                kinds.push(kind);
            }
        }
        let mut columns = Self {
            section,
            kinds,
            order: Vec::new(),
            cells: Vec::new(),
            last: vec![0; leaves],
            start_cells: Vec::new(),
            size: 0,
        };
        columns.reset(format);
        columns
    }

    /// Nothing is held, and state is as the DTD says.
    pub(crate) fn reset(&mut self, format: &Format) {
        if let Some(s) = format.sections.get(self.section) {
            self.cells.clear();
            self.cells.extend_from_slice(&s.initials);
        }
        self.last.fill(0);
        self.clear();
    }

    /// Nothing is held, and state goes on.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.size = 0;
        self.start_cells.clone_from(&self.cells);
        for kind in &mut self.kinds {
            kind.rows.clear();
            kind.most_items = 0;
            for column in &mut kind.columns {
                column.clear();
            }
        }
    }

    /// Adds a record, the `kind`th of the section's.
    pub(crate) fn push<'r>(&mut self, format: &Format, kind: usize, row: &mut impl Row<'r>) -> Result<()> {
        let record = format.sections.get(self.section).and_then(|s| s.records.get(kind));
        let record = record.and_then(|&r| format.records.get(usize::from(r)));
        let (Some(record), Some(records)) = (record, self.kinds.get_mut(kind)) else {
            return Err(Error::at(0, ErrorKind::Usage("the section has no such record")));
        };
        let number = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        let mut fill = Fill { records, cells: &mut self.cells, last: &mut self.last, size: 0, items: 0 };
        let steps = record.steps.get(1..).unwrap_or_default();
        fill.steps(steps, 1, row)?;
        self.size += fill.size + 1;
        let items = fill.items;
        records.most_items = records.most_items.max(items);
        records.rows.push(number);
        if records.repeats {
            for (column, traits) in records.columns.iter_mut().zip(&records.traits).filter(|(_, t)| t.repeated) {
                debug_assert!(traits.repeated);
                column.ends.push(u32::try_from(column.values.len()).unwrap_or(u32::MAX));
            }
        }
        self.order.push(u16::try_from(kind).unwrap_or(u16::MAX));
        Ok(())
    }

    /// Readers of the records held, from the first.
    pub(crate) fn players(&self) -> Vec<Player> {
        let player = |records: &Records| {
            let arrays = records.columns.iter().any(|c| !c.lengths.is_empty());
            let cursors = vec![(0, 0); if records.repeats || arrays { records.columns.len() } else { 0 }];
            Player { at: 0, next: cursors.clone(), cursors }
        };
        self.kinds.iter().map(player).collect()
    }
}

/// Index of the first leaf of each of a section's records among all its leaves.
fn firsts(format: &Format, section: usize) -> Vec<usize> {
    let records = format.sections.get(section).map_or(&[][..], |s| &s.records);
    let mut sum = 0;
    let mut first = |&record: &u16| {
        let first = sum;
        if record != SECTION && record != METADATA {
            sum += format.records.get(usize::from(record)).map_or(0, |r| r.leaves.len());
        }
        first
    };
    records.iter().map(&mut first).collect()
}

fn traits(format: &Format, section: usize, record: u16, first: usize, firsts: &[usize], users: &[u32]) -> Vec<Traits> {
    let (Some(s), Some(r)) = (format.sections.get(section), format.records.get(usize::from(record))) else {
        return Vec::new();
    };
    let cells = s.cells.get(first..first + r.leaves.len()).unwrap_or_default();
    let numeric = |i: usize| matches!(r.leaves.get(i).map(|l| &l.kind), Some(LeafKind::Number { .. }));
    let mut all = Vec::new();
    for (i, leaf) in r.leaves.iter().enumerate() {
        let cell = cells.get(i).copied().unwrap_or(0);
        let reference = match leaf.kind {
            LeafKind::Number { interpretation: Interpretation::BaseOffsetOf(record, leaf), .. } => {
                let position = s.records.iter().position(|&r| r == record);
                let first = position.and_then(|p| firsts.get(p));
                first.and_then(|first| u32::try_from(first + usize::from(leaf)).ok())
            }
            _ => None,
        };
        all.push(Traits {
            cell,
            shared: users.get(cell as usize).is_some_and(|&n| n > 1),
            behind: (0..i).any(|j| numeric(j) && cells.get(j) == Some(&cell)),
            repeated: false,
            reference,
        });
    }
    let mut end_of_repeat = 0;
    for (i, step) in r.steps.iter().enumerate() {
        match *step {
            Step::Repeat { end, .. } => end_of_repeat = end_of_repeat.max(usize::from(end)),
            Step::Number(leaf) | Step::Bytes(leaf) => {
                if let Some(traits) = all.get_mut(usize::from(leaf)) {
                    traits.repeated = i < end_of_repeat;
                }
            }
        }
    }
    // In one item a leaf may occur before one that is listed first, as that one may occur in a later item alone.
    let alike = |i: usize| {
        all.iter().zip(0..).any(|(t, j)| j != i && t.repeated && numeric(j) && cells.get(i) == Some(&t.cell))
    };
    let taken: Vec<bool> = all.iter().zip(0..).map(|(t, i)| t.repeated && alike(i)).collect();
    for (traits, taken) in all.iter_mut().zip(taken) {
        traits.behind |= taken;
    }
    all
}

/// Adds one record to its columns.
struct Fill<'f> {
    records: &'f mut Records,
    cells: &'f mut [u64],
    last: &'f mut [u64],
    size: usize,
    items: usize,
}

impl Fill<'_> {
    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn steps<'r>(&mut self, steps: &[Step], offset: usize, row: &mut impl Row<'r>) -> Result<()> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => {
                    let value = row.number(leaf).map_err(Into::into)?;
                    self.number(usize::from(leaf), value);
                }
                Step::Bytes(leaf) => {
                    let bytes = row.bytes(leaf).map_err(Into::into)?;
                    self.bytes(usize::from(leaf), bytes);
                }
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    let count = self.last.get(self.records.first + usize::from(count)).copied().unwrap_or(0);
                    for _ in 0..row.items(count).map_err(Into::into)? {
                        self.steps(body, offset + at, row)?;
                    }
                    at = end;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self, leaf: usize, value: u64) {
        let (Some(column), Some(traits)) = (self.records.columns.get_mut(leaf), self.records.traits.get(leaf)) else {
            return;
        };
        if traits.alone() {
            column.push_alone(value);
        } else {
            column.push(value);
        }
        if traits.shared {
            column.previous.push(self.cells.get(traits.cell as usize).copied().unwrap_or(0));
        }
        if let Some(reference) = traits.reference {
            column.reference.push(self.last.get(reference as usize).copied().unwrap_or(0));
        }
        if let Some(cell) = self.cells.get_mut(traits.cell as usize) {
            *cell = value;
        }
        if let Some(last) = self.last.get_mut(self.records.first + leaf) {
            *last = value;
        }
        self.size += 1;
    }

    fn bytes(&mut self, leaf: usize, bytes: &[u8]) {
        if let Some(column) = self.records.columns.get_mut(leaf) {
            column.bytes.extend_from_slice(bytes);
            // A record has at most 64 MiB.
            column.lengths.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        self.size += 1 + bytes.len() / 8;
    }
}

/// Gives the records of one kind again, one after the other.
#[derive(Debug)]
pub(crate) struct Player {
    at: usize,
    /// Next value (or length) and next byte of each leaf; none where the record's number says it all.
    cursors: Vec<(usize, usize)>,
    /// The cursors behind the record in progress.
    next: Vec<(usize, usize)>,
}

impl Player {
    /// Encodes the next record; [`advance`](Self::advance) moves on, as a writer may ask twice.
    pub(crate) fn play(&mut self, records: &Records, row: &mut RowWriter<'_>) -> Result<()> {
        let steps = row.record.steps.get(1..).unwrap_or_default();
        if !self.cursors.is_empty() {
            self.next.copy_from_slice(&self.cursors);
            return play_steps(records, row, steps, 1, &mut self.next);
        }
        for step in steps {
            if let Step::Number(leaf) = *step {
                let value = records.columns.get(usize::from(leaf)).and_then(|c| c.get(self.at));
                row.number(leaf, value.ok_or(missing())?)?;
            }
        }
        Ok(())
    }

    /// The record is written.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
        std::mem::swap(&mut self.cursors, &mut self.next);
    }
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
                let length = *column.lengths.get(cursor.0).ok_or(missing())? as usize;
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

/// Gives the values of a tape as a row.
pub(crate) struct TapeRow<'t> {
    tape: &'t Tape,
    next: usize,
}

impl<'t> TapeRow<'t> {
    pub(crate) fn new(tape: &'t Tape) -> Self {
        Self { tape, next: 0 }
    }

    fn take(&mut self) -> Result<&'t Datum> {
        let datum = self.tape.data().get(self.next);
        self.next += 1;
        datum.ok_or(Error::at(0, ErrorKind::Usage("the tape does not hold the record's values")))
    }
}

impl<'t> Row<'t> for TapeRow<'t> {
    type Error = Error;

    fn stop(&mut self, error: Error) -> Error {
        error
    }

    fn number(&mut self, _: u8) -> Result<u64> {
        match self.take()? {
            Datum::Number(value) => Ok(*value),
            Datum::Bytes(_) => {
                Err(Error::at(0, ErrorKind::Usage("the tape holds bytes where the record has a number")))
            }
        }
    }

    fn bytes(&mut self, _: u8) -> Result<&'t [u8]> {
        match self.take()? {
            datum @ Datum::Bytes(_) => Ok(self.tape.bytes(datum)),
            Datum::Number(_) => {
                Err(Error::at(0, ErrorKind::Usage("the tape holds a number where the record has bytes")))
            }
        }
    }

    fn items(&mut self, count: u64) -> Result<usize> {
        // As many as the tape holds at most, an item without leaves apart.
        let most = self.tape.data().len() as u64 + crate::row::FREE_ITEMS;
        usize::try_from(count.min(most)).map_err(|_| missing())
    }
}
