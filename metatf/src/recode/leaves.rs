//! The leaves of a block: what each starts from and keeps, and its changes of encoding.

use super::codes::Codes;
use super::columns::{BlockRecords, LeafColumn, Traits, Values};
use super::leaf::{LeafSteps, MetadataBytes, Path, Setting};
use super::pinned::{self, Pins, pinned};
use super::planners::Scratch;
use super::{Plan, named, optimal};
use crate::format::Interpretation;
use crate::record::FREE_ITEMS;
use crate::state::Change;

/// What is known of a leaf at the start of a block.
#[derive(Clone, Debug)]
pub(super) struct LeafPlan {
    pub(super) settable: bool,
    pub(super) chosen: bool,
    pub(super) declared: Setting,
    pub(super) start: Setting,
    /// The last of `pins`.
    pub(super) pin: Option<Interpretation>,
    pub(super) pins: Pins,
    /// What `pin` is by the trace alone; of a block that was rehearsed.
    pub(super) input: Option<Interpretation>,
    /// What the block's values are by models, if that is known.
    pub(super) codes: Option<Codes>,
}

/// A change of a leaf's encoding before a record.
pub(super) struct Due {
    pub(super) row: u32,
    pub(super) kind: usize,
    pub(super) leaf: usize,
    pub(super) change: Change,
}

/// A leaf of a block, to be planned.
pub(super) struct LeafToPlan<'b> {
    pub(super) kind: usize,
    pub(super) leaf: usize,
    pub(super) records: &'b BlockRecords,
    pub(super) column: &'b LeafColumn,
    pub(super) traits: &'b Traits,
    pub(super) plan: &'b mut LeafPlan,
}

impl LeafToPlan<'_> {
    /// About how many steps it has: of one value all through there are few, and none where nothing is to be planned.
    pub(super) fn steps(&self) -> usize {
        match self.column.values() {
            Values::Each(values) if self.plan.codes.is_some() || !self.plan.stays() => values.len(),
            _ => 0,
        }
    }

    /// Its changes; `cells` are the previous values at the start of the block.
    pub(super) fn plan(self, cells: &[u64], metadata: MetadataBytes, plan: Plan, scratch: &mut Scratch) -> Vec<Due> {
        let Self { kind, leaf, records, column, traits, plan: plans } = self;
        let previous = cells.get(traits.cell as usize).copied().unwrap_or(0);
        let codes = plans.codes.take().filter(|_| {
            let predicted = matches!(plans.start.interpretation, Interpretation::Predicted(_));
            predicted && plans.chosen
        });
        if codes.is_none() && plans.stays() {
            return Vec::new();
        }
        let one_by_one = plans.pins.len() > 1 || codes.is_some();
        let start = (plans.start, previous);
        let sequence = LeafSteps::new(column, traits, &records.rows, start, (metadata, one_by_one), &mut scratch.steps);
        // That many items need bytes that stand for them (spec 3.3).
        let many = traits.repeated && records.most_items as u64 > FREE_ITEMS;
        let path = match many && pinned(plans.start.interpretation).is_none() && !one_by_one {
            true => pinned::path(&sequence, &vec![(0, None)], None),
            false => plans.path(&sequence, plan, codes.filter(|_| !many).as_ref(), scratch),
        };
        let due = |(step, change): (u32, Change)| {
            plans.start = plans.start.apply(change).unwrap_or(plans.start);
            let row = sequence.steps.get(step as usize).map_or(0, |s| s.row);
            Due { row, kind, leaf, change }
        };
        let dues = path.into_iter().map(due).collect();
        scratch.steps = sequence.steps;
        dues
    }
}

impl LeafPlan {
    /// A block begins, in which the leaf keeps this.
    pub(super) fn begin(&mut self, pin: Option<Interpretation>) {
        self.pin = pin;
        self.pins.clear();
        self.pins.push((0, pin));
    }

    pub(super) fn keep(&mut self, row: u32, pin: Option<Interpretation>) {
        if self.pin == pin {
            return;
        }
        self.pin = pin;
        if self.pins.last().is_some_and(|p| p.0 == row) {
            self.pins.pop();
        }
        self.pins.push((row, pin));
    }

    /// Whether its values come from a stream section or a model all through the block, as at its start: then there is nothing to
    /// change, whatever they are.
    fn stays(&self) -> bool {
        let start = self.start.interpretation;
        matches!(start, Interpretation::SectionStride(..) | Interpretation::Predicted(_))
            && self.pins.iter().all(|(_, pin)| *pin == Some(start))
    }

    fn path(&self, sequence: &LeafSteps, plan: Plan, codes: Option<&Codes>, scratch: &mut Scratch) -> Path {
        let plan = if self.chosen { plan } else { Plan::Naive };
        let start = pinned(self.start.interpretation);
        let pins = pinned::in_force(sequence, &self.pins);
        let one = pins.iter().all(|(_, pin)| *pin == start);
        match (one, start) {
            (true, None | Some(Interpretation::SectionOffset(_))) => match plan {
                Plan::Optimal => optimal::path(sequence, scratch),
                plan => named::path(plan, sequence),
            },
            _ => pinned::path(sequence, &pins, codes),
        }
    }
}
