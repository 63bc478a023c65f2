//! Finds the cheapest path of one leaf through a block. It is a shortest path over *modes*, and exact for the modes
//! tried.
//!
//! A mode is an interpretation with its width and the remembered width of the leaf (the width that `none` returns to,
//! spec 4):
//!
//! - `none`, `delta`, and the leaf's initial interpretation in the DTD (a referenced base can only be kept, not set),
//!   each with every width from 0 to 8 that a step requires
//! - `default` with the next value, and `stride` with the difference of the next two values
//! - `baseOffset` with 1 to 3 bytes and any base that fits the following run of values: a *window*, see
//!   `offset_windows`
//!
//! A step costs the bytes it stores. A switch costs its metadata records: one record for a change of interpretation,
//! and another record for a change of width unless the remembered width is right. `delta` is set to the next value, so
//! the first difference is 0. The cost of a switch depends only on the interpretation and the remembered width of its
//! source, so only the best source of each kind must be considered, and the work is proportional to steps times modes.
//! Modes that differ only in their width are stored next to each other; see `lanes`.

use super::lanes::{Any, Cost, Eight, Lanes};
use super::leaf_steps::LeafSteps;
use super::offset_windows::Windows;
use super::path_modes::{Modes, PathMode, StoredAs, families, widths};
use super::plan_step::PlanStep;
use super::planners::Scratch;
use super::setting::Path;
use metatf::container::memory;
use metatf::format::Interpretation;

/// Maximum number of occurrences to count in a step, so that costs stay in range. Runs never contain more occurrences,
/// and single records rarely do.
const MOST_ITEMS: u32 = super::leaf_steps::LONGEST_RUN;

/// Threshold in bytes: when the cost of the cheapest mode reaches it, that cost is subtracted from the costs of all
/// modes. The limit leaves room for a switch between any two modes.
const REBASE: u32 = 40;

/// Returns the cheapest path of a leaf.
pub(super) fn path(sequence: &LeafSteps, scratch: &mut Scratch) -> Path {
    if sequence.steps.is_empty() {
        return Path::new();
    }
    let summary = sequence.summary();
    let mut begins = std::mem::take(&mut scratch.begins);
    memory::reserve(&mut begins, sequence.steps.len());
    let windows = Windows::new(summary.extremes, begins);
    let widths = widths(sequence.start, summary.needs, &windows);
    let families = families(sequence);
    // 16-bit costs are not enough in two cases: an interpretation that can be kept but not set again may save any
    // number of bytes, and a record of many items may take many bytes in every mode. A run of many records is no
    // problem, because it costs nothing as `default`.
    let small = sequence.single && families.iter().all(|f| f.settable || f.interpretation == Interpretation::Delta(0));
    let small = small && sequence.start_is_settable();
    match (small, widths.len(), families.len()) {
        (true, 0..=8, 0..=2) => Search::<Eight, 8, 2>::new(sequence, &families, windows, widths).run(scratch),
        (true, ..) => Search::<Any<i16, 16>, 16, 3>::new(sequence, &families, windows, widths).run(scratch),
        (false, ..) => Search::<Any<i32, 12>, 12, 3>::new(sequence, &families, windows, widths).run(scratch),
    }
}

/// `N` is the number of lanes, at least the number of widths. `F` is the maximum number of families.
struct Search<'s, L: Lanes<N>, const N: usize, const F: usize> {
    modes: Modes<'s, N, F>,
    /// The number of bytes stored in each lane.
    bytes: [u32; N],
    /// The cost of one occurrence in each lane.
    one: L,
    /// For each required number of bytes, `NEVER` in the lanes with a smaller width or no width.
    narrower: [L; 16],
    windows: Windows,
    /// Whether to try windows, and interpretations that store nothing.
    others: bool,
}

/// The costs of the modes after a step, by kind. The low byte of each cost is the number of its mode.
#[derive(Clone, Copy)]
struct Costs<L: Lanes<N>, const N: usize, const F: usize> {
    full: [L; F],
    zero: [L; F],
    default: L,
    stride: L,
    begun: L,
}

