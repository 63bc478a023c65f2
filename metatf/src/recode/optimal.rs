//! The cheapest path of one leaf through a block: a shortest path over *modes*, exact for the modes tried.
//!
//! A mode is an interpretation with its width, and the width the leaf remembers (spec 4: what `none` comes back to):
//!
//! - `none`, `delta`, and what the DTD says the leaf starts with (a referenced base cannot be set, only kept), each with every
//!   width from 0 to 8 that some step needs;
//! - `default` with the value that comes next; `stride` with the difference of the next two;
//! - `baseOffset` with 1 to 3 bytes from whatever base serves the run of values that follows: a *window*, see `window`.
//!
//! A step costs the bytes it stores. A switch costs its metadata records: a change of interpretation is one, a change of width
//! another, none where the remembered width is right. `delta` is set to the value that comes next, so the first difference is
//! 0. As what a switch costs depends on where it comes from only by interpretation and remembered width, the best source of
//! each is enough: the work is steps times modes. Modes that differ in their width alone lie side by side, see `lanes`.

use super::lanes::{Cost, Lanes};
use super::leaf::{Path, Sequence, Step};
use super::named::base;
use super::window::Windows;
use crate::format::Interpretation;
use crate::row_write::bytes_for;
use crate::state::Change;

/// Families of interpretations at most: `none`, `delta`, the DTD's.
const FAMILIES: usize = 3;
/// Occurrences of a step that are counted, so that costs stay in their range. Runs are no longer, and records hardly.
const MOST_ITEMS: u32 = super::leaf::LONGEST_RUN;

/// What the cheapest mode costs before costs are made relative to it again: it leaves room for what leads from any mode to any
/// other.
const REBASE: u32 = 24;

/// An interpretation that stores bytes.
#[derive(Clone, Copy, Debug)]
struct Family {
    interpretation: Interpretation,
    /// Metadata may set it.
    settable: bool,
}

/// A mode, decoded from its number: its kind times the lanes, plus its lane; windows come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A family, with this width.
    Stores(usize, u8),
    Default,
    /// A stride goes on.
    Stride,
    /// A stride begins, with the difference of the step that follows.
    StrideBegins,
    /// A window.
    Window(usize),
}

/// The cheapest path of a leaf.
pub(crate) fn path(sequence: &Sequence, scratch: &mut Vec<u8>) -> Path {
    if sequence.steps.is_empty() {
        return Path::new();
    }
    let windows = Windows::new(sequence);
    let widths = widths(sequence, &windows);
    // Runs of many records take nothing as `default`; a record of many items may take much in every mode.
    let small = sequence.single && families(sequence).iter().all(|family| family.settable);
    match (small, widths.len()) {
        (true, 0..=8) => Search::<i16, 8>::new(sequence, windows, widths).run(scratch),
        (true, _) => Search::<i16, 16>::new(sequence, windows, widths).run(scratch),
        (false, _) => Search::<i32, 12>::new(sequence, windows, widths).run(scratch),
    }
}

/// `N`: lanes, as many as there are widths, or more.
struct Search<'s, C: Cost, const N: usize> {
    sequence: &'s Sequence,
    families: Vec<Family>,
    /// Widths that may be remembered, ascending: one in a lane.
    widths: Vec<u8>,
    /// Bytes of each lane, and what one occurrence costs.
    bytes: [u32; N],
    one: Lanes<C, N>,
    /// For each need, `NEVER` in the lanes of lesser width, and of none.
    narrower: [Lanes<C, N>; 9],
    windows: Windows,
    /// The lane of each window's width.
    window_lanes: Vec<usize>,
    /// Interpretations that store nothing and windows are tried.
    others: bool,
    /// Costs behind the last step, by kind of mode: families with a width, families with width 0, `default`, strides that
    /// go on, strides that begin.
    costs: Vec<Lanes<C, N>>,
    /// The modes' numbers.
    numbers: Vec<Lanes<C, N>>,
    /// The same of windows.
    window_costs: Vec<C>,
}

/// The cheapest modes to come from, each with its number below its cost.
struct Sources<C: Cost, const N: usize> {
    /// By remembered width.
    by_width: Lanes<C, N>,
    by_family: [C; FAMILIES],
    all: C,
}

