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

use crate::error::ErrorKind;
use crate::format::{ExprOp, Format, Interpretation, Leaf, LeafKind, METADATA, SECTION};
use crate::grade::Grades;
use crate::predict::{Cells, Models};
use crate::streams::slot;
use crate::watch::Watch;
use std::collections::HashMap;

/// How to decode one numeric leaf now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    pub(crate) mask: u64,
    pub(crate) sign: u64,
    pub(crate) base: u64,
    pub(crate) history: u64,
    /// Cell that is added (masked by `history`): the leaf's previous value, or the last value of a referenced leaf.
    pub(crate) read: u32,
    /// Cell of the previous value.
    pub(crate) write: u32,
    /// Cell of the last value: width expressions, counts and references look here.
    pub(crate) last: u32,
    /// Bytes stored, at most 8. All that makes plans sees to that: `buffer/room.rs` counts on it.
    pub(crate) width: u8,
    /// What the formula does not say; 0 for most leaves, which read no cell and write none.
    pub(crate) flags: u8,
}

/// `Plan::flags`: the value does not come from the formula alone: a constant, or from a stream section. Of a byte array:
/// its length does not.
pub(crate) const SPECIAL: u8 = 1;
/// `Plan::flags`: `history` is set.
pub(crate) const HISTORY: u8 = 2;
/// `Plan::flags`: somebody looks at the previous value.
pub(crate) const PREVIOUS: u8 = 4;
/// `Plan::flags`: a width or a count of the same record looks at the last value.
pub(crate) const LAST: u8 = 8;
/// `Plan::flags`: a reference looks at the last value, maybe from a later record.
pub(crate) const REFERENCED: u8 = 16;
/// `Plan::flags`: a byte array. The formula gives its length (with `raw` 0) unless it is special.
pub(crate) const BYTES: u8 = 32;
/// `Plan::flags`, with `SPECIAL`: a predicted leaf. `base` is the index of its model.
pub(crate) const PREDICTED: u8 = 64;
/// `Plan::flags`, with `SPECIAL`: the next element of a stream section, one after the other. `base` is the
/// [`slot`] of its cursor.
pub(crate) const STRIDED: u8 = 128;

/// The bits of a stored integer of so many bytes, 8 at most.
const fn mask(width: u8) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - 8 * width as u32) }
}

impl Plan {
    /// The stored integer, or with a base the offset from it.
    pub(crate) const fn straight(width: u8, base: Option<u64>) -> Self {
        // Over 8 there is none; straight writers count on that.
        let width = if width < 8 { width } else { 8 };
        let width = if width < 8 { width } else { 8 };
        let mask = mask(width);
        let (sign, base) = match base {
            Some(base) => (mask ^ (mask >> 1), base),
            None => (0, 0),
        };
        Self { mask, sign, base, history: 0, read: 0, write: 0, last: 0, width, flags: 0 }
    }

    /// Whether both plans say the same of a leaf without history.
    pub(crate) fn stores_as(&self, other: &Self) -> bool {
        (self.width, self.sign, self.base) == (other.width, other.sign, other.base)
    }

    #[inline]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }

    /// `delta` or `stride`: a reference reads another cell.
    fn uses_previous(&self) -> bool {
        self.is(HISTORY) && self.read == self.write
    }
}

/// What a plan was made from.
#[derive(Clone, Copy, Debug)]
struct Setting {
    interpretation: Interpretation,
    /// Width while bytes are stored; the last non-zero width is kept beside.
    width: u8,
    /// Last non-zero width; 0 where there never was one.
    remembered: u8,
}

