//! The storage layout of the records of one type under the current plans.

use crate::format::{Floor, Record, floor};
use crate::formula::{BYTES, HISTORY, LAST, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED};
use crate::state::State;

/// Maximum length of records decoded in batches, excluding byte arrays with a stored length.
const LONGEST: usize = 1 << 30;

/// The decoding mode of a record type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::reader) enum Mode {
    /// Records are decoded in batches.
    Batched,
    /// Records are decoded one by one. Decoding changes only cells, so it can be repeated after restoring the cells.
    Single,
    /// Records are decoded one by one, and decoding them cannot be repeated.
    #[default]
    General,
}

/// The decoding method of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::reader) enum Take {
    /// Not determined yet.
    #[default]
    Unknown,
    /// A constant number, such as the tag.
    Number(u64),
    /// A stored number, with its offset in the record and its plan.
    Stored(usize, Plan),
    /// The next element of a stream section, by the slot of its cursor.
    Element(u64),
    /// A byte array, with its offset and length.
    Array(usize, usize),
    /// The byte array at the end of the record, with its offset, the offset of the length field before it, and the mask
    /// of that field.
    Rest(usize, usize, u64),
}

/// The length of a record.
#[derive(Clone, Copy, Debug)]
pub(in crate::reader) struct Extent {
    /// Number of bytes in a record, excluding a byte array at its end.
    pub(super) fixed: usize,
    /// Offset of the length of the byte array at the end.
    pub(super) length: usize,
    /// The mask for reading the length, or 0 if there is no such array.
    pub(super) mask: u64,
    /// Nonzero if leaves of the record consume elements of stream sections.
    pub(super) streamed: u64,
}

/// The leaves of a record type.
#[derive(Debug)]
pub(in crate::reader) struct Layout {
    pub(in crate::reader) mode: Mode,
    pub(in crate::reader) takes: Vec<Take>,
    /// Whether any leaf of the record type depends on its previous value.
    pub(in crate::reader) has_history: bool,
    floors: Vec<Floor>,
    /// The tag, or `None` for a catch-all record.
    tag: Option<u32>,
    tag_width: usize,
}

impl Extent {
    pub(super) const NONE: Self = Self { fixed: 0, length: 0, mask: 0, streamed: 0 };
}

impl Take {
    /// Returns the cell of the previous value if it is added to the stored value.
    pub(in crate::reader) fn cell(&self) -> Option<usize> {
        match self {
            Self::Stored(_, plan) if plan.is(HISTORY) => Some(plan.write as usize),
            _ => None,
        }
    }
}

impl Layout {
    pub(super) fn new(record: &Record, tag_width: u8) -> Self {
        let floors: Vec<_> = (0..record.leaves.len()).map(|leaf| floor(record, leaf)).collect();
        let takes = vec![Take::Unknown; floors.len()];
        let tag = (!record.is_catch_all()).then_some(record.tag);
        Self { mode: Mode::General, takes, has_history: false, floors, tag, tag_width: tag_width.into() }
    }

    /// Switches to the current plans, the first of which belongs to the tag. Calls `changed` with every leaf whose
    /// decoding method changes, along with the old and the new method.
    pub(in crate::reader) fn learn(
        &mut self,
        state: &State,
        first: usize,
        changed: impl FnMut(usize, Take, Take),
    ) -> Option<Extent> {
        let plans = first.checked_add(self.floors.len()).and_then(|end| state.encoding.plans.get(first..end));
        let plans = plans.unwrap_or_default();
        let extent = self.extent(state, first, plans, changed);
        self.mode = match extent {
            Some(_) => Mode::Batched,
            None if plans.iter().skip(1).all(|plan| !plan.is(SPECIAL) || plan.is(BYTES)) => Mode::Single,
            None => Mode::General,
        };
        extent
    }

    /// Returns the leaves that are elements of stream sections, with the slots of their cursors.
    pub(super) fn streamed(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.takes.iter().enumerate().filter_map(|(leaf, take)| match take {
            Take::Element(slot) => Some((leaf, *slot)),
            _ => None,
        })
    }

    /// Returns the extent of the records, or `None` if they cannot be decoded in batches.
    fn extent(
        &mut self,
        state: &State,
        first: usize,
        plans: &[Plan],
        mut changed: impl FnMut(usize, Take, Take),
    ) -> Option<Extent> {
        let mut extent = Extent { fixed: self.tag_width, ..Extent::NONE };
        let mut length = plans.first()?;
        self.has_history = false;
        for (leaf, ((&floor, plan), slot)) in self.floors.iter().zip(plans).zip(&mut self.takes).enumerate() {
            let take = match floor {
                _ if leaf == 0 => Take::Number(self.tag?.into()),
                Floor::General => return None,
                Floor::Array(length) => extent.array(usize::try_from(length).ok()?)?,
                Floor::Counted => extent.counted(length)?,
                Floor::Stored | Floor::Predicted | Floor::Fixed(_) => {
                    extent.number(plan, || state.encoding.is_alone(first + leaf))?
                }
            };
            length = plan;
            self.has_history |= take.cell().is_some();
            if *slot != take {
                changed(leaf, std::mem::replace(slot, take), take);
            }
        }
        (extent.fixed <= LONGEST).then_some(extent)
    }
}

impl Extent {
    /// Adds a number. Returns `None` if another leaf refers to its last value, or if another leaf shares a previous
    /// value on which it depends.
    fn number(&mut self, plan: &Plan, is_alone: impl FnOnce() -> bool) -> Option<Take> {
        if plan.flags & !LAST == 0 && plan.mask == 0 {
            return Some(Take::Number(plan.base));
        }
        if plan.flags & !LAST == SPECIAL | STRIDED {
            self.streamed = 1;
            return Some(Take::Element(plan.base));
        }
        let is_own = plan.flags & (HISTORY | PREVIOUS) == 0 || plan.uses_previous() && is_alone();
        if plan.is(SPECIAL | REFERENCED) || !is_own || !self.takes(plan.width.bytes()) {
            return None;
        }
        let take = Take::Stored(self.fixed, *plan);
        self.fixed += plan.width.bytes();
        Some(take)
    }

    fn array(&mut self, length: usize) -> Option<Take> {
        if !self.takes(length) {
            return None;
        }
        let take = Take::Array(self.fixed, length);
        self.fixed += length;
        Some(take)
    }

    /// Adds a byte array whose length is the number directly before it.
    fn counted(&mut self, length: &Plan) -> Option<Take> {
        if length.flags & !LAST != 0 {
            return None;
        }
        if length.mask == 0 {
            return self.array(usize::try_from(length.base).ok().filter(|&length| length <= LONGEST)?);
        }
        if self.mask != 0 || length.sign | length.base != 0 {
            return None;
        }
        (self.length, self.mask) = (self.fixed - length.width.bytes(), length.mask);
        Some(Take::Rest(self.fixed, self.length, self.mask))
    }

    /// Returns whether a leaf of this many bytes can be added. No leaf that stores bytes can follow a byte array of
    /// variable length.
    fn takes(&self, bytes: usize) -> bool {
        bytes == 0 || self.mask == 0
    }
}