impl<'s, C: Cost, const N: usize> Search<'s, C, N> {
    fn new(sequence: &'s Sequence, windows: Windows, widths: Vec<u8>) -> Self {
        let families = families(sequence);
        let mut bytes = [0; N];
        for (lane, &width) in bytes.iter_mut().zip(&widths) {
            *lane = u32::from(width);
        }
        let need = |need: u32| Lanes(bytes.map(|width| C::never(width < need.max(1))));
        let lane = |window| windows.get(window).and_then(|w| widths.iter().position(|&width| width == w.width));
        Self {
            sequence,
            costs: vec![Lanes::NEVER; 2 * families.len() + 3],
            numbers: (0..2 * families.len() + 3).map(|kind| Lanes::numbers(kind * N)).collect(),
            window_costs: vec![C::NEVER; windows.count()],
            window_lanes: (0..windows.count()).map(|w| lane(w).unwrap_or(0)).collect(),
            // An offset into a section stays one: the leaf says where an element is.
            others: !matches!(sequence.start.interpretation, Interpretation::SectionOffset(_)),
            narrower: [0, 1, 2, 3, 4, 5, 6, 7, 8].map(need),
            families,
            widths,
            one: Lanes(bytes.map(C::bytes)),
            bytes,
            windows,
        }
    }

    /// `from` is for the mode before each step and mode.
    fn run(mut self, from: &mut Vec<u8>) -> Path {
        let start = self.number(self.start());
        if let Some(cost) = self.costs.get_mut(start / N).and_then(|c| c.0.get_mut(start % N)) {
            *cost = C::ZERO;
        }
        let lanes = self.costs.len() * N;
        let modes = lanes + self.window_costs.len();
        let all = modes * self.sequence.steps.len();
        if from.len() < all {
            from.resize(all, 0);
        }
        let (mut total, mut before) = (0_i64, 0_i64);
        let steps = self.sequence.steps.iter().enumerate();
        for ((at, step), from) in steps.zip(from.chunks_exact_mut(modes)) {
            let (sources, base) = self.sources();
            total += base.in_bytes();
            let behind = before + i64::from(step.items.min(MOST_ITEMS));
            self.store(step, &sources, from);
            if self.others {
                self.skip(at, step, &sources, from);
                self.offset(at, step, &sources, (before, behind), total);
            }
            before = behind;
        }
        self.trace_back(from)
    }

    /// The best of each kind of source. Now and then all costs become relative to the best one: what that was comes with it.
    fn sources(&mut self) -> (Sources<C, N>, C) {
        let mut sources = Sources { by_width: Lanes::NEVER, by_family: [C::NEVER; FAMILIES], all: C::NEVER };
        let families = self.families.len();
        let keys = |kind: usize| match (self.costs.get(kind), self.numbers.get(kind)) {
            (Some(costs), Some(numbers)) => costs.or(*numbers),
            _ => Lanes::NEVER,
        };
        for (family, best) in sources.by_family.iter_mut().enumerate().take(families) {
            let keys = keys(family).min(keys(families + family));
            sources.by_width = sources.by_width.min(keys);
            *best = keys.least();
        }
        for kind in 2 * families..self.costs.len() {
            sources.by_width = sources.by_width.min(keys(kind));
        }
        let first = self.costs.len() * N;
        for (window, (cost, &lane)) in self.window_costs.iter().zip(&self.window_lanes).enumerate() {
            if let Some(best) = sources.by_width.0.get_mut(lane) {
                *best = (*best).min(*cost | C::mode(first + window));
            }
        }
        sources.all = sources.by_width.least();
        let base = sources.all.alone();
        // Seldom, as it takes its time.
        if base < C::bytes(REBASE) {
            return (sources, C::ZERO);
        }
        for costs in &mut self.costs {
            *costs = costs.lower(base);
        }
        sources.by_width = sources.by_width.lower(base);
        for best in &mut sources.by_family {
            *best = if *best >= C::NEVER { C::NEVER } else { *best - base };
        }
        sources.all = sources.all - base;
        (sources, base)
    }

