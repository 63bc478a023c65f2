//! The values of one leaf in a block, as a sequence of steps from record to record for planners.

use super::leaf_column::{LeafColumn, Traits, Values};
use super::plan_step::{PlanStep, fits, signed, still, unsigned};
use super::setting::{MetadataBytes, Path, Setting, change_cost};
use metatf::Change;
use metatf::container::memory;
use metatf::format::Interpretation;

/// A summary of all steps of a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSummary {
    /// The minimum and maximum value.
    pub(crate) extremes: (u64, u64),
    /// A bit set, 1 << 0 to 1 << 8, of the widths in bytes that any step needs in any encoding.
    pub(crate) needs: u16,
}

/// All information needed to plan a leaf in a block.
#[derive(Debug)]
pub(crate) struct LeafSteps {
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) start: Setting,
    /// Whether `delta` and `stride` may be set. This requires that no earlier leaf of the record uses the same previous
    /// value.
    pub(crate) may_set_previous: bool,
    /// Whether the leaf occurs once in a record.
    pub(crate) single: bool,
    pub(crate) metadata: MetadataBytes,
    /// Whether records that repeat a value can be merged. They cannot be merged if the base is another leaf's value.
    mergeable: bool,
}

/// Maximum number of records merged into a run.
pub(crate) const LONGEST_RUN: u32 = 1 << 16;

impl LeafSteps {
    /// Builds the steps of a leaf's column. `start` is the current setting, and `previous` is the leaf's previous value
    /// before the block. Records that repeat a value may be merged unless `one_by_one` is set. The memory of `room` is
    /// reused for the steps.
    pub(crate) fn new(
        column: &LeafColumn,
        traits: &Traits,
        rows: &[u32],
        (start, previous): (Setting, u64),
        (metadata, one_by_one): (MetadataBytes, bool),
        room: &mut Vec<PlanStep>,
    ) -> Self {
        let mut steps = std::mem::take(room);
        steps.clear();
        let mut sequence = Self {
            steps,
            start,
            may_set_previous: !traits.behind,
            single: !traits.repeated,
            metadata,
            mergeable: !one_by_one && !traits.repeated && column.reference.is_empty(),
        };
        // A block starts without a last value, so `same` compares with the DTD's default.
        let mut last = match start.interpretation {
            Interpretation::Default(value) => value,
            _ => previous,
        };
        let spread;
        let values = match column.values() {
            Values::Same(value, count) if sequence.mergeable => {
                sequence.repeated((value, count), rows, (previous, last));
                return sequence;
            }
            Values::Each(values) if sequence.mergeable && column.previous.is_empty() => {
                sequence.plain(values, rows, (previous, last));
                return sequence;
            }
            Values::Same(value, count) => {
                spread = vec![value; count];
                &spread
            }
            Values::Each(values) => values,
        };
        let mut begin = 0;
        for (i, &row) in rows.iter().enumerate() {
            let end = if traits.repeated { column.ends.get(i).map_or(begin, |&e| e as usize) } else { i + 1 };
            let range = begin..end.max(begin);
            begin = range.end;
            if range.is_empty() {
                continue;
            }
            let step = sequence.step((column, values), range, row, (previous, last));
            last = step.last;
            sequence.push(step);
        }
        sequence
    }

    /// Adds the steps of a leaf that occurs once in a record and does not share its previous value, as for most leaves.
    fn plain(&mut self, values: &[u64], rows: &[u32], (mut previous, mut last): (u64, u64)) {
        memory::reserve(&mut self.steps, values.len());
        let mut at = 0;
        while let (Some(&value), Some(&row)) = (values.get(at), rows.get(at)) {
            let step = PlanStep::of(value, row, (previous, last));
            self.steps.push(step);
            (previous, last) = (value, value);
            let rest = values.get(at + 1..).unwrap_or_default();
            let more = rest.iter().take_while(|&&v| v == value).count();
            self.again(step, rows.get(at + 1..at + 1 + more).unwrap_or_default());
            at += 1 + more;
        }
    }

    /// Adds the same steps as `plain` for a value that is repeated this many times.
    fn repeated(&mut self, (value, count): (u64, usize), rows: &[u32], before: (u64, u64)) {
        if let Some((&first, rest)) = rows.get(..count).and_then(|rows| rows.split_first()) {
            let step = PlanStep::of(value, first, before);
            self.steps.push(step);
            self.again(step, rest);
        }
    }

    /// Adds records that repeat a step's value, as a first step, a run and a last step.
    #[inline(always)]
    fn again(&mut self, step: PlanStep, rows: &[u32]) {
        let again = PlanStep { difference: 0, delta: 0, same: true, ..step };
        let mut at = 0;
        while let Some(&row) = rows.get(at) {
            let left = u32::try_from(rows.len() - at).unwrap_or(u32::MAX);
            let run = if at == 0 || left == 1 { 1 } else { (left - 1).min(LONGEST_RUN) };
            self.steps.push(PlanStep { row, items: run, run: run > 1, ..again });
            at += run as usize;
        }
    }

