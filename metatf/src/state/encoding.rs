//! The current encoding of the leaves of a section's records. Only metadata and resets change the encoding; decoding
//! records does not change it.
//!
//! A plan is rebuilt only when a metadata record changes it. The plan also records which of its cells are needed later.
//! The previous value is needed while any leaf sharing it is `delta` or `stride`; metadata that sets either
//! interpretation also sets the previous value, so older values are never needed. The last value is needed if a width,
//! a count or a reference uses it.

use super::liveness::Liveness;
use super::tier::Tiers;
use crate::format::{ExprOp, Format, Interpretation, Leaf, LeafKind, METADATA, SECTION, slot};
use crate::formula::{BYTES, HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, Width};
use crate::predict::Cells;
use std::collections::HashMap;

/// The width and the interpretation from which a leaf's plan is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) interpretation: Interpretation,
    /// The current width, which is 0 if no bytes are stored. The last nonzero width is stored separately.
    pub(super) width: u8,
    /// The last nonzero width, or 0 if the width has never been nonzero.
    pub(super) remembered: u8,
}

/// The current encoding of the leaves of a section's records.
#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    /// Index of the section in `format.sections`.
    pub(crate) section: usize,
    pub(crate) plans: Vec<Plan>,
    pub(super) settings: Vec<Setting>,
    liveness: Liveness,
    pub(crate) tiers: Tiers,
    /// For each record of the section, the index of its first plan, or `NONE` for `section` and `metadata`.
    first: Vec<u32>,
    /// Records of the section by tag, for tags less than 256. Other tags are looked up in `tags` and default to
    /// `other`.
    small: Vec<Listed>,
    tags: HashMap<u32, Listed>,
    other: Listed,
    /// The inputs of the models of predicted leaves.
    pub(crate) model_cells: Cells,
    /// Index of the first plan for each record of the format, or `NONE`.
    by_record: Vec<u32>,
    /// The leaves whose initial interpretation is a `default` with a value from a file's header, by their plans.
    pub(super) from_header: Vec<(usize, u64)>,
}

/// A record listed by a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    /// Position in the section's records.
    pub(crate) position: u16,
    /// Index in `format.records`.
    pub(crate) record: u16,
    /// Index of its first plan, or `NONE` for `section` and `metadata`.
    pub(crate) first: u32,
}

const NONE: u32 = u32::MAX;
const NO_RECORD: Listed = Listed { position: u16::MAX, record: u16::MAX, first: NONE };

impl Encoding {
    /// Creates the initial encoding of a section's records, as it is before the first reset.
    pub(super) fn new(format: &Format, section: usize) -> Self {
        let mut encoding = Self {
            section,
            plans: Vec::new(),
            settings: Vec::new(),
            liveness: Liveness::default(),
            tiers: Tiers::default(),
            first: Vec::new(),
            small: vec![NO_RECORD; 256],
            tags: HashMap::new(),
            other: NO_RECORD,
            model_cells: Cells::default(),
            by_record: Vec::new(),
            from_header: Vec::new(),
        };
        let Some(s) = format.sections.get(section) else { return encoding };
        for (position, &record) in s.records.iter().enumerate() {
            encoding.list(format, position, record);
        }
        let Self { small, other, .. } = &mut encoding;
        small.iter_mut().filter(|listed| listed.position == NO_RECORD.position).for_each(|listed| *listed = *other);
        encoding.liveness = Liveness::new(format, s, |position| encoding.first_plan(position), encoding.plans.len());
        encoding.tiers = Tiers::new(format, s, |position| encoding.first_plan(position));
        encoding
    }

    /// Determines, from the plans, the cells that the models (if any) depend on.
    pub(super) fn find_model_cells(&mut self, format: &Format) {
        if !format.models.is_empty() {
            let last = |(record, leaf)| self.last_cell(format, record, leaf);
            self.model_cells = Cells::new(format, last, |model| self.predicted_cell(format, model));
        }
    }

    /// Returns the cell with the previous value of the leaf that a model predicts.
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
            _ if r.is_catch_all() => self.other = listed,
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