    /// Modes that store bytes, and the same with width 0.
    fn store(&mut self, step: &Step, sources: &Sources<C, N>, from: &mut [u8]) {
        let header = self.sequence.header;
        let width_record = C::bytes(header + 1);
        let items = step.items.min(MOST_ITEMS);
        let stored = if items == 1 { self.one } else { Lanes(self.bytes.map(|width| C::bytes(width * items))) };
        let families = self.families.len();
        let [some, ..] = self.narrower;
        for f in 0..families {
            let Some(&family) = self.families.get(f) else { return };
            let (need, (entry_need, entry)) = (family.need(step), family.entry(step));
            let (entry, unset) = (C::bytes(header + entry), Lanes::all(C::never(!family.settable)));
            let too_narrow = self.narrower.get(usize::from(need)).copied().unwrap_or(some);
            let entry_too_narrow = self.narrower.get(usize::from(entry_need)).copied().unwrap_or(some);
            let from_all = Lanes::all(sources.all.plus(entry).plus(width_record));
            let from_family = sources.by_family.get(f).copied().unwrap_or(C::NEVER).plus(width_record);
            let (full_kind, zero_kind) = (f, families + f);
            let (Some(&full), Some(&zero)) = (self.costs.get(full_kind), self.costs.get(zero_kind)) else { return };
            let narrowed = full.or(self.numbers.get(full_kind).copied().unwrap_or(some));
            let (stay, entry, width_record) = (Lanes::all(C::STAY), Lanes::all(entry), Lanes::all(width_record));

            let kept = full.or(stay).min(Lanes::all(from_family)).or(too_narrow);
            let set = sources.by_width.plus(entry);
            let entered = set.min(from_all).or(unset).or(entry_too_narrow);
            self.settle(full_kind, kept.min(entered).plus(stored), from);

            let kept = zero.or(stay).min(narrowed.plus(width_record)).or(Lanes::all(C::never(need != 0)));
            let entered = set.plus(width_record).or(unset).or(Lanes::all(C::never(entry_need != 0))).or(some);
            self.settle(zero_kind, kept.min(entered), from);
        }
    }

    #[inline(always)]
    fn settle(&mut self, kind: usize, keys: Lanes<C, N>, from: &mut [u8]) {
        let from = from.get_mut(kind * N..).and_then(|from| from.first_chunk_mut::<N>());
        if let (Some(costs), Some(from)) = (self.costs.get_mut(kind), from) {
            *costs = keys.alone();
            *from = keys.numbers_of();
        }
    }

    /// Modes that store nothing.
    fn skip(&mut self, at: usize, step: &Step, sources: &Sources<C, N>, from: &mut [u8]) {
        let header = self.sequence.header;
        let kind = 2 * self.families.len();
        let Some(&[default, stride, begun]) = self.costs.get(kind..kind + 3) else { return };
        let enter = C::bytes(header + u32::from(bytes_for(step.first, false)));
        let (other, changes) = (C::never(!step.same), C::never(!step.uniform));
        let breaks = C::never(!self.goes_on(at, step));
        let (begin, no_begin) = match self.begin(at, step) {
            Some(stride) => {
                let initial = bytes_for(step.first.wrapping_sub(stride), false);
                (C::bytes(header + 2 * u32::from(initial.max(bytes_for(stride, true)))), C::ZERO)
            }
            None => (C::ZERO, C::NEVER),
        };
        let stay = Lanes::all(C::STAY);
        let begun = begun.or(self.numbers.get(kind + 2).copied().unwrap_or(Lanes::NEVER));
        let entered = sources.by_width.plus(Lanes::all(enter)).or(Lanes::all(changes));
        self.settle(kind, default.or(stay).or(Lanes::all(other)).min(entered), from);
        // What began at the step before goes on here, as its difference is this step's.
        self.settle(kind + 1, stride.or(stay).or(Lanes::all(breaks)).min(begun), from);
        self.settle(kind + 2, sources.by_width.plus(Lanes::all(begin)).or(Lanes::all(no_begin)), from);
    }

    /// Whether a stride in force gives this step's values, too.
    fn goes_on(&self, at: usize, step: &Step) -> bool {
        let stride =
            match (at.checked_sub(1).and_then(|i| self.sequence.steps.get(i)), self.sequence.start.interpretation) {
                (Some(before), _) => before.difference,
                (None, Interpretation::Stride(_, stride)) => stride,
                (None, _) => return false,
            };
        step.difference == stride && (step.items == 1 || (stride == 0 && step.delta_entry == 0 && step.uniform))
    }

