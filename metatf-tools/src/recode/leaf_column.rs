//! Columns with the values of a leaf in a block, and sets of columns for the records of one kind.

use metatf::format::{Format, Interpretation, LeafKind, METADATA, SECTION, Step};

/// The values of one leaf in a block.
#[derive(Debug, Default)]
pub(crate) struct LeafColumn {
    /// The number of each occurrence, or the length of a byte array. Empty while all occurrences are `same`.
    values: Vec<u64>,
    /// The common value of all occurrences so far, and the number of occurrences.
    same: (u64, usize),
    /// The previous value at each occurrence, if the leaf shares its previous value.
    pub(crate) previous: Vec<u64>,
    /// The base at each occurrence, if the leaf has a referenced base.
    pub(crate) reference: Vec<u64>,
    /// The number of occurrences up to the end of each record, if the leaf is repeated.
    pub(crate) ends: Vec<u32>,
    /// All bytes, if the leaf is a byte array.
    pub(super) bytes: Vec<u8>,
}

impl LeafColumn {
    /// Returns all numbers.
    pub(crate) fn values(&self) -> Values<'_> {
        if self.same.1 > 0 { Values::Same(self.same.0, self.same.1) } else { Values::Each(&self.values) }
    }

    /// Returns the number of values stored for a repeated leaf.
    pub(super) fn numbers(&self) -> usize {
        self.values.len()
    }

    /// Adds a number.
    #[inline(always)]
    pub(super) fn push(&mut self, value: u64) {
        if self.same.1 > 0 {
            if value == self.same.0 {
                self.same.1 += 1;
                return;
            }
            self.spread();
        }
        self.values.push(value);
    }

    /// Adds a number that may equal all previous numbers. The leaf must occur once per record.
    #[inline(always)]
    pub(super) fn push_alone(&mut self, value: u64) {
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
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        if at < self.same.1 { Some(self.same.0) } else { self.values.get(at).copied() }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.same.1 = 0;
        self.previous.clear();
        self.reference.clear();
        self.ends.clear();
        self.bytes.clear();
    }
}

/// The numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'c> {
    /// A number that is repeated this many times.
    Same(u64, usize),
    /// One number for each occurrence.
    Each(&'c [u64]),
}

impl Values<'_> {
    /// Returns whether there are no numbers.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self, Self::Each(values) if values.is_empty())
    }
}

/// The properties of a leaf required to fill its column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// The index, within the section, of the cell that stores the leaf's previous value.
    pub(crate) cell: u32,
    /// Whether other leaves write the same cell.
    pub(crate) shared: bool,
    /// Whether an earlier leaf of the record writes the same cell.
    pub(crate) behind: bool,
    /// Whether the leaf is in a repetition.
    pub(crate) repeated: bool,
    /// The plan index of the leaf that provides the base in the DTD.
    pub(super) reference: Option<u32>,
}

impl Traits {
    /// Returns whether the leaf occurs once in a record and does not share its previous value.
    #[inline(always)]
    pub(crate) fn alone(&self) -> bool {
        !self.shared && !self.repeated && self.reference.is_none()
    }
}

/// All records of one kind in a block.
#[derive(Debug, Default)]
pub(crate) struct BlockRecords {
    /// The index of each record among the section's records.
    pub(crate) rows: Vec<u32>,
    /// The column of each leaf.
    pub(crate) columns: Vec<LeafColumn>,
    pub(crate) traits: Vec<Traits>,
    /// Index of the first leaf among all leaves of the section.
    pub(super) first: usize,
    pub(super) repeats: bool,
    /// Maximum number of repeated items in a record.
    pub(crate) most_items: usize,
}

/// Returns, for each record type of a section, the index of its first leaf among all leaves of the section.
pub(super) fn firsts(format: &Format, section: usize) -> Vec<usize> {
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

/// Returns the properties of a record's leaves.
pub(super) fn traits(
    format: &Format,
    section: usize,
    record: u16,
    first: usize,
    firsts: &[usize],
    users: &[u32],
) -> Vec<Traits> {
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
    // In a repetition, a leaf may occur before a leaf that the record lists earlier, if the latter occurs only in a
    // later item.
    let alike = |i: usize| {
        all.iter().zip(0..).any(|(t, j)| j != i && t.repeated && numeric(j) && cells.get(i) == Some(&t.cell))
    };
    let taken: Vec<bool> = all.iter().zip(0..).map(|(t, i)| t.repeated && alike(i)).collect();
    for (traits, taken) in all.iter_mut().zip(taken) {
        traits.behind |= taken;
    }
    all
}