    /// Restores the widths and interpretations of the DTD. The cells of last values start at `last_cells`.
    pub(super) fn reset(&mut self, format: &Format, last_cells: usize) {
        let Some(section) = format.sections.get(self.section) else { return };
        self.settings.clear();
        let from_header = std::mem::take(&mut self.from_header);
        for &record in section.records.iter().filter(|&&r| r != SECTION && r != METADATA) {
            for leaf in format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves) {
                let (width, interpretation) = match leaf.kind {
                    LeafKind::Number { width, interpretation } => (width, interpretation),
                    LeafKind::Tag | LeafKind::AnyTag => (format.tag_width, Interpretation::None),
                    LeafKind::Computed(_) | LeafKind::Scanned(_) => (0, Interpretation::Default(0)),
                    LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_) | LeafKind::Rest => {
                        (0, Interpretation::None)
                    }
                };
                self.settings.push(Setting { interpretation, width, remembered: width });
            }
        }
        for &(index, value) in &from_header {
            if let Some(setting) = self.settings.get_mut(index) {
                setting.interpretation = Interpretation::Default(value);
            }
        }
        self.from_header = from_header;
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
            let Some(first) = self.first_plan(position) else { continue };
            for (i, leaf) in leaves.iter().enumerate() {
                match &leaf.kind {
                    LeafKind::Array(length) => self.make_length(first, first + i, &[ExprOp::Push((*length).into())]),
                    LeafKind::Variable(program) => self.make_length(first, first + i, program),
                    LeafKind::Until(_) | LeafKind::Rest => self.make_length(first, first + i, &[]),
                    LeafKind::Tag
                    | LeafKind::AnyTag
                    | LeafKind::Number { .. }
                    | LeafKind::Computed(_)
                    | LeafKind::Scanned(_) => {
                        self.make(format, first + i, leaf);
                    }
                }
            }
        }
        for (index, plan) in self.plans.iter_mut().enumerate() {
            plan.set(PREVIOUS, self.liveness.is_used(plan.write));
            self.tiers.update(index, plan);
        }
    }

    /// Returns whether no other leaf shares the previous value of this plan's leaf.
    pub(crate) fn is_alone(&self, index: usize) -> bool {
        self.liveness.sharer(index) == index
    }

    pub(crate) fn first_plan(&self, position: usize) -> Option<usize> {
        self.first.get(position).copied().filter(|&f| f != NONE).map(|f| f as usize)
    }

    /// Returns the record of the section with this tag.
    #[inline]
    pub(crate) fn listed(&self, tag: u32) -> Option<Listed> {
        let listed = match self.small.get(tag as usize) {
            Some(&listed) => listed,
            None => self.tags.get(&tag).copied().unwrap_or(self.other),
        };
        (listed.position != u16::MAX).then_some(listed)
    }

    /// Returns whether a record has a tag of its own, which is true unless it is the catch-all record.
    #[inline]
    pub(crate) fn has_own_tag(&self, listed: Listed) -> bool {
        listed.position != self.other.position
    }

    /// Returns the index of the first plan of a data record or comment listed by the section, given the index of the
    /// record in `format.records`. Returns `None` in a stream section.
    #[inline]
    pub(crate) fn plans_of_record(&self, record: u16) -> Option<usize> {
        let &first = self.by_record.get(usize::from(record))?;
        (first != NONE).then_some(first as usize)
    }

    /// Returns the position in the section's records of the record with this tag.
    pub(crate) fn position(&self, tag: u32) -> Option<usize> {
        self.listed(tag).map(|listed| usize::from(listed.position))
    }

    /// Returns the index of the first plan of the record at this position.
    #[inline]
    pub(crate) fn plans_of(&self, position: usize) -> usize {
        self.first.get(position).map_or(NONE as usize, |&f| f as usize)
    }

    #[inline]
    pub(crate) fn plan(&self, index: usize) -> Option<&Plan> {
        self.plans.get(index)
    }

    /// Returns the current interpretation of the leaf with this plan.
    pub(crate) fn interpretation(&self, index: usize) -> Interpretation {
        self.settings.get(index).map_or(Interpretation::None, |s| s.interpretation)
    }

    /// Returns the last nonzero width of the leaf with this plan.
    pub(crate) fn remembered(&self, index: usize) -> u8 {
        self.settings.get(index).map_or(0, |s| s.remembered)
    }

    /// Returns the stream sections from which leaves currently consume values.
    pub(crate) fn strides<'s>(&'s self, format: &'s Format) -> impl Iterator<Item = u8> + 's {
        self.settings.iter().filter_map(|s| match s.interpretation {
            Interpretation::SectionStride(n, _) => Some(n),
            Interpretation::Predicted(model) => format.models.get(usize::from(model)).map(|m| m.section),
            _ => None,
        })
    }

    /// Removes the references from a leaf to the last values of other leaves, after metadata has changed its base or
    /// prediction to something else.
    pub(super) fn end_references(&mut self, index: usize) {
        for target in self.liveness.end_references(index) {
            if let Some(plan) = self.plans.get_mut(target) {
                plan.set(REFERENCED, false);
                self.tiers.update(target, plan);
            }
        }
    }

    /// Rebuilds the plan of a leaf whose setting has changed. Also updates, for all leaves that share its previous
    /// value, whether that value is needed.
    pub(super) fn rebuild(&mut self, format: &Format, index: usize, leaf: &Leaf) {
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

    /// Creates the plan of a numeric leaf from its setting. Returns true if this affects the leaves that share its
    /// previous value.
    fn make(&mut self, format: &Format, index: usize, leaf: &Leaf) -> bool {
        let Some(setting) = self.settings.get(index).copied() else { return false };
        let width = Width::saturating(if setting.interpretation.stores() { setting.width.into() } else { 0 });
        let mask = width.mask();
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
            || matches!(leaf.kind, LeafKind::AnyTag | LeafKind::Computed(_) | LeafKind::Scanned(_))
            || matches!(setting.interpretation, Interpretation::SectionStride(..) | Interpretation::Predicted(_));
        plan.set(SPECIAL, special);
        plan.set(PREDICTED, matches!(setting.interpretation, Interpretation::Predicted(_)));
        plan.set(STRIDED, slot.is_some());
        plan.set(HISTORY, history != 0);
        let (uses, cell) = (plan.uses_previous(), plan.write);
        used != uses && self.liveness.change(cell, uses)
    }

    /// Creates the plan of a byte array, whose length is a number, the last value of a leaf in the record, or
    /// `SPECIAL`.
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

    fn last_cell(&self, format: &Format, record: u16, leaf: u8) -> Option<u32> {
        let section = format.sections.get(self.section)?;
        let position = section.records.iter().position(|&r| r == record)?;
        let first = self.first_plan(position)?;
        self.plans.get(first + usize::from(leaf)).map(|p| p.last)
    }
}