    /// The stride that may begin at a step: not 0, as `default` is as good and shorter.
    fn begin(&self, at: usize, step: &Step) -> Option<u64> {
        if !self.sequence.may_set_previous || !self.sequence.single || step.run {
            return None;
        }
        let stride = self.sequence.steps.get(at + 1)?.difference;
        (stride != 0).then_some(stride)
    }

    /// Windows, whose costs are kept from the start of the block: `total` is what others are relative to.
    fn offset(&mut self, at: usize, step: &Step, sources: &Sources<C, N>, items: (i64, i64), total: i64) {
        let Ok(at) = u32::try_from(at) else { return };
        self.windows.advance(at, step);
        let header = self.sequence.header;
        let from_all = sources.all.plus(C::bytes(header + 1));
        for (number, (cost, &lane)) in self.window_costs.iter_mut().zip(&self.window_lanes).enumerate() {
            let bytes = self.windows.get(number).map_or(0, |w| u32::from(w.bytes));
            let source = sources.by_width.0.get(lane).copied().unwrap_or(C::NEVER).min(from_all);
            let enter = total + source.in_bytes() + i64::from(header + bytes);
            let behind = self.windows.cost(number, (at, step), (enter, source.number()), items);
            let relative = behind.and_then(|cost| u32::try_from(cost - total).ok());
            *cost = relative.map_or(C::NEVER, C::bytes);
        }
    }

    fn lane(&self, width: u8) -> usize {
        self.widths.iter().position(|&w| w == width).unwrap_or(0)
    }

    /// The mode before the first step.
    fn start(&self) -> (Mode, u8) {
        let start = self.sequence.start;
        let mode = match start.interpretation {
            Interpretation::Default(_) => Mode::Default,
            Interpretation::Stride(..) => Mode::Stride,
            interpretation => {
                let kind = std::mem::discriminant(&interpretation);
                let same = |f: &Family| std::mem::discriminant(&f.interpretation) == kind;
                Mode::Stores(self.families.iter().position(same).unwrap_or(0), start.width)
            }
        };
        (mode, start.remembered)
    }

    fn number(&self, (mode, remembered): (Mode, u8)) -> usize {
        let n = self.families.len();
        let kind = match mode {
            Mode::Stores(family, 0) => n + family,
            Mode::Stores(family, _) => family,
            Mode::Default => 2 * n,
            Mode::Stride => 2 * n + 1,
            Mode::StrideBegins => 2 * n + 2,
            Mode::Window(window) => return self.costs.len() * N + window,
        };
        kind * N + self.lane(remembered)
    }

    /// A mode by its number, and the width it remembers.
    fn mode(&self, number: usize) -> (Mode, u8) {
        let n = self.families.len();
        if let Some(window) = number.checked_sub(self.costs.len() * N) {
            return (Mode::Window(window), self.windows.get(window).map_or(0, |w| w.width));
        }
        let width = self.widths.get(number % N).copied().unwrap_or(0);
        let mode = match number / N {
            kind if kind < n => Mode::Stores(kind, width),
            kind if kind < 2 * n => Mode::Stores(kind - n, 0),
            kind if kind == 2 * n => Mode::Default,
            kind if kind == 2 * n + 1 => Mode::Stride,
            _ => Mode::StrideBegins,
        };
        (mode, width)
    }

    /// The changes along the cheapest path, from its end.
    fn trace_back(&self, from: &[u8]) -> Path {
        let all = from;
        let lanes = self.costs.len() * N;
        let modes = lanes + self.window_costs.len();
        let costs = self.costs.iter().flat_map(|c| &c.0).chain(&self.window_costs);
        let mut number = costs.enumerate().min_by_key(|(_, cost)| **cost).map_or(0, |(number, _)| number);
        let mut behind = self.sequence.steps.len();
        let mut path = Path::new();
        while behind > 0 {
            let at = behind - 1;
            let mode = self.mode(number);
            let (begin, from) = match mode.0 {
                Mode::Window(w) => self.windows.get(w).map_or((at, 0), |w| w.begin(at)),
                _ => (at, all.get(at * modes + number).copied().unwrap_or(0)),
            };
            behind = begin;
            if from == C::STAY.number() {
                continue;
            }
            let source = self.mode(from.into());
            let step = u32::try_from(begin).unwrap_or(u32::MAX);
            path.extend(self.switch(source, mode, begin, at).into_iter().rev().flatten().map(|change| (step, change)));
            number = from.into();
        }
        path.reverse();
        path
    }

