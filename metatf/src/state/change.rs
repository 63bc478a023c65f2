//! The changes that a metadata record may make (spec 4.1), and their effect.

use super::State;
use crate::format::{Format, Interpretation, Leaf};
use metatf_container::{ErrorKind, MetadataRule};

/// A change to a leaf's encoding, as made by a metadata record (spec 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the width.
    Width(u8),
    /// Sets the interpretation. `BaseOffsetOf` and `Predicted` cannot be set.
    Interpretation(Interpretation),
}

impl State {
    /// Applies a metadata record (spec 4.1). `position` and `leaf` identify the leaf; `all` is bit 3 of the property.
    /// If an error is returned, nothing has changed, and the error concerns the leaf that the metadata record names.
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
        let records = format.sections.get(self.encoding.section).map_or(&[][..], |section| &section.records);
        for (position, &record) in records.iter().enumerate() {
            let Some(first) = self.encoding.first_plan(position) else { continue };
            for (leaf, _) in leaves_of_field(format, record, &named.field) {
                self.check(format, first + leaf, change)?;
            }
        }
        for (position, &record) in records.iter().enumerate() {
            let Some(first) = self.encoding.first_plan(position) else { continue };
            for (leaf, named) in leaves_of_field(format, record, &named.field) {
                self.set(format, first + leaf, named, change);
            }
        }
        Ok(())
    }

    /// Returns the leaf named by a metadata record and the index of its plan.
    fn target<'f>(&self, format: &'f Format, position: usize, leaf: u8) -> Result<(usize, &'f Leaf), ErrorKind> {
        let unknown = ErrorKind::Metadata(MetadataRule::NoField);
        let section = format.sections.get(self.encoding.section).ok_or(unknown)?;
        let record = section.records.get(position).and_then(|&r| format.records.get(usize::from(r)));
        let first = self.encoding.first_plan(position).ok_or(ErrorKind::Metadata(MetadataRule::NotChangeable))?;
        let named = record.and_then(|r| r.leaves.get(usize::from(leaf))).ok_or(unknown)?;
        if !named.is_settable() {
            return Err(ErrorKind::Metadata(MetadataRule::NotSettable));
        }
        Ok((first + usize::from(leaf), named))
    }

    fn check(&self, format: &Format, index: usize, change: Change) -> Result<(), ErrorKind> {
        let Change::Interpretation(interpretation) = change else { return Ok(()) };
        let stream = |n: u8| format.section_index(n).and_then(|i| format.sections.get(i)).filter(|s| s.stream);
        match interpretation {
            Interpretation::SectionOffset(n) if stream(n).is_none() => {
                return Err(ErrorKind::Metadata(MetadataRule::OffsetTarget));
            }
            Interpretation::SectionStride(..) if self.scans(format, index) => {
                return Err(ErrorKind::Metadata(MetadataRule::ScannedRecord));
            }
            Interpretation::SectionStride(n, stride) => {
                let element = stream(n).and_then(|s| s.records.first());
                let element = element.and_then(|&r| format.records.get(usize::from(r)));
                if element.and_then(|r| r.single_number()).is_none() {
                    return Err(ErrorKind::Metadata(MetadataRule::StrideTarget));
                }
                if stride == 0 || stride > i64::MAX as u64 {
                    return Err(ErrorKind::Metadata(MetadataRule::Stride));
                }
            }
            Interpretation::BaseOffsetOf(..) => {
                return Err(ErrorKind::Metadata(MetadataRule::Reference));
            }
            Interpretation::Predicted(_) => {
                return Err(ErrorKind::Metadata(MetadataRule::Predicted));
            }
            _ => {}
        }
        if interpretation.stores() && self.encoding.remembered(index) == 0 {
            return Err(ErrorKind::Metadata(MetadataRule::NoWidth));
        }
        Ok(())
    }

    /// Returns whether the record of this plan contains items that end by their content.
    fn scans(&self, format: &Format, index: usize) -> bool {
        let records = format.sections.get(self.encoding.section).map_or(&[][..], |section| &section.records);
        records.iter().enumerate().any(|(position, &record)| {
            let record = format.records.get(usize::from(record)).filter(|record| record.scans());
            let first = self.encoding.first_plan(position);
            record.zip(first).is_some_and(|(record, first)| (first..first + record.leaves.len()).contains(&index))
        })
    }

    fn set(&mut self, format: &Format, index: usize, leaf: &Leaf, change: Change) {
        let Some(setting) = self.encoding.settings.get_mut(index) else { return };
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
                let before = std::mem::replace(&mut setting.interpretation, interpretation);
                if interpretation.stores() {
                    setting.width = setting.remembered;
                }
                if let Interpretation::Delta(initial) | Interpretation::Stride(initial, _) = interpretation {
                    let cell = self.encoding.plans.get(index).map_or(0, |p| p.write as usize);
                    if let Some(cell) = self.history.cells.get_mut(cell) {
                        *cell = initial;
                    }
                }
                if matches!(before, Interpretation::BaseOffsetOf(..) | Interpretation::Predicted(_)) {
                    self.encoding.end_references(index);
                }
            }
        }
        self.encoding.rebuild(format, index, leaf);
    }
}

/// Returns the leaves of a record that belong to this field and that metadata can set.
fn leaves_of_field<'f>(format: &'f Format, record: u16, field: &str) -> impl Iterator<Item = (usize, &'f Leaf)> {
    let leaves = format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves);
    leaves.iter().enumerate().filter(move |(_, leaf)| leaf.field == field && leaf.is_settable())
}
