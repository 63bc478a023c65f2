//! State of a section (spec 4): for every leaf a *plan*, the few numbers that one formula decodes any inline
//! interpretation with (design: "one formula"), and the cells that hold previous and last values.
//!
//! ```text
//! raw   = stored bytes & mask
//! value = ((raw ^ sign) - sign) + base + (cells[read] & history)      all wrapping
//! ```
//!
//! A plan is rebuilt only when a metadata record changes it. It says, too, which of its cells anybody looks at (`Keeps`):
//! the previous value while a leaf that shares it is `delta` or `stride` (setting either by metadata gives the previous
//! value anew, so that older ones are never asked for), the last value where a width, a count or a reference names it.
//!
//! Longer than other files: what metadata may change, and what follows from a change, keep one set of tables in step.

mod change;
mod liveness;
mod metadata;
mod specialized;
mod tier;

pub use change::Change;
pub use metadata::Metadata;
pub(crate) use metadata::Parsed;
pub(crate) use specialized::expected;
pub(crate) use tier::{COLUMNS, Tiers, VIEWS, bit};

use crate::format::{ExprOp, Format, Interpretation, Leaf, LeafKind, METADATA, SECTION, slot};
use crate::formula::{BYTES, HISTORY, PREDICTED, PREVIOUS, Plan, SPECIAL, STRIDED, mask};
use crate::predict::{Cells, Models};
use liveness::Liveness;
use std::collections::HashMap;

/// What a plan was made from.
#[derive(Clone, Copy, Debug)]
struct Setting {
    interpretation: Interpretation,
    /// Width while bytes are stored; the last non-zero width is kept beside.
    width: u8,
    /// Last non-zero width; 0 where there never was one.
    remembered: u8,
}

/// Decoding state of one section of one reader or writer.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Index in `format.sections`.
    pub(crate) section: usize,
    /// Previous values, then last values.
    pub(crate) cells: Vec<u64>,
    pub(crate) plans: Vec<Plan>,
    settings: Vec<Setting>,
    liveness: Liveness,
    pub(crate) tiers: Tiers,
    /// For each record of the section: index of its first plan, or `NONE` for `section` and `metadata`.
    first: Vec<u32>,
    /// Records of the section by tag, for tags under 256; the others in `tags`.
    small: Vec<Listed>,
    tags: HashMap<u32, Listed>,
    /// What predicted leaves go by, and what their models have learnt.
    pub(crate) model_cells: Cells,
    pub(crate) models: Models,
    /// Index of the first plan by record, or `NONE`.
    by_record: Vec<u32>,
}

/// A record of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    /// Position in the section's records.
    pub(crate) position: u16,
    /// Index in `format.records`.
    pub(crate) record: u16,
    /// Index of its first plan; `NONE` for `section` and `metadata`.
    pub(crate) first: u32,
}

const NONE: u32 = u32::MAX;
const NO_RECORD: Listed = Listed { position: u16::MAX, record: u16::MAX, first: NONE };

