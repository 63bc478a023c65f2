//! The leaves of a block, with their initial states, the interpretations that they keep, and their encoding changes.

use super::codes::Codes;
use super::kept_interpretation::{self, KeptRuns, kept_interpretation};
use super::leaf_column::{BlockRecords, LeafColumn, Traits, Values};
use super::leaf_steps::LeafSteps;
use super::planners::Scratch;
use super::setting::{MetadataBytes, Path, Setting};
use super::{Plan, optimal, paper_plans};
use metatf::Change;
use metatf::format::Interpretation;
use metatf::internals::FREE_ITEMS;

/// The state of a leaf at the start of a block.
#[derive(Clone, Debug)]
pub(super) struct LeafPlan {
    pub(super) settable: bool,
    pub(super) chosen: bool,
    pub(super) declared: Setting,
    pub(super) start: Setting,
    /// The last interpretation of `kept_runs`.
    pub(super) kept: Option<Interpretation>,
    pub(super) kept_runs: KeptRuns,
    /// The value of `kept` before the block was encoded as a trial, which is the interpretation in the input trace.
    pub(super) input: Option<Interpretation>,
    /// The codes of the block's values, if known.
    pub(super) codes: Option<Codes>,
}

/// A change to a leaf's encoding before a record.
pub(super) struct PlannedChange {
    pub(super) row: u32,
    pub(super) kind: usize,
    pub(super) leaf: usize,
    pub(super) change: Change,
}

/// A leaf of a block to plan.
pub(super) struct LeafToPlan<'b> {
    pub(super) kind: usize,
    pub(super) leaf: usize,
    pub(super) records: &'b BlockRecords,
    pub(super) column: &'b LeafColumn,
    pub(super) traits: &'b Traits,
    pub(super) plan: &'b mut LeafPlan,
}

impl LeafToPlan<'_> {
    /// Returns the approximate number of steps. This is small if all values are equal, and 0 if there is nothing to
    /// plan.
    pub(super) fn steps(&self) -> usize {
        match self.column.values() {
            Values::Each(values) if self.plan.codes.is_some() || !self.plan.stays() => values.len(),
            _ => 0,
        }
    }

    /// Returns the leaf's changes. `cells` are the previous values at the start of the block.
    pub(super) fn plan(
        self,
        cells: &[u64],
        metadata: MetadataBytes,
        plan: Plan,
        scratch: &mut Scratch,
    ) -> Vec<PlannedChange> {
        let Self { kind, leaf, records, column, traits, plan: plans } = self;
        let previous = cells.get(traits.cell as usize).copied().unwrap_or(0);
        let codes = plans.codes.take().filter(|_| {
            let predicted = matches!(plans.start.interpretation, Interpretation::Predicted(_));
            predicted && plans.chosen
        });
        if codes.is_none() && plans.stays() {
            return Vec::new();
        }
        let one_by_one = plans.kept_runs.len() > 1 || codes.is_some();
        let start = (plans.start, previous);
        let sequence = LeafSteps::new(column, traits, &records.rows, start, (metadata, one_by_one), &mut scratch.steps);
        // A record with this many items must store bytes for every item (spec 3.3).
        let many = traits.repeated && records.most_items as u64 > FREE_ITEMS;
        let path = match many && kept_interpretation(plans.start.interpretation).is_none() && !one_by_one {
            true => kept_interpretation::path(&sequence, &vec![(0, None)], None),
            false => plans.path(&sequence, plan, codes.filter(|_| !many).as_ref(), scratch),
        };
        let planned = |(step, change): (u32, Change)| {
            plans.start = plans.start.apply(change).unwrap_or(plans.start);
            let row = sequence.steps.get(step as usize).map_or(0, |s| s.row);
            PlannedChange { row, kind, leaf, change }
        };
        let changes = path.into_iter().map(planned).collect();
        scratch.steps = sequence.steps;
        changes
    }
}

impl LeafPlan {
    /// Starts a block in which the leaf must keep `kept`, if it is set.
    pub(super) fn begin(&mut self, kept: Option<Interpretation>) {
        self.kept = kept;
        self.kept_runs.clear();
        self.kept_runs.push((0, kept));
    }

    pub(super) fn keep(&mut self, row: u32, kept: Option<Interpretation>) {
        if self.kept == kept {
            return;
        }
        self.kept = kept;
        if self.kept_runs.last().is_some_and(|p| p.0 == row) {
            self.kept_runs.pop();
        }
        self.kept_runs.push((row, kept));
    }

    /// Returns whether a stream section or a model provides the leaf's values throughout the block. If so, nothing has
    /// to be changed, regardless of the values.
    fn stays(&self) -> bool {
        let start = self.start.interpretation;
        matches!(start, Interpretation::SectionStride(..) | Interpretation::Predicted(_))
            && self.kept_runs.iter().all(|(_, kept)| *kept == Some(start))
    }

    fn path(&self, sequence: &LeafSteps, plan: Plan, codes: Option<&Codes>, scratch: &mut Scratch) -> Path {
        let plan = if self.chosen { plan } else { Plan::Naive };
        let start = kept_interpretation(self.start.interpretation);
        let kept_runs = kept_interpretation::in_force(sequence, &self.kept_runs);
        let one = kept_runs.iter().all(|(_, kept)| *kept == start);
        match (one, start) {
            (true, None | Some(Interpretation::SectionOffset(_))) => match plan {
                Plan::Optimal => optimal::path(sequence, scratch),
                plan => paper_plans::path(plan, sequence),
            },
            _ => kept_interpretation::path(sequence, &kept_runs, codes),
        }
    }
}
