//! The named plans of section 3.3 of the paper, for any leaf. Each plan passes through a leaf's values once and looks
//! ahead to the end of a run. A run is encoded if it saves more than the surrounding metadata records cost, that is, if
//! it exceeds its *break-even* length. A metadata record consists of the tag and the record (the tag's width each), the
//! field, the property, and the values in as few bytes as possible.
//!
//! | plan | effect |
//! | --- | --- |
//! | naive | mandatory changes only: a width that is too small grows to 1, 2, 4 or 8 for good; a leaf that stores nothing becomes `none` |
//! | small size | widths 1, 2, 4 and 8: narrows if the values before the next wide one make it worthwhile |
//! | same size | while `none`: a run of one value becomes `default`, followed by `none` |
//! | combined size | both: compares a run of one value with the narrow width |
//! | base offset 1, 2 | while `none`: a run of values within 1 (2) bytes of a base becomes `baseOffset`, then `none` again |
//! | best base offset | the one of the two that saves more at each place |
//! | stride | while `none`: a run of values with a constant difference becomes `stride`, followed by `none` |
//! | best | the plan above with the fewest bytes, for each leaf |

use super::leaf_steps::LeafSteps;
use super::plan::Plan;
use super::plan_step::{PlanStep, base, fits, half};
use super::setting::{Path, Setting, change_cost};
use metatf::Change;
use metatf::format::Interpretation;

/// Returns the path of a named plan for a leaf.
pub(crate) fn path(plan: Plan, sequence: &LeafSteps) -> Path {
    let single = [
        Plan::Naive,
        Plan::SmallSize,
        Plan::SameSize,
        Plan::CombinedSize,
        Plan::BaseOffset1,
        Plan::BaseOffset2,
        Plan::BestBaseOffset,
        Plan::Stride,
    ];
    match plan {
        Plan::Best | Plan::Optimal => {
            let paths = single.map(|plan| PathWalk::new(plan, sequence).run());
            let cost = |path: &Path| sequence.cost(path).unwrap_or(u64::MAX);
            paths.into_iter().min_by_key(cost).unwrap_or_default()
        }
        plan => PathWalk::new(plan, sequence).run(),
    }
}

/// A run with a different encoding, from the current step up to `end`, after which the old encoding returns.
struct EncodingRun {
    end: usize,
    enter: [Option<Change>; 2],
    leave: [Option<Change>; 2],
    /// The bytes saved, minus the bytes of the run's metadata.
    gain: i64,
}

struct PathWalk<'s> {
    sequence: &'s LeafSteps,
    setting: Setting,
    path: Path,
    narrows: bool,
    same: bool,
    offsets: &'static [u8],
    strides: bool,
    /// The next step that does not fit in widths 1, 2 and 4, used for narrowing.
    wider: Vec<[u32; 3]>,
    /// The number of occurrences before each step.
    items: Vec<u64>,
}

const WIDTHS: [u8; 3] = [1, 2, 4];

impl<'s> PathWalk<'s> {
    fn new(plan: Plan, sequence: &'s LeafSteps) -> Self {
        let offsets: &[u8] = match plan {
            Plan::BaseOffset1 => &[1],
            Plan::BaseOffset2 => &[2],
            Plan::BestBaseOffset => &[1, 2],
            _ => &[],
        };
        let mut items = vec![0];
        let mut sum = 0;
        for step in &sequence.steps {
            sum += u64::from(step.items);
            items.push(sum);
        }
        Self {
            sequence,
            setting: sequence.start,
            path: Vec::new(),
            narrows: matches!(plan, Plan::SmallSize | Plan::CombinedSize),
            same: matches!(plan, Plan::SameSize | Plan::CombinedSize),
            offsets,
            strides: plan == Plan::Stride && sequence.may_set_previous && sequence.single,
            wider: Vec::new(),
            items,
        }
    }