impl State {
    /// The state a DTD prescribes for the start of a section.
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut state = Self {
            section,
            cells: Vec::new(),
            plans: Vec::new(),
            settings: Vec::new(),
            liveness: Liveness::default(),
            tiers: Tiers::default(),
            first: Vec::new(),
            small: vec![NO_RECORD; 256],
            tags: HashMap::new(),
            model_cells: Cells::default(),
            models: Models::default(),
            by_record: Vec::new(),
        };
        if let Some(s) = format.sections.get(section) {
            for (position, &record) in s.records.iter().enumerate() {
                state.list(format, position, record);
            }
        }
        if let Some(s) = format.sections.get(section) {
            state.liveness = Liveness::new(format, s, |position| state.first_plan(position), state.plans.len());
            state.tiers = Tiers::new(format, s, |position| state.first_plan(position));
        }
        state.reset(format);
        if !format.models.is_empty() {
            let last = |(record, leaf)| state.last_cell(format, record, leaf);
            state.model_cells = Cells::new(format, last, |model| state.predicted_cell(format, model));
        }
        state
    }

    /// The cell of the previous value of the leaf that a model predicts.
    fn predicted_cell(&self, format: &Format, model: usize) -> Option<u32> {
        let section = format.sections.get(self.section)?;
        let leaf = |&record: &u16| {
            let leaves = format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves);
            leaves.iter().map(|leaf| match leaf.kind {
                LeafKind::Number { interpretation: Interpretation::Predicted(m), .. } => usize::from(m) == model,
                _ => false,
            })
        };
        let listed = section.records.iter().filter(|&&r| r != SECTION && r != METADATA);
        let index = listed.flat_map(leaf).position(|predicted| predicted)?;
        section.cells.get(index).copied()
    }

    fn list(&mut self, format: &Format, position: usize, record: u16) {
        let Some(r) = format.records.get(usize::from(record)) else { return };
        let changes = record != SECTION && record != METADATA;
        let first = u32::try_from(self.plans.len()).ok().filter(|_| changes).unwrap_or(NONE);
        let listed = Listed { position: u16::try_from(position).unwrap_or(u16::MAX), record, first };
        match usize::try_from(r.tag).ok().and_then(|tag| self.small.get_mut(tag)) {
            Some(entry) => *entry = listed,
            None => drop(self.tags.insert(r.tag, listed)),
        }
        self.first.push(first);
        if !format.sections.get(self.section).is_some_and(|s| s.stream) {
            let length = self.by_record.len().max(usize::from(record) + 1);
            self.by_record.resize(length, NONE);
            if let Some(slot) = self.by_record.get_mut(usize::from(record)) {
                *slot = first;
            }
        }
        if changes {
            self.plans.resize(self.plans.len() + r.leaves.len(), Plan::default());
        }
    }

    /// Widths, interpretations and previous values as the DTD gives them (spec 4, last bullet).
    pub(crate) fn reset(&mut self, format: &Format) {
        let Some(section) = format.sections.get(self.section) else { return };
        self.models.reset();
        self.cells.clear();
        self.cells.extend_from_slice(&section.initials);
        let last_cells = self.cells.len();
        self.cells.resize(last_cells + self.plans.len() + 1, 0);
        self.settings.clear();
        for &record in section.records.iter().filter(|&&r| r != SECTION && r != METADATA) {
            for leaf in format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves) {
                let (width, interpretation) = match leaf.kind {
                    LeafKind::Number { width, interpretation } => (width, interpretation),
                    LeafKind::Tag => (format.tag_width, Interpretation::None),
                    LeafKind::Array(_) | LeafKind::Variable(_) => (0, Interpretation::None),
                };
                self.settings.push(Setting { interpretation, width, remembered: width });
            }
        }
        for i in 0..self.plans.len() {
            let cell = section.cells.get(i).copied().unwrap_or(0);
            let last = u32::try_from(last_cells + i).unwrap_or(0);
            if let Some(plan) = self.plans.get_mut(i) {
                *plan = Plan { write: cell, last, ..Plan::default() };
            }
        }
        self.liveness.reset(last_cells);
        for (position, &record) in section.records.iter().enumerate() {
            let leaves = format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves);
            if let Some(first) = self.first_plan(position) {
                for (i, leaf) in leaves.iter().enumerate() {
                    match &leaf.kind {
                        LeafKind::Array(length) => {
                            self.make_length(first, first + i, &[ExprOp::Push((*length).into())])
                        }
                        LeafKind::Variable(program) => self.make_length(first, first + i, program),
                        LeafKind::Tag | LeafKind::Number { .. } => drop(self.make(format, first + i, leaf)),
                    }
                }
                // Models may go by the tag, which is no leaf that is read.
                let tagged = leaves.first().is_some_and(|leaf| matches!(leaf.kind, LeafKind::Tag));
                if let Some(cell) = self.cells.get_mut(last_cells + first).filter(|_| tagged) {
                    *cell = format.records.get(usize::from(record)).map_or(0, |r| r.tag.into());
                }
            }
        }
        for (index, plan) in self.plans.iter_mut().enumerate() {
            plan.set(PREVIOUS, self.liveness.is_used(plan.write));
            self.tiers.update(index, plan);
        }
    }

    /// Whether no other leaf has the previous value of this plan's leaf for its own.
    pub(crate) fn is_alone(&self, index: usize) -> bool {
        self.liveness.sharer(index) == index
    }

    fn first_plan(&self, position: usize) -> Option<usize> {
        self.first.get(position).copied().filter(|&f| f != NONE).map(|f| f as usize)
    }

    /// The record of the section with this tag.
    #[inline]
    pub(crate) fn listed(&self, tag: u32) -> Option<Listed> {
        let listed = match self.small.get(tag as usize) {
            Some(&listed) => listed,
            None => self.tags.get(&tag).copied().unwrap_or(NO_RECORD),
        };
        (listed.position != u16::MAX).then_some(listed)
    }

    /// Index of the first plan of a data record or comment that the section lists, by its index in `format.records`; none
    /// in a stream section.
    #[inline]
    pub(crate) fn plans_of_record(&self, record: u16) -> Option<usize> {
        let &first = self.by_record.get(usize::from(record))?;
        (first != NONE).then_some(first as usize)
    }

    /// Position in the section's records of the record with this tag.
    pub(crate) fn position(&self, tag: u32) -> Option<usize> {
        self.listed(tag).map(|listed| usize::from(listed.position))
    }

    /// Index of the first plan of the record at this position.
    #[inline]
    pub(crate) fn plans_of(&self, position: usize) -> usize {
        self.first.get(position).map_or(NONE as usize, |&f| f as usize)
    }

    #[inline]
    pub(crate) fn plan(&self, index: usize) -> Option<&Plan> {
        self.plans.get(index)
    }

    /// The interpretation in force.
    pub(crate) fn interpretation(&self, index: usize) -> Interpretation {
        self.settings.get(index).map_or(Interpretation::None, |s| s.interpretation)
    }

    /// The last non-zero width.
    pub(crate) fn remembered(&self, index: usize) -> u8 {
        self.settings.get(index).map_or(0, |s| s.remembered)
    }

    /// The stream sections that leaves in force take values from.
    pub(crate) fn strides<'s>(&'s self, format: &'s Format) -> impl Iterator<Item = u8> + 's {
        self.settings.iter().filter_map(|s| match s.interpretation {
            Interpretation::SectionStride(n, _) => Some(n),
            Interpretation::Predicted(model) => format.models.get(usize::from(model)).map(|m| m.section),
            _ => None,
        })
    }

    /// The width of the only leaf of a stream section for one chunk (spec 5.2, chunk field `width`).
    pub(crate) fn set_chunk_width(&mut self, format: &Format, leaf: &Leaf, width: u8) {
        if let Some(setting) = self.settings.first_mut() {
            setting.width = width;
        }
        self.rebuild(format, 0, leaf);
    }

    /// The plan of a leaf whose setting has changed, and whether its previous value and those it shares it with are
    /// looked at.
    fn rebuild(&mut self, format: &Format, index: usize, leaf: &Leaf) {
        let news = self.make(format, index, leaf);
        let Some(cell) = self.plans.get(index).map(|p| p.write) else { return };
        let used = self.liveness.is_used(cell);
        let mut at = index;
        while let Some(plan) = self.plans.get_mut(at) {
            plan.set(PREVIOUS, used);
            self.tiers.update(at, plan);
            at = self.liveness.sharer(at);
            if !news || at == index {
                break;
            }
        }
    }

    /// The plan of a numeric leaf by its setting. True where that is news for those it shares its previous value with.
    fn make(&mut self, format: &Format, index: usize, leaf: &Leaf) -> bool {
        let Some(setting) = self.settings.get(index).copied() else { return false };
        let width = if setting.interpretation.stores() { setting.width.min(8) } else { 0 };
        let mask = mask(width);
        let top = mask ^ (mask >> 1);
        let reference = match setting.interpretation {
            Interpretation::BaseOffsetOf(record, leaf) => self.last_cell(format, record, leaf),
            _ => None,
        };
        let slot = match setting.interpretation {
            Interpretation::SectionStride(target, 1) if leaf.constant.is_none() => slot(format, self.section, target),
            _ => None,
        };
        let Some(plan) = self.plans.get_mut(index) else { return false };
        let (sign, base, history) = match setting.interpretation {
            Interpretation::None | Interpretation::SectionOffset(_) => (0, 0, 0),
            Interpretation::SectionStride(..) => (0, slot.unwrap_or(0) as u64, 0),
            Interpretation::BaseOffset(base) => (top, base, 0),
            Interpretation::BaseOffsetOf(..) | Interpretation::Delta(_) => (top, 0, u64::MAX),
            Interpretation::Default(value) => (0, value, 0),
            Interpretation::Stride(_, stride) => (0, stride, u64::MAX),
            Interpretation::Predicted(model) => (0, model.into(), 0),
        };
        let used = plan.uses_previous();
        plan.mask = mask;
        plan.sign = sign;
        plan.base = base;
        plan.history = history;
        plan.width = width;
        plan.read = reference.unwrap_or(plan.write);
        plan.flags = self.liveness.last(index);
        let special = leaf.constant.is_some()
            || matches!(setting.interpretation, Interpretation::SectionStride(..) | Interpretation::Predicted(_));
        plan.set(SPECIAL, special);
        plan.set(PREDICTED, matches!(setting.interpretation, Interpretation::Predicted(_)));
        plan.set(STRIDED, slot.is_some());
        plan.set(HISTORY, history != 0);
        let (uses, cell) = (plan.uses_previous(), plan.write);
        used != uses && self.liveness.change(cell, uses)
    }

    /// The plan of a byte array: its length is a number, or the last value of a leaf of the record, or `SPECIAL`.
    fn make_length(&mut self, first: usize, index: usize, program: &[ExprOp]) {
        let last = |leaf: u8| self.plans.get(first + usize::from(leaf)).map(|p| p.last);
        let (base, read, flags) = match *program {
            [ExprOp::Push(length)] => (length, None, BYTES),
            [ExprOp::Leaf(leaf)] => (0, last(leaf), BYTES | HISTORY),
            _ => (0, None, BYTES | SPECIAL),
        };
        let Some(plan) = self.plans.get_mut(index) else { return };
        plan.base = base;
        plan.read = read.unwrap_or(plan.write);
        plan.history = if read.is_some() { u64::MAX } else { 0 };
        plan.flags = flags;
    }

    /// The value behind the code of a predicted leaf where that needs nothing but what its model knows.
    #[inline(never)]
    pub(crate) fn decode_hit(&mut self, model: u16, code: u64) -> Option<u64> {
        self.models.decode_hit(&self.model_cells, model, &self.cells, code)
    }

    /// The code of a predicted leaf's value, which its model learns, where there is nothing but the code to store. `None`:
    /// nothing has happened.
    #[inline(never)]
    pub(crate) fn encode_hit(&mut self, model: u16, value: u64) -> Option<u64> {
        self.models.encode_hit_from_cells(&self.model_cells, model, &self.cells, value)
    }

    fn last_cell(&self, format: &Format, record: u16, leaf: u8) -> Option<u32> {
        let section = format.sections.get(self.section)?;
        let position = section.records.iter().position(|&r| r == record)?;
        let first = self.first_plan(position)?;
        self.plans.get(first + usize::from(leaf)).map(|p| p.last)
    }
}
