//! State of a section (spec 4): for every leaf a *plan*, the few numbers that one formula decodes any inline
//! interpretation with (design: "one formula"), and the cells that hold previous and last values.
//!
//! ```text
//! raw   = stored bytes & mask
//! value = ((raw ^ sign) - sign) + base + (cells[read] & history)      all wrapping
//! ```
//!
//! A plan is rebuilt only when a metadata record changes it.

use crate::error::ErrorKind;
use crate::format::{Format, Interpretation, Leaf, LeafKind, METADATA, SECTION};
use std::collections::HashMap;

/// How to decode one numeric leaf now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
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
    /// Bytes stored.
    pub(crate) width: u8,
    /// The value does not come from the formula alone: a constant, or from a stream section.
    pub(crate) special: bool,
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
    plans: Vec<Plan>,
    settings: Vec<Setting>,
    /// For each record of the section: index of its first plan, or `NONE` for `section` and `metadata`.
    first: Vec<u32>,
    /// Position in the section's records by tag, for tags under 256; the others in `tags`.
    small: Vec<u16>,
    tags: HashMap<u32, u16>,
}

const NONE: u32 = u32::MAX;
const NO_RECORD: u16 = u16::MAX;

impl State {
    /// The state a DTD prescribes for the start of a section.
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut state = Self {
            section,
            cells: Vec::new(),
            plans: Vec::new(),
            settings: Vec::new(),
            first: Vec::new(),
            small: vec![NO_RECORD; 256],
            tags: HashMap::new(),
        };
        if let Some(s) = format.sections.get(section) {
            for (position, &record) in s.records.iter().enumerate() {
                state.list(format, position, record);
            }
        }
        state.reset(format);
        state
    }

    fn list(&mut self, format: &Format, position: usize, record: u16) {
        let Some(r) = format.records.get(usize::from(record)) else { return };
        let position = u16::try_from(position).unwrap_or(NO_RECORD);
        match usize::try_from(r.tag).ok().and_then(|tag| self.small.get_mut(tag)) {
            Some(entry) => *entry = position,
            None => drop(self.tags.insert(r.tag, position)),
        }
        if record == SECTION || record == METADATA {
            self.first.push(NONE);
            return;
        }
        self.first.push(u32::try_from(self.plans.len()).unwrap_or(NONE));
        self.plans.resize(self.plans.len() + r.leaves.len(), Plan::default());
    }

    /// Widths, interpretations and previous values as the DTD gives them (spec 4, last bullet).
    pub(crate) fn reset(&mut self, format: &Format) {
        let Some(section) = format.sections.get(self.section) else { return };
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
        for (position, &record) in section.records.iter().enumerate() {
            let leaves = format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves);
            if let Some(first) = self.first_plan(position) {
                for (i, leaf) in leaves.iter().enumerate() {
                    self.rebuild(format, first + i, leaf);
                }
            }
        }
    }

    fn first_plan(&self, position: usize) -> Option<usize> {
        self.first.get(position).copied().filter(|&f| f != NONE).map(|f| f as usize)
    }

    /// Position in the section's records of the record with this tag.
    #[inline]
    pub(crate) fn position(&self, tag: u32) -> Option<usize> {
        let entry = match usize::try_from(tag).ok().and_then(|tag| self.small.get(tag)) {
            Some(&entry) => entry,
            None => self.tags.get(&tag).copied().unwrap_or(NO_RECORD),
        };
        (entry != NO_RECORD).then_some(usize::from(entry))
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

    /// Whether any leaf in force takes its values from the stream section with this number.
    pub(crate) fn strides(&self) -> impl Iterator<Item = u8> + '_ {
        self.settings.iter().filter_map(|s| match s.interpretation {
            Interpretation::SectionStride(n, _) => Some(n),
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

    fn rebuild(&mut self, format: &Format, index: usize, leaf: &Leaf) {
        let Some(setting) = self.settings.get(index).copied() else { return };
        let width = if setting.interpretation.stores() { setting.width } else { 0 };
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - 8 * u32::from(width.min(8))) };
        let top = mask ^ (mask >> 1);
        let reference = match setting.interpretation {
            Interpretation::BaseOffsetOf(record, leaf) => self.last_cell(format, record, leaf),
            _ => None,
        };
        let Some(plan) = self.plans.get_mut(index) else { return };
        let (sign, base, history) = match setting.interpretation {
            Interpretation::None | Interpretation::SectionOffset(_) | Interpretation::SectionStride(..) => (0, 0, 0),
            Interpretation::BaseOffset(base) => (top, base, 0),
            Interpretation::BaseOffsetOf(..) | Interpretation::Delta(_) => (top, 0, u64::MAX),
            Interpretation::Default(value) => (0, value, 0),
            Interpretation::Stride(_, stride) => (0, stride, u64::MAX),
            Interpretation::Predicted(_) => (0, 0, 0),
        };
        plan.mask = mask;
        plan.sign = sign;
        plan.base = base;
        plan.history = history;
        plan.width = width;
        plan.read = reference.unwrap_or(plan.write);
        plan.special = leaf.constant.is_some()
            || matches!(setting.interpretation, Interpretation::SectionStride(..) | Interpretation::Predicted(_));
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
        let targets = self.targets(format, position, leaf, all)?;
        for &(index, _) in &targets {
            self.check(format, index, change)?;
        }
        for (index, leaf) in targets {
            self.set(format, index, leaf, change);
        }
        Ok(())
    }

    fn targets<'f>(
        &self,
        format: &'f Format,
        position: usize,
        leaf: u8,
        all: bool,
    ) -> Result<Vec<(usize, &'f Leaf)>, ErrorKind> {
        let unknown = ErrorKind::Metadata("the record has no field of this number");
        let section = format.sections.get(self.section).ok_or(unknown)?;
        let leaves = |position: usize| {
            let record = section.records.get(position).and_then(|&r| format.records.get(usize::from(r)));
            record.map_or(&[][..], |r| &r.leaves)
        };
        let first = self.first_plan(position).ok_or(ErrorKind::Metadata("`section` and `metadata` cannot change"))?;
        let named = leaves(position).get(usize::from(leaf)).ok_or(unknown)?;
        if !named.is_settable() {
            return Err(ErrorKind::Metadata("the field is a tag, a constant or a byte array"));
        }
        if !all {
            return Ok(vec![(first + usize::from(leaf), named)]);
        }
        let mut targets = Vec::new();
        for position in 0..section.records.len() {
            let Some(first) = self.first_plan(position) else { continue };
            let same = leaves(position).iter().enumerate();
            let same = same.filter(|(_, l)| l.field == named.field && l.is_settable());
            targets.extend(same.map(|(i, l)| (first + i, l)));
        }
        Ok(targets)
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