    fn run(mut self) -> Path {
        let mut at = 0;
        while let Some(step) = self.sequence.steps.get(at) {
            if let Some(run) = self.best_run(at, step) {
                self.changes(at, &run.enter);
                at = run.end;
                if at < self.sequence.steps.len() {
                    self.changes(at, &run.leave);
                }
                continue;
            }
            if self.narrows {
                self.narrow(at, step);
            }
            self.fit(at, step);
            at += 1;
        }
        self.path
    }

    fn change(&mut self, at: usize, change: Change) {
        if let Some(setting) = self.setting.apply(change) {
            self.setting = setting;
            self.path.push((u32::try_from(at).unwrap_or(u32::MAX), change));
        }
    }

    fn changes(&mut self, at: usize, changes: &[Option<Change>]) {
        for change in changes.iter().flatten() {
            self.change(at, *change);
        }
    }

    fn cost(&self, change: Change) -> i64 {
        change_cost(self.sequence.metadata, change).into()
    }

    /// Returns the number of bytes (1, 2, 4 or 8) that a step needs with the current interpretation.
    fn need(&self, step: &PlanStep) -> u8 {
        need(step, self.setting.interpretation)
    }

    /// Changes the encoding if a value does not fit, as a writer must.
    fn fit(&mut self, at: usize, step: &PlanStep) {
        if fits(step, &self.setting, None) {
            return;
        }
        if !self.setting.interpretation.stores() {
            let needs = need(step, Interpretation::None);
            if self.setting.remembered < needs {
                self.change(at, Change::Width(needs));
            }
            self.change(at, Change::Interpretation(Interpretation::None));
        }
        let needs = self.need(step);
        if self.setting.width < needs {
            self.change(at, Change::Width(needs));
        }
    }

    /// Reduces the width if this pays off before the next value that needs more bytes.
    fn narrow(&mut self, at: usize, step: &PlanStep) {
        let needs = self.need(step);
        if !self.setting.interpretation.stores() || needs >= self.setting.width {
            return;
        }
        let interpretation = self.setting.interpretation;
        if self.wider.is_empty() {
            self.wider = wider(self.sequence, interpretation);
        }
        let column = WIDTHS.iter().position(|&w| w == needs).unwrap_or(0);
        let end = self.wider.get(at).map_or(at + 1, |ends| ends[column] as usize);
        let records = i64::try_from(self.items_between(at, end)).unwrap_or(i64::MAX);
        let back = if end < self.sequence.steps.len() { 2 } else { 1 };
        let saved = records.saturating_mul(i64::from(self.setting.width - needs));
        if saved > back * self.cost(Change::Width(needs)) {
            self.change(at, Change::Width(needs));
        }
    }

