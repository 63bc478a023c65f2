//! A section of the block being planned, with its records and the initial state of its leaves.

use super::column_encoder::ColumnEncoder;
use super::kept_interpretation::kept_interpretation;
use super::leaf_plan::{LeafPlan, LeafToPlan, PlannedChange};
use super::planners::Planners;
use super::section_columns::SectionColumns;
use super::setting::{MetadataBytes, Setting};
use super::{Options, Plan};
use metatf::format::{Format, LeafKind};

/// A section of the current block.
pub(super) struct SectionPlans {
    pub(super) columns: SectionColumns,
    /// For each kind and leaf, the encoding at the start of the block (in version 0, at the end of the previous block),
    /// the interpretation that the leaf keeps, and whether the plan applies to the leaf.
    pub(super) leaves: Vec<Vec<LeafPlan>>,
    /// Whether to reset the section before the next record.
    pub(super) reset: bool,
}

impl SectionPlans {
    pub(super) fn new(format: &Format, section: usize, options: &Options) -> Self {
        let columns = SectionColumns::new(format, section);
        let records = format.sections.get(section).map_or(&[][..], |s| &s.records);
        let leaves = records.iter().zip(&columns.kinds).map(|(&record, kind)| {
            let record = format.records.get(usize::from(record));
            let leaves = record.map_or(&[][..], |r| &r.leaves).iter().take(kind.columns.len());
            leaves.map(move |leaf| {
                let declared = Setting::of(leaf);
                let kept = kept_interpretation(declared.interpretation);
                // The writer itself sets a value from a file's header.
                let settable = leaf.is_settable() && leaf.header.is_none();
                LeafPlan {
                    settable: settable && matches!(leaf.kind, LeafKind::Number { .. }),
                    chosen: record.is_some_and(|r| super::is_chosen(r, leaf, &options.fields)),
                    declared,
                    start: declared,
                    kept,
                    kept_runs: vec![(0, kept)],
                    input: kept,
                    codes: None,
                }
            })
        });
        let leaves = leaves.map(Iterator::collect).collect();
        Self { columns, leaves, reset: false }
    }

    /// Returns the changes of the block, sorted by record and, within a record, by leaf in descending order. If leaves
    /// share a previous value, the last change to it is therefore the one for the first leaf that uses it.
    pub(super) fn plan(&mut self, metadata: MetadataBytes, plan: Plan, planners: &mut Planners) -> Vec<PlannedChange> {
        let mut leaves = Vec::new();
        for (kind, (records, plans)) in self.columns.kinds.iter().zip(&mut self.leaves).enumerate() {
            let columns = records.columns.iter().zip(&records.traits);
            for (leaf, ((column, traits), plan)) in columns.zip(plans).enumerate() {
                if plan.settable && !column.values().is_empty() {
                    leaves.push(LeafToPlan { kind, leaf, records, column, traits, plan });
                }
            }
        }
        let cells = &self.columns.start_cells;
        let changes =
            planners.each(leaves, LeafToPlan::steps, |leaf, scratch| leaf.plan(cells, metadata, plan, scratch));
        let mut changes: Vec<PlannedChange> = changes.into_iter().flatten().collect();
        changes.sort_by_key(|change| (change.row, std::cmp::Reverse(change.leaf)));
        changes
    }

    /// Returns encoders for the records. `changes` are the planned changes.
    pub(super) fn encoders(&self, format: &Format, changes: &[PlannedChange]) -> Vec<ColumnEncoder> {
        let mut encoders = self.columns.encoders(format);
        for change in changes {
            let first = self.columns.kinds.get(change.kind).and_then(|kind| kind.rows.first());
            if let Some(encoder) = encoders.get_mut(change.kind).filter(|_| first != Some(&change.row)) {
                encoder.changes(change.leaf);
            }
        }
        encoders
    }

    /// Prepares to plan the block again from the DTD's state.
    pub(super) fn begin_again(&mut self) {
        for leaf in self.leaves.iter_mut().flatten() {
            leaf.start = leaf.declared;
        }
    }

    pub(super) fn next_block(&mut self, format: &Format, resets: bool) {
        if resets {
            self.columns.reset(format);
            self.begin_again();
        } else {
            self.columns.clear();
        }
        for leaf in self.leaves.iter_mut().flatten() {
            leaf.begin(leaf.kept);
        }
    }
}
