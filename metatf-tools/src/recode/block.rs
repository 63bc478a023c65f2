//! The records of a block, which are kept until they are planned and written.

use super::Options;
use super::kept_interpretation::kept_interpretation;
use super::section_columns::SectionColumns;
use super::section_plans::SectionPlans;
use metatf::Row;
use metatf::container::{Error, ErrorKind, Result};
use metatf::format::{Format, Interpretation};
use metatf::reader::RecordReader;
use std::sync::Arc;

/// Maximum size of a block for any kind of record, in values and in bytes divided by 8. This allows a million records
/// of six values.
const BLOCK_SIZE: usize = 6 << 20;

/// A block.
pub(super) struct Block {
    format: Arc<Format>,
    pub(super) sections: Vec<SectionPlans>,
    /// The sections of the records in order, each with the number of consecutive records.
    pub(super) order: Vec<(usize, usize)>,
    held: usize,
    size: usize,
    /// Maximum number of records.
    most: usize,
}

impl Block {
    pub(super) fn new(format: &Arc<Format>, options: &Options) -> Self {
        let sections = (0..format.sections.len()).map(|s| SectionPlans::new(format, s, options)).collect();
        let most = options.block.max(1);
        Self { format: Arc::clone(format), sections, order: Vec::new(), held: 0, size: 0, most }
    }

    /// Returns whether the block is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Adds a record. Returns true if the block is full.
    pub(super) fn push<'r>(&mut self, section: usize, record: u16, row: &mut impl Row<'r>) -> Result<bool> {
        self.add(section, record, |columns, format, kind| columns.push(format, kind, row))
    }

    /// Adds the next records of a trace, up to the first event that is not a record. Returns true if the block is full.
    /// `step` is called for every record.
    pub(super) fn push_run(&mut self, reader: &mut RecordReader<'_>, step: &mut impl FnMut()) -> Result<bool> {
        while let Some(record) = reader.plain_record()? {
            step();
            let add = |columns: &mut SectionColumns, format: &Format, kind| columns.push_view(format, kind, &record);
            if self.add(record.section(), record.record(), add)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn add(
        &mut self,
        section: usize,
        record: u16,
        push: impl FnOnce(&mut SectionColumns, &Format, usize) -> Result<()>,
    ) -> Result<bool> {
        let listed = self.format.sections.get(section).filter(|s| !s.stream).map(|s| &s.records);
        let kind = listed.and_then(|r| r.iter().position(|&r| r == record));
        let (Some(kind), Some(plans)) = (kind, self.sections.get_mut(section)) else {
            return Err(Error::at(0, ErrorKind::Usage("the section has no such record")));
        };
        let before = plans.columns.size;
        push(&mut plans.columns, &self.format, kind)?;
        let size = plans.columns.size - before;
        Ok(self.note(section, 1, size))
    }

    /// Updates the totals of the block after records were added to a section. Returns true if the block is full.
    fn note(&mut self, section: usize, count: usize, size: usize) -> bool {
        self.size += size;
        self.held += count;
        match self.order.last_mut() {
            Some((last, all)) if *last == section => *all += count,
            _ => self.order.push((section, count)),
        }
        self.held >= self.most || self.size >= BLOCK_SIZE
    }

    /// See [`PlannedWriter::keep`](super::PlannedWriter::keep).
    pub(super) fn keep(&mut self, section: usize, record: u16, leaf: u8, interpretation: Interpretation) {
        let kind = self.format.sections.get(section).and_then(|s| s.records.iter().position(|&r| r == record));
        let Some(plans) = self.sections.get_mut(section) else { return };
        let row = u32::try_from(plans.columns.order.len()).unwrap_or(u32::MAX);
        let leaf = kind.and_then(|k| plans.leaves.get_mut(k)).and_then(|l| l.get_mut(usize::from(leaf)));
        if let Some(leaf) = leaf.filter(|l| l.settable) {
            leaf.keep(row, kept_interpretation(interpretation));
        }
    }

    /// Makes every leaf of a section keep its interpretation from the DTD.
    pub(super) fn keep_declared(&mut self, section: usize) {
        let Some(plans) = self.sections.get_mut(section) else { return };
        let row = u32::try_from(plans.columns.order.len()).unwrap_or(u32::MAX);
        for leaf in plans.leaves.iter_mut().flatten() {
            leaf.keep(row, kept_interpretation(leaf.declared.interpretation));
        }
    }

    /// Makes all leaves keep their interpretations from the DTD, because a group begins.
    pub(super) fn start_group(&mut self) {
        for section in 0..self.sections.len() {
            self.keep_declared(section);
        }
    }

    /// Empties the block. If `resets` is set, the next block starts from the DTD's state; otherwise, it continues with
    /// the current state.
    pub(super) fn clear(&mut self, resets: bool) {
        for plan in &mut self.sections {
            plan.next_block(&self.format, resets);
        }
        self.order.clear();
        self.held = 0;
        self.size = 0;
    }

    /// Empties the block and makes it the successor of `before`, with reset state. Leaves keep their interpretations.
    pub(super) fn go_on(&mut self, before: &Self) {
        let leaves = |block: &Self| block.sections.iter().map(|s| s.leaves.len()).sum::<usize>();
        debug_assert_eq!(leaves(self), leaves(before), "blocks of one format");
        let all = before.sections.iter().flat_map(|plans| plans.leaves.iter().flatten());
        for (leaf, before) in self.sections.iter_mut().flat_map(|plans| plans.leaves.iter_mut().flatten()).zip(all) {
            leaf.begin(before.kept);
        }
    }
}