    fn items_between(&self, from: usize, to: usize) -> u64 {
        let at = |i: usize| self.items.get(i).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// Returns the run starting here that saves the most bytes, if any run saves bytes.
    fn best_run(&self, at: usize, step: &PlanStep) -> Option<EncodingRun> {
        if self.setting.interpretation != Interpretation::None {
            return None;
        }
        let same = self.same.then(|| self.same_run(at, step)).flatten();
        let strides = self.strides.then(|| self.stride_run(at, step)).flatten();
        let offsets = self.offsets.iter().filter_map(|&width| self.offset_run(at, step, width));
        let runs = same.into_iter().chain(strides).chain(offsets);
        runs.filter(|run| run.gain > 0).reduce(|a, b| if b.gain > a.gain { b } else { a })
    }

    /// Returns the number of bytes that the steps of a run would take as `none`, with the current width or, if needed,
    /// a larger width.
    fn stored(&self, at: usize, end: usize, step: &PlanStep) -> i64 {
        let needs = need(step, Interpretation::None);
        let width = if self.narrows { needs } else { needs.max(self.setting.width) };
        i64::try_from(self.items_between(at, end)).unwrap_or(i64::MAX).saturating_mul(width.into())
    }

    fn leave(&self, end: usize) -> i64 {
        if end < self.sequence.steps.len() { self.cost(NONE) } else { 0 }
    }

    fn same_run(&self, at: usize, step: &PlanStep) -> Option<EncodingRun> {
        if !step.uniform {
            return None;
        }
        let more = self.sequence.steps.get(at + 1..).unwrap_or_default().iter().take_while(|s| s.same).count();
        let end = at + 1 + more;
        let enter = Change::Interpretation(Interpretation::Default(step.first));
        let gain = self.stored(at, end, step) - self.cost(enter) - self.leave(end);
        Some(EncodingRun { end, enter: [Some(enter), None], leave: [Some(NONE), None], gain })
    }

    fn stride_run(&self, at: usize, step: &PlanStep) -> Option<EncodingRun> {
        let next = self.sequence.steps.get(at + 1)?;
        let stride = next.difference;
        let steps = self.sequence.steps.get(at + 1..).unwrap_or_default().iter();
        let end = at + 1 + steps.take_while(|s| s.difference == stride && (!s.run || stride == 0)).count();
        if step.run && stride != 0 {
            return None;
        }
        let enter = Change::Interpretation(Interpretation::Stride(step.first.wrapping_sub(stride), stride));
        let gain = self.stored(at, end, step) - self.cost(enter) - self.leave(end);
        Some(EncodingRun { end, enter: [Some(enter), None], leave: [Some(NONE), None], gain })
    }

    fn offset_run(&self, at: usize, step: &PlanStep, width: u8) -> Option<EncodingRun> {
        if need(step, Interpretation::None) <= width {
            return None;
        }
        let reach = half(width) * 2 - 1;
        let (mut least, mut most, mut end) = (u64::MAX, 0, at);
        for step in self.sequence.steps.get(at..).unwrap_or_default() {
            let (low, high) = (least.min(step.least), most.max(step.most));
            if high - low > reach {
                break;
            }
            (least, most, end) = (low, high, end + 1);
        }
        if end == at {
            return None;
        }
        let base = Change::Interpretation(Interpretation::BaseOffset(base(most, width)));
        let back = self.setting.width;
        let narrow = (back != width).then_some(Change::Width(width));
        let widen = (back != width).then_some(Change::Width(back));
        let widths = narrow.map_or(0, |change| self.cost(change));
        let leave = if end < self.sequence.steps.len() { self.cost(NONE) + widths } else { 0 };
        let kept = i64::try_from(self.items_between(at, end)).unwrap_or(i64::MAX).saturating_mul(width.into());
        let gain = self.stored(at, end, step) - kept - self.cost(base) - widths - leave;
        // Set the width first, because only a width that was set is remembered.
        Some(EncodingRun { end, enter: [narrow, Some(base)], leave: [widen, Some(NONE)], gain })
    }
}

const NONE: Change = Change::Interpretation(Interpretation::None);

/// Returns the number of bytes (1, 2, 4 or 8, as in the paper) that a step needs with an interpretation.
fn need(step: &PlanStep, interpretation: Interpretation) -> u8 {
    let bytes = match interpretation {
        Interpretation::Delta(_) => step.delta,
        Interpretation::BaseOffset(base) => step.offset(base).unwrap_or(8),
        Interpretation::BaseOffsetOf(..) => step.reference,
        _ => step.none,
    };
    bytes.max(1).next_power_of_two()
}

/// Returns, for each step and width, the first step at or after this step that needs more bytes.
fn wider(sequence: &LeafSteps, interpretation: Interpretation) -> Vec<[u32; 3]> {
    let n = u32::try_from(sequence.steps.len()).unwrap_or(u32::MAX);
    let mut ends = vec![[n; 3]; sequence.steps.len()];
    let mut next = [n; 3];
    for (i, step) in sequence.steps.iter().enumerate().rev() {
        let needs = need(step, interpretation);
        for (end, width) in next.iter_mut().zip(WIDTHS) {
            if needs > width {
                *end = u32::try_from(i).unwrap_or(n);
            }
        }
        if let Some(slot) = ends.get_mut(i) {
            *slot = next;
        }
    }
    ends
}