    /// The metadata that leads from one mode to another, before the step `at`; a window's run lasts up to `end`.
    fn switch(&self, from: (Mode, u8), to: (Mode, u8), at: usize, end: usize) -> [Option<Change>; 2] {
        let Some(step) = self.sequence.steps.get(at) else { return [None; 2] };
        let widen = (from.1 != to.1).then_some(Change::Width(to.1));
        let set = |interpretation| Some(Change::Interpretation(interpretation));
        match to.0 {
            Mode::Stores(f, width) => {
                let Some(family) = self.families.get(f) else { return [None; 2] };
                let same = matches!(from.0, Mode::Stores(g, _) if f == g) && family.need(step) <= width;
                match (same, width) {
                    (true, _) => [Some(Change::Width(width)), None],
                    (false, 0) => [set(family.at(step)), Some(Change::Width(0))],
                    (false, _) => [widen, set(family.at(step))],
                }
            }
            Mode::Default => [set(Interpretation::Default(step.first)), None],
            Mode::Stride => [None; 2],
            Mode::StrideBegins => {
                let stride = self.begin(at, step).unwrap_or(0);
                [set(Interpretation::Stride(step.first.wrapping_sub(stride), stride)), None]
            }
            Mode::Window(_) => {
                let steps = self.sequence.steps.get(at..=end).unwrap_or_default();
                let most = steps.iter().map(|s| s.most).max().unwrap_or(0);
                [widen, set(Interpretation::BaseOffset(base(most, to.1)))]
            }
        }
    }
}

impl Family {
    /// Bytes a step needs.
    fn need(&self, step: &Step) -> u8 {
        match self.interpretation {
            Interpretation::Delta(_) => step.delta,
            Interpretation::BaseOffset(base) => step.offset(base).unwrap_or(step.reference),
            Interpretation::BaseOffsetOf(..) => step.reference,
            _ => step.none,
        }
    }

    /// Bytes a step needs where the interpretation is set right before it, and how many its value takes in the metadata.
    fn entry(&self, step: &Step) -> (u8, u32) {
        match self.interpretation {
            Interpretation::Delta(_) => (step.delta_entry, bytes_for(step.first, false).into()),
            Interpretation::BaseOffset(base) => (self.need(step), bytes_for(base, false).into()),
            _ => (self.need(step), 0),
        }
    }

    /// As it is set before a step.
    fn at(&self, step: &Step) -> Interpretation {
        match self.interpretation {
            Interpretation::Delta(_) => Interpretation::Delta(step.first),
            other => other,
        }
    }
}

fn families(sequence: &Sequence) -> Vec<Family> {
    let settable = |interpretation| Family { interpretation, settable: true };
    let start = sequence.start.interpretation;
    let mut families = vec![settable(Interpretation::None)];
    if sequence.may_set_previous || matches!(start, Interpretation::Delta(_)) {
        families.push(Family { interpretation: Interpretation::Delta(0), settable: sequence.may_set_previous });
    }
    match start {
        Interpretation::BaseOffset(_) => families.push(settable(start)),
        Interpretation::BaseOffsetOf(..) => families.push(Family { interpretation: start, settable: false }),
        Interpretation::SectionOffset(_) => return vec![Family { interpretation: start, settable: false }],
        _ => {}
    }
    families
}

/// Every width that some step needs in some way, and the one remembered at the start. No other makes a path cheaper: it could
/// be lowered to the next of these all along the path.
fn widths(sequence: &Sequence, windows: &Windows) -> Vec<u8> {
    let mut seen = [false; 9];
    let mut see = |width: u8| {
        if let Some(seen) = seen.get_mut(usize::from(width)) {
            *seen = true;
        }
    };
    see(sequence.start.remembered);
    let start = Family { interpretation: sequence.start.interpretation, settable: false };
    for step in &sequence.steps {
        for need in [step.none, step.delta, step.delta_entry, start.need(step)] {
            if need > 0 {
                see(need);
            }
        }
    }
    for window in 0..windows.count() {
        windows.get(window).into_iter().for_each(|w| see(w.width));
    }
    (0..=8_u8).filter(|&w| seen.get(usize::from(w)) == Some(&true)).collect()
}