/// The cheapest modes to switch from, each with its number in the low byte of its cost.
struct Sources<L: Lanes<N>, const N: usize, const F: usize> {
    /// The cheapest mode for each remembered width.
    by_width: L,
    by_family: [L::Cost; F],
    all: L::Cost,
}

/// The predecessors of the modes after a step, with a row for each kind.
type Origins<'f, const N: usize> = &'f mut [[u8; N]];

impl<'s, L: Lanes<N>, const N: usize, const F: usize> Search<'s, L, N, F> {
    fn new(sequence: &'s LeafSteps, families: &[StoredAs], windows: Windows, widths: Vec<u8>) -> Self {
        let mut bytes = [0; N];
        for (lane, &width) in bytes.iter_mut().zip(&widths) {
            *lane = u32::from(width);
        }
        Self {
            modes: Modes::new(sequence, families, widths),
            one: L::of(|lane| Cost::bytes(bytes[lane])),
            narrower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8]
                .map(|need: u32| L::of(|lane| Cost::never(bytes[lane] < need.max(1)))),
            bytes,
            windows,
            // A `sectionOffset` leaf must keep its interpretation, because it locates an element.
            others: !matches!(sequence.start.interpretation, Interpretation::SectionOffset(_)),
        }
    }

    /// Runs the search. The scratch memory holds the preceding mode for each step and mode.
    fn run(mut self, scratch: &mut Scratch) -> Path {
        let from = &mut scratch.from;
        let kinds = Modes::<N, F>::KINDS;
        let steps = &self.modes.sequence.steps;
        let all = kinds * N * steps.len();
        if from.len() < all {
            // The old content is not needed, so avoid copying it.
            memory::reserve(from, all);
            from.resize(all, 0);
        }
        let (from, _) = from.as_chunks_mut::<N>();
        let mut costs = Costs::<L, N, F>::start(self.modes.start());
        let mut windows = L::never();
        let (mut total, mut before) = (0_i64, 0_i64);
        for (at, (step, from)) in steps.iter().zip(from.chunks_exact_mut(kinds)).enumerate() {
            let (sources, base) = costs.sources(windows);
            total += base.in_bytes();
            let behind = before + i64::from(step.items.min(MOST_ITEMS));
            if self.others {
                let next = steps.get(at + 1);
                let begin = self.begin(step, next);
                let goes_on = self.goes_on(at.checked_sub(1).and_then(|at| steps.get(at)), step);
                let skips = self.skip(step, &sources, (&costs, goes_on, begin), from);
                self.store(step, &sources, &mut costs, from);
                (costs.default, costs.stride, costs.begun) = skips;
                windows = self.offset((at, step, next), &sources, (before, behind), total);
            } else {
                self.store(step, &sources, &mut costs, from);
            }
            before = behind;
        }
        let path = self.trace_back(&costs, windows, from);
        scratch.begins = self.windows.into_begins();
        path
    }

    /// Updates the modes that store bytes, including those with width 0.
    #[inline(always)]
    fn store(&self, step: &PlanStep, sources: &Sources<L, N, F>, costs: &mut Costs<L, N, F>, from: Origins<'_, N>) {
        let header = self.modes.sequence.metadata.header;
        let width_record = L::Cost::bytes(header + 1);
        let stored = match step.items {
            1 => self.one,
            items => L::of(|lane| Cost::bytes(self.bytes[lane] * items.min(MOST_ITEMS))),
        };
        let stay = L::all(L::Cost::STAY);
        for f in 0..F {
            let family = self.modes.families[f];
            let (need, (entry_need, entry)) = (family.need(step), family.entry(step));
            let (entry, unset) = (L::Cost::bytes(header + entry), L::all(L::Cost::never(!family.settable)));
            let too_narrow = self.narrower[usize::from(need & 15)];
            let entry_too_narrow = self.narrower[usize::from(entry_need & 15)];
            let from_all = L::all(sources.all.plus(entry).plus(width_record));
            let from_family = L::all(sources.by_family[f].plus(width_record));
            let (full, zero) = (costs.full[f], costs.zero[f]);
            let set = sources.by_width.plus(L::all(entry));

            let kept = full.or(stay).min(from_family).or(too_narrow);
            let entered = set.min(from_all).or(unset).or(entry_too_narrow);
            costs.full[f] = settle(f, kept.min(entered).plus(stored), from);

            let width_record = L::all(width_record);
            let kept = zero.or(stay).min(full.plus(width_record)).or(L::all(L::Cost::never(need != 0)));
            let entered = set.plus(width_record).or(unset).or(L::all(L::Cost::never(entry_need != 0)));
            costs.zero[f] = settle(F + f, kept.min(entered.or(self.narrower[0])), from);
        }
    }

    /// Updates the modes that store nothing: `default`, ongoing strides and new strides.
    #[inline(always)]
    fn skip(
        &self,
        step: &PlanStep,
        sources: &Sources<L, N, F>,
        (costs, goes_on, begin): (&Costs<L, N, F>, bool, Option<u32>),
        from: Origins<'_, N>,
    ) -> (L, L, L) {
        let header = self.modes.sequence.metadata.header;
        let enter = L::Cost::bytes(header + step.value_bytes());
        let (other, changes) = (L::Cost::never(!step.same), L::Cost::never(!step.uniform));
        let stay = L::all(L::Cost::STAY);
        let entered = sources.by_width.plus(L::all(enter)).or(L::all(changes));
        let default = costs.default.or(stay).or(L::all(other)).min(entered);
        // A stride that started at the previous step continues here, because its increment is the difference of this
        // step.
        let stride = costs.stride.or(stay).or(L::all(L::Cost::never(!goes_on))).min(costs.begun);
        let begun = match begin {
            Some(bytes) => sources.by_width.plus(L::all(L::Cost::bytes(header + bytes))),
            None => L::never(),
        };
        (settle(2 * F, default, from), settle(2 * F + 1, stride, from), settle(2 * F + 2, begun, from))
    }

    /// Returns whether the current stride also produces this step's values.
    #[inline(always)]
    fn goes_on(&self, before: Option<&PlanStep>, step: &PlanStep) -> bool {
        let stride = match (before, self.modes.sequence.start.interpretation) {
            (Some(before), _) => before.difference,
            (None, Interpretation::Stride(_, stride)) => stride,
            (None, _) => return false,
        };
        step.difference == stride && (step.items == 1 || (stride == 0 && step.delta_entry == 0 && step.uniform))
    }

    /// Returns the number of metadata bytes for the arguments of a new stride.
    #[inline(always)]
    fn begin(&self, step: &PlanStep, next: Option<&PlanStep>) -> Option<u32> {
        self.modes.sequence.stride(step, next).map(|stride| step.stride_bytes(stride))
    }

    /// Updates the windows, and returns the cheapest window of each lane. The costs of windows count from the start of
    /// the block; all other costs are relative to `total`.
    #[inline(always)]
    fn offset(
        &mut self,
        (at, step, next): (usize, &PlanStep, Option<&PlanStep>),
        sources: &Sources<L, N, F>,
        items: (i64, i64),
        total: i64,
    ) -> L {
        let Ok(at) = u32::try_from(at) else { return L::never() };
        if self.windows.count() == 0 {
            return L::never();
        }
        let header = self.modes.sequence.metadata.header;
        let from_all = sources.all.plus(L::Cost::bytes(header + 1));
        let by_width = sources.by_width.keys();
        let enter = std::array::from_fn(|lane| {
            let source = by_width[lane].min(from_all);
            (total + source.in_bytes() + i64::from(header), source.number())
        });
        let behind = self.windows.step((at, step, next), enter, items);
        let first = Modes::<N, F>::KINDS * N;
        L::of(|lane| {
            let Some(&(cost, window)) = behind.get(lane) else { return Cost::NEVER };
            let relative: L::Cost = u32::try_from(cost - total).map_or(Cost::NEVER, Cost::bytes);
            relative | Cost::mode(first + usize::from(window))
        })
    }

    /// Returns the changes along the cheapest path, by walking back from its end.
    fn trace_back(&self, costs: &Costs<L, N, F>, windows: L, from: &[[u8; N]]) -> Path {
        let kinds = Modes::<N, F>::KINDS;
        let mut number = usize::from(costs.by_width().min(windows).least().number());
        let mut behind = self.modes.sequence.steps.len();
        let mut path = Path::new();
        while behind > 0 {
            let at = behind - 1;
            let mode = self.modes.mode(number, &self.windows);
            let (begin, from) = match mode.0 {
                PathMode::Window(window) => self.windows.begin(window, at),
                _ => (at, from.get(at * kinds + number / N).map_or(0, |row| row[number % N])),
            };
            behind = begin;
            if from == L::Cost::STAY.number() {
                continue;
            }
            let source = self.modes.mode(from.into(), &self.windows);
            let step = u32::try_from(begin).unwrap_or(u32::MAX);
            let changes = self.modes.switch(source, mode, begin, at);
            path.extend(changes.into_iter().rev().flatten().map(|change| (step, change)));
            number = from.into();
        }
        path.reverse();
        path
    }
}