    #[inline]
    fn step(
        &self,
        (column, all): (&LeafColumn, &[u64]),
        range: std::ops::Range<usize>,
        row: u32,
        (previous, last): (u64, u64),
    ) -> PlanStep {
        let values = all.get(range.clone()).unwrap_or_default();
        let first = values.first().copied().unwrap_or(0);
        let mut step = PlanStep { row, items: 0, first, last: first, least: first, most: first, ..PlanStep::default() };
        step.uniform = true;
        for (i, &value) in range.clone().zip(values) {
            let before = match (column.previous.get(i), i.checked_sub(1)) {
                (Some(&previous), _) => previous,
                (None, Some(before)) => all.get(before).copied().unwrap_or(0),
                (None, None) => previous,
            };
            let difference = value.wrapping_sub(before);
            let delta = signed(difference);
            if step.items == 0 {
                step.difference = difference;
            } else {
                step.delta_entry = step.delta_entry.max(delta);
            }
            step.items += 1;
            step.delta = step.delta.max(delta);
            step.none = step.none.max(unsigned(value));
            let base = column.reference.get(i).copied().or(match self.start.interpretation {
                Interpretation::BaseOffset(base) => Some(base),
                _ => None,
            });
            if let Some(base) = base {
                step.reference = step.reference.max(signed(value.wrapping_sub(base)));
            }
            step.least = step.least.min(value);
            step.most = step.most.max(value);
            step.uniform &= value == first;
            step.last = value;
        }
        step.same = step.uniform && first == last;
        step
    }

    /// Returns the stride that may start at a step if another step follows. A stride of 0 is excluded, because
    /// `default` is equivalent and shorter.
    #[inline(always)]
    pub(crate) fn stride(&self, step: &PlanStep, next: Option<&PlanStep>) -> Option<u64> {
        if !self.may_set_previous || !self.single || step.run {
            return None;
        }
        next.map(|next| next.difference).filter(|&stride| stride != 0)
    }

    /// Returns the stride that may start at the step with this index.
    pub(crate) fn stride_from(&self, at: usize) -> Option<u64> {
        self.stride(self.steps.get(at)?, self.steps.get(at + 1))
    }

    /// Returns whether metadata can restore the leaf's initial interpretation.
    pub(crate) fn start_is_settable(&self) -> bool {
        match self.start.interpretation {
            Interpretation::BaseOffsetOf(..) => false,
            Interpretation::Delta(_) | Interpretation::Stride(..) => self.may_set_previous,
            _ => true,
        }
    }

    /// Summarizes all steps.
    pub(crate) fn summary(&self) -> StepSummary {
        let referenced = matches!(self.start.interpretation, Interpretation::BaseOffsetOf(..));
        let base = match self.start.interpretation {
            Interpretation::BaseOffset(base) => Some(base),
            _ => None,
        };
        let mut sum = StepSummary { extremes: (u64::MAX, 0), needs: 0 };
        for step in &self.steps {
            sum.extremes = (sum.extremes.0.min(step.least), sum.extremes.1.max(step.most));
            sum.needs |= 1 << (step.none & 15) | 1 << (step.delta & 15) | 1 << (step.delta_entry & 15);
            if referenced {
                sum.needs |= 1 << (step.reference & 15);
            } else if let Some(base) = base {
                sum.needs |= 1 << (step.offset(base).unwrap_or(step.reference) & 15);
            }
        }
        sum
    }

    /// Adds a step. If three or more consecutive steps are equal for every encoding, the steps between the first and
    /// the last form a run. Costs grow evenly within a run, so a change within a run is never better than a change at
    /// one of its ends.
    #[inline]
    fn push(&mut self, step: PlanStep) {
        if !self.mergeable || !still(&step) {
            self.steps.push(step);
            return;
        }
        let n = self.steps.len();
        match (n.checked_sub(2).and_then(|i| self.steps.get(i).copied()), self.steps.last().copied()) {
            // If the steps end with a first step, a run and a last step, the previous last step joins the run.
            (Some(before), Some(last)) if before.run && before.items < LONGEST_RUN && still(&last) => {
                if let Some(run) = self.steps.get_mut(n - 2) {
                    run.items += last.items;
                }
                if let Some(slot) = self.steps.last_mut() {
                    *slot = step;
                }
            }
            // If the steps end with a first step and a last step, the previous last step becomes a run of one record.
            (Some(before), Some(last)) if still(&before) && still(&last) && !last.run => {
                if let Some(slot) = self.steps.last_mut() {
                    slot.run = true;
                }
                self.steps.push(step);
            }
            _ => self.steps.push(step),
        }
    }

    /// Returns the number of bytes that a leaf stores along a path, including its metadata. Returns `None` if a value
    /// does not fit or a change is not allowed. Writers must produce exactly this size.
    pub(crate) fn cost(&self, path: &Path) -> Option<u64> {
        let mut setting = self.start;
        let mut changes = path.iter().peekable();
        let mut total = 0_u64;
        for (i, step) in self.steps.iter().enumerate() {
            // The value to which a delta or stride was set right before the step.
            let mut previous = None;
            while let Some((_, change)) = changes.next_if(|(at, _)| *at as usize == i) {
                total += u64::from(change_cost(self.metadata, *change));
                setting = setting.apply(*change)?;
                if let Change::Interpretation(Interpretation::Delta(initial) | Interpretation::Stride(initial, _)) =
                    change
                {
                    previous = Some(*initial);
                }
            }
            if !fits(step, &setting, previous) {
                return None;
            }
            if setting.interpretation.stores() {
                total += u64::from(setting.width) * u64::from(step.items);
            }
        }
        changes.next().is_none().then_some(total)
    }
}
