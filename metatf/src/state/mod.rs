//! State of a section (spec 4): its encoding, which is for every leaf a *plan*, the few numbers that one formula decodes any inline
//! interpretation with (design: "one formula"), and its history, the cells that hold previous and last values.
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

use crate::format::{Format, Leaf, LeafKind};
use crate::predict::{Cells, Models};

/// Decoding state of one section of one reader or writer.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) encoding: Encoding,
    pub(crate) history: History,
}

/// What records leave behind for later ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Previous values, then last values.
    pub(crate) cells: Vec<u64>,
    pub(crate) models: Models,
}

impl State {
    /// The state a DTD prescribes for the start of a section.
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut state = Self { encoding: Encoding::new(format, section), history: History::default() };
        state.reset(format);
        state.encoding.find_model_cells(format);
        state
    }

    /// Widths, interpretations and previous values as the DTD gives them (spec 4, last bullet).
    pub(crate) fn reset(&mut self, format: &Format) {
        let Self { encoding, history: History { cells, models } } = self;
        let Some(section) = format.sections.get(encoding.section) else { return };
        models.reset();
        cells.clear();
        cells.extend_from_slice(&section.initials);
        let last_cells = cells.len();
        cells.resize(last_cells + encoding.plans.len() + 1, 0);
        encoding.reset(format, last_cells);
        // Models may go by the tag, which is not a leaf that is read.
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

    /// The width of the only leaf of a stream section for one chunk (spec 5.2, chunk field `width`).
    pub(crate) fn set_chunk_width(&mut self, format: &Format, leaf: &Leaf, width: u8) {
        if let Some(setting) = self.encoding.settings.first_mut() {
            setting.width = width;
        }
        self.encoding.rebuild(format, 0, leaf);
    }
}

impl History {
    /// The value behind the code of a predicted leaf where that needs nothing but what its model knows.
    #[inline(never)]
    pub(crate) fn decode_hit(&mut self, sources: &Cells, model: u16, code: u64) -> Option<u64> {
        self.models.decode_hit(sources, model, &self.cells, code)
    }

    /// The code of a predicted leaf's value, which its model learns, where there is nothing but the code to store. `None`:
    /// nothing has happened.
    #[inline(never)]
    pub(crate) fn encode_hit(&mut self, sources: &Cells, model: u16, value: u64) -> Option<u64> {
        self.models.encode_hit_from_cells(sources, model, &self.cells, value)
    }
}