/// Records the sources of the modes of a kind. Returns the costs of these modes, with each mode's own number in the low
/// byte.
#[inline(always)]
fn settle<L: Lanes<N>, const N: usize>(kind: usize, keys: L, from: Origins<'_, N>) -> L {
    if let Some(from) = from.get_mut(kind) {
        *from = keys.numbers();
    }
    keys.alone().or(L::numbered(kind * N))
}

impl<L: Lanes<N>, const N: usize, const F: usize> Costs<L, N, F> {
    /// Returns costs that are 0 for the mode of this kind and lane, and `NEVER` for all other modes.
    fn start((kind, lane): (usize, usize)) -> Self {
        let of = |this: usize| {
            let cost = |other: usize| L::Cost::never(this != kind || other != lane);
            L::of(|other| cost(other) | Cost::mode(this * N + other))
        };
        Self {
            full: std::array::from_fn(of),
            zero: std::array::from_fn(|f| of(F + f)),
            default: of(2 * F),
            stride: of(2 * F + 1),
            begun: of(2 * F + 2),
        }
    }

    /// Returns the cheapest mode of each lane.
    #[inline(always)]
    fn by_width(&self) -> L {
        let others = self.default.min(self.stride).min(self.begun);
        self.full.iter().chain(&self.zero).fold(others, |best, lanes| best.min(*lanes))
    }

    /// Returns the best source of each kind, including windows, and the amount by which all costs have been lowered,
    /// which is usually 0.
    #[inline(always)]
    fn sources(&mut self, windows: L) -> (Sources<L, N, F>, L::Cost) {
        let by_width = self.by_width().min(windows);
        let all = by_width.least();
        let by_family = std::array::from_fn(|f| self.full[f].min(self.zero[f]).least());
        let mut sources = Sources { by_width, by_family, all };
        let base = all.alone();
        // Subtracting from all costs takes time, so do it only when the minimum has become large.
        if base < L::Cost::bytes(REBASE) {
            return (sources, L::Cost::ZERO);
        }
        self.lower(base);
        sources.by_width = sources.by_width.lower(base);
        for best in &mut sources.by_family {
            *best = if *best >= L::Cost::NEVER { L::Cost::NEVER } else { *best - base };
        }
        sources.all = sources.all - base;
        (sources, base)
    }

    #[cold]
    fn lower(&mut self, base: L::Cost) {
        let lanes = self.full.iter_mut().chain(&mut self.zero);
        for lanes in lanes.chain([&mut self.default, &mut self.stride, &mut self.begun]) {
            *lanes = lanes.lower(base);
        }
    }
}
