//! The state of a section (spec 4). It consists of the encoding, which is a *plan* for every leaf, and the history,
//! which consists of the cells with previous and last values. A plan contains the few numbers with which a single
//! formula decodes any inline interpretation:
//!
//! ```text
//! raw   = stored bytes & mask
//! value = ((raw ^ sign) - sign) + base + (cells[read] & history)      all wrapping
//! ```

mod change;
mod encoding;
mod liveness;
mod metadata;
mod specialized;
mod tier;

pub use change::Change;
pub(crate) use encoding::{Encoding, Listed};
pub use metadata::Metadata;
pub(crate) use metadata::Parsed;
pub(crate) use specialized::expected;
pub(crate) use tier::{CODE, COLUMNS, VIEWS, bit};

use crate::format::{Format, Interpretation, Leaf, LeafKind};
use crate::predict::{Cells, Models};

/// The decoding state of one section in one reader or writer.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) encoding: Encoding,
    pub(crate) history: History,
}

/// The values that records leave for later records.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The cells with previous values, followed by the cells with last values.
    pub(crate) cells: Vec<u64>,
    pub(crate) models: Models,
}

impl State {
    /// Returns the state that a DTD specifies for the start of a section.
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut state = Self { encoding: Encoding::new(format, section), history: History::default() };
        state.reset(format);
        state.encoding.find_model_cells(format);
        state
    }

    /// Restores the widths, interpretations and previous values of the DTD (spec 4, last bullet).
    pub(crate) fn reset(&mut self, format: &Format) {
        let Self { encoding, history: History { cells, models } } = self;
        let Some(section) = format.sections.get(encoding.section) else { return };
        models.reset();
        cells.clear();
        cells.extend_from_slice(&section.initials);
        let last_cells = cells.len();
        cells.resize(last_cells + encoding.plans.len() + 1, 0);
        encoding.reset(format, last_cells);
        // Models may depend on a record's tag. Since the tag is not read as a leaf, store it in its cell here.
        for (position, &record) in section.records.iter().enumerate() {
            if let (Some(first), Some(record)) =
                (encoding.first_plan(position), format.records.get(usize::from(record)))
                && matches!(record.leaves.first(), Some(Leaf { kind: LeafKind::Tag, .. }))
                && let Some(cell) = cells.get_mut(last_cells + first)
            {
                *cell = record.tag.into();
            }
        }
    }

    /// Sets the values that leaves take from the header of a file (spec 5.4), by the leaves of the header. Resets the
    /// state.
    pub(crate) fn set_header(&mut self, format: &Format, values: &[u64]) {
        let records = format.sections.get(self.encoding.section).map_or(&[][..], |section| &section.records);
        let mut found = Vec::new();
        for (position, &record) in records.iter().enumerate() {
            let Some(first) = self.encoding.first_plan(position) else { continue };
            let leaves = format.records.get(usize::from(record)).map_or(&[][..], |record| &record.leaves);
            let taken = leaves.iter().enumerate().filter_map(|(index, leaf)| {
                Some((first + index, values.get(usize::from(leaf.header?)).copied().unwrap_or(0)))
            });
            found.extend(taken);
        }
        if !found.is_empty() {
            self.encoding.from_header = found;
            self.reset(format);
        }
    }

    /// Sets the value that a leaf takes from the header of the file being written. Returns false if the leaf takes no
    /// value from a header, or another value is known already.
    pub(crate) fn take_header(&mut self, format: &Format, position: usize, leaf: u8, value: u64) -> bool {
        let section = format.sections.get(self.encoding.section);
        let record = section.and_then(|section| section.records.get(position));
        let record = record.and_then(|&record| format.records.get(usize::from(record)));
        let takes = record.and_then(|r| r.leaves.get(usize::from(leaf))).is_some_and(|leaf| leaf.header.is_some());
        let Some(first) = self.encoding.first_plan(position).filter(|_| takes) else { return false };
        let index = first + usize::from(leaf);
        if let Some((_, known)) = self.encoding.from_header.iter().find(|(known, _)| *known == index) {
            return *known == value;
        }
        self.encoding.from_header.push((index, value));
        self.apply(format, position, leaf, false, Change::Interpretation(Interpretation::Default(value))).is_ok()
    }

    /// Sets the width of the only leaf of a stream section for one chunk (spec 5.2, chunk field `width`).
    pub(crate) fn set_chunk_width(&mut self, format: &Format, leaf: &Leaf, width: u8) {
        if let Some(setting) = self.encoding.settings.first_mut() {
            setting.width = width;
        }
        self.encoding.rebuild(format, 0, leaf);
    }
}

impl History {
    /// Returns the value for the code of a predicted leaf if this requires only the state of its model.
    #[inline(never)]
    pub(crate) fn decode_hit(&mut self, sources: &Cells, model: u16, code: u64) -> Option<u64> {
        self.models.decode_hit(sources, model, &self.cells, code)
    }

    /// Returns the code of a predicted leaf's value, and trains the model with the value, if only the code must be
    /// stored. Otherwise, returns `None` and changes nothing.
    #[inline(never)]
    pub(crate) fn encode_hit(&mut self, sources: &Cells, model: u16, value: u64) -> Option<u64> {
        self.models.encode_hit_from_cells(sources, model, &self.cells, value)
    }
}