/// A change of one leaf's encoding, as a metadata record makes it (spec 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Set the width.
    Width(u8),
    /// Set the interpretation. `BaseOffsetOf` and `Predicted` cannot be set.
    Interpretation(Interpretation),
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
    watch: Watch,
    pub(crate) grades: Grades,
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
            watch: Watch::default(),
            grades: Grades::default(),
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
            state.watch = Watch::new(format, s, |position| state.first_plan(position), state.plans.len());
            state.grades = Grades::new(format, s, |position| state.first_plan(position));
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
        self.watch.reset(last_cells);
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
            plan.set(PREVIOUS, self.watch.is_used(plan.write));
            self.grades.update(index, plan);
        }
    }

    /// Whether no other leaf has the previous value of this plan's leaf for its own.
    pub(crate) fn is_alone(&self, index: usize) -> bool {
        self.watch.sharer(index) == index
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
        let used = self.watch.is_used(cell);
        let mut at = index;
        while let Some(plan) = self.plans.get_mut(at) {
            plan.set(PREVIOUS, used);
            self.grades.update(at, plan);
            at = self.watch.sharer(at);
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
        plan.flags = self.watch.last(index);
        let special = leaf.constant.is_some()
            || matches!(setting.interpretation, Interpretation::SectionStride(..) | Interpretation::Predicted(_));
        plan.set(SPECIAL, special);
        plan.set(PREDICTED, matches!(setting.interpretation, Interpretation::Predicted(_)));
        plan.set(STRIDED, slot.is_some());
        plan.set(HISTORY, history != 0);
        let (uses, cell) = (plan.uses_previous(), plan.write);
        used != uses && self.watch.change(cell, uses)
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
    pub(crate) fn predicted_usual(&mut self, model: u16, code: u64) -> Option<u64> {
        self.models.decode_usual(&self.model_cells, model, &self.cells, code)
    }

    /// The code of a predicted leaf's value, which its model learns, where there is nothing but the code to store. `None`:
    /// nothing has happened.
    #[inline(never)]
    pub(crate) fn foretell(&mut self, model: u16, value: u64) -> Option<u64> {
        self.models.encode_usual(&self.model_cells, model, &self.cells, value)
    }

    fn last_cell(&self, format: &Format, record: u16, leaf: u8) -> Option<u32> {
        let section = format.sections.get(self.section)?;
        let position = section.records.iter().position(|&r| r == record)?;
        let first = self.first_plan(position)?;
        self.plans.get(first + usize::from(leaf)).map(|p| p.last)
    }

    /// Applies a metadata record (spec 4.1). `position` and `leaf` name the leaf; `all` is bit 3 of the property. On an
    /// error nothing has changed, and the leaf at fault is what the metadata record names.
    pub(crate) fn apply(
        &mut self,
        format: &Format,
        position: usize,
        leaf: u8,
        all: bool,
        change: Change,
    ) -> Result<(), ErrorKind> {
        let (index, named) = self.target(format, position, leaf)?;
        if !all {
            self.check(format, index, change)?;
            self.set(format, index, named, change);
            return Ok(());
        }
        let records = format.sections.get(self.section).map_or(&[][..], |section| &section.records);
        for (position, &record) in records.iter().enumerate() {
            let Some(first) = self.first_plan(position) else { continue };
            for (leaf, _) in leaves_of_field(format, record, &named.field) {
                self.check(format, first + leaf, change)?;
            }
        }
        for (position, &record) in records.iter().enumerate() {
            let Some(first) = self.first_plan(position) else { continue };
            for (leaf, named) in leaves_of_field(format, record, &named.field) {
                self.set(format, first + leaf, named, change);
            }
        }
        Ok(())
    }

    /// The plan of the leaf that a metadata record names, and the leaf.
    fn target<'f>(&self, format: &'f Format, position: usize, leaf: u8) -> Result<(usize, &'f Leaf), ErrorKind> {
        let unknown = ErrorKind::Metadata("the record has no field of this number");
        let section = format.sections.get(self.section).ok_or(unknown)?;
        let record = section.records.get(position).and_then(|&r| format.records.get(usize::from(r)));
        let first = self.first_plan(position).ok_or(ErrorKind::Metadata("`section` and `metadata` cannot change"))?;
        let named = record.and_then(|r| r.leaves.get(usize::from(leaf))).ok_or(unknown)?;
        if !named.is_settable() {
            return Err(ErrorKind::Metadata("the field is a tag, a constant or a byte array"));
        }
        Ok((first + usize::from(leaf), named))
    }

    fn check(&self, format: &Format, index: usize, change: Change) -> Result<(), ErrorKind> {
        let Change::Interpretation(interpretation) = change else { return Ok(()) };
        let stream = |n: u8| format.section_index(n).and_then(|i| format.sections.get(i)).filter(|s| s.stream);
        match interpretation {
            Interpretation::SectionOffset(n) if stream(n).is_none() => {
                return Err(ErrorKind::Metadata("sectionOffset to a section that is not a stream section"));
            }
            Interpretation::SectionStride(n, stride) => {
                let element = stream(n).and_then(|s| s.records.first());
                let element = element.and_then(|&r| format.records.get(usize::from(r)));
                if element.and_then(|r| r.single_number()).is_none() {
                    return Err(ErrorKind::Metadata(
                        "sectionStride to a section that is not a stream section of one numeric leaf",
                    ));
                }
                if stride == 0 || stride > i64::MAX as u64 {
                    return Err(ErrorKind::Metadata("sectionStride with a stride under 1"));
                }
            }
            Interpretation::BaseOffsetOf(..) => {
                return Err(ErrorKind::Metadata("a baseOffset reference can only be declared in the DTD"));
            }
            Interpretation::Predicted(_) => {
                return Err(ErrorKind::Metadata("a predicted field can only be declared in the DTD"));
            }
            _ => {}
        }
        if interpretation.stores() && self.remembered(index) == 0 {
            return Err(ErrorKind::Metadata("the interpretation stores bytes, and the field never had a width"));
        }
        Ok(())
    }

    fn set(&mut self, format: &Format, index: usize, leaf: &Leaf, change: Change) {
        let Some(setting) = self.settings.get_mut(index) else { return };
        match change {
            Change::Width(0) if !setting.interpretation.stores() => {}
            Change::Width(width) => {
                if setting.interpretation.stores() {
                    setting.width = width;
                }
                if width != 0 {
                    setting.remembered = width;
                }
            }
            Change::Interpretation(interpretation) => {
                setting.interpretation = interpretation;
                if interpretation.stores() {
                    setting.width = setting.remembered;
                }
                if let Interpretation::Delta(initial) | Interpretation::Stride(initial, _) = interpretation {
                    let cell = self.plans.get(index).map_or(0, |p| p.write as usize);
                    if let Some(cell) = self.cells.get_mut(cell) {
                        *cell = initial;
                    }
                }
            }
        }
        self.rebuild(format, index, leaf);
    }
}

/// The leaves of a record that metadata can set, of this field.
fn leaves_of_field<'f>(format: &'f Format, record: u16, field: &str) -> impl Iterator<Item = (usize, &'f Leaf)> {
    let leaves = format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves);
    leaves.iter().enumerate().filter(move |(_, leaf)| leaf.field == field && leaf.is_settable())
}
