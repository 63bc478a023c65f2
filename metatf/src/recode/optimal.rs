//! The cheapest path of one leaf through a block: a shortest path over *modes*, exact for the modes tried.
//!
//! A mode is an interpretation with its width, and the width the leaf remembers (spec 4: what `none` comes back to):
//!
//! - `none`, `delta`, and what the DTD says the leaf starts with (a referenced base cannot be set, only kept), each with every
//!   width from 0 to 8 that some step needs;
//! - `default` with the value that comes next; `stride` with the difference of the next two;
//! - `baseOffset` with 1 to 4 bytes from whatever base serves the run of values that follows: a *window*, see `window`.
//!
//! A step costs the bytes it stores. A switch costs its metadata records: a change of interpretation is one, a change of width
//! another, none where the remembered width is right. `delta` is set to the value that comes next, so the first difference is
//! 0. As what a switch costs depends on where it comes from only by interpretation and remembered width, the best source of
//! each is enough: the work is steps times modes.

use super::leaf::{Path, Sequence, Step, signed};
use super::named::base;
use super::window::Windows;
use crate::format::Interpretation;
use crate::row_write::bytes_for;
use crate::state::Change;

/// Costs are kept times this, with the number of the mode they came from below.
const UNIT: u64 = 256;
/// No path leads here. A multiple of `UNIT` with room above.
const NEVER: u64 = 1 << 60;
/// In the place of a mode's number: the mode is kept.
const STAY: u64 = 255;
/// Widths a leaf may remember: 0 to 8.
const WIDTHS: usize = 9;
/// Families of interpretations: `none`, `delta`, the DTD's.
const FAMILIES: usize = 3;

/// An interpretation that stores bytes.
#[derive(Clone, Copy, Debug)]
struct Family {
    interpretation: Interpretation,
    /// Metadata may set it.
    settable: bool,
}

/// A mode, decoded from its number.
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
pub(crate) fn path(sequence: &Sequence) -> Path {
    if sequence.steps.is_empty() { Path::new() } else { Search::new(sequence).run() }
}

struct Search<'s> {
    sequence: &'s Sequence,
    families: Vec<Family>,
    /// Widths that may be remembered, ascending.
    widths: Vec<u8>,
    windows: Windows,
    /// Where the numbers of the modes begin: families with a width, families with width 0, and the others.
    zero: usize,
    default: usize,
    stride: usize,
    begins: usize,
    window: usize,
    /// Cost of each mode behind the last step, times `UNIT`.
    costs: Vec<u64>,
    /// For each step and mode, the mode before.
    from: Vec<u8>,
}

/// The cheapest modes to come from, each with its number below its cost.
struct Sources {
    /// By remembered width.
    by_width: [u64; WIDTHS],
    by_family: [u64; FAMILIES],
    all: u64,
}

impl<'s> Search<'s> {
    fn new(sequence: &'s Sequence) -> Self {
        let families = families(sequence);
        let windows = Windows::new(sequence);
        let widths = widths(sequence, &windows);
        let zero = families.len() * widths.len();
        let default = 2 * zero;
        let stride = default + widths.len();
        let begins = stride + widths.len();
        let window = begins + widths.len();
        let modes = window + windows.count();
        let from = Vec::with_capacity(modes * sequence.steps.len());
        let costs = vec![NEVER; modes];
        Self { sequence, families, widths, windows, zero, default, stride, begins, window, costs, from }
    }

    fn run(mut self) -> Path {
        let start = self.number(self.start());
        if let Some(cost) = self.costs.get_mut(start) {
            *cost = 0;
        }
        let mut next = vec![NEVER; self.costs.len()];
        let mut before = 0;
        // An offset into a section stays one: the leaf says where an element is.
        let widths_only = matches!(self.sequence.start.interpretation, Interpretation::SectionOffset(_));
        for (at, step) in self.sequence.steps.iter().enumerate() {
            let sources = self.sources();
            self.store(step, &sources, &mut next);
            if !widths_only {
                self.skip(at, step, &sources, &mut next);
            }
            let behind = before + u64::from(step.items);
            if !widths_only {
                self.offset(at, step, &sources, (before, behind), &mut next);
            }
            before = behind;
            for (cost, next) in self.costs.iter_mut().zip(&next) {
                #[allow(clippy::cast_possible_truncation, reason = "the number of a mode is a byte")]
                self.from.push(*next as u8);
                *cost = (next & !(UNIT - 1)).min(NEVER);
            }
        }
        self.trace_back(start)
    }

    /// The best of each kind of source.
    fn sources(&self) -> Sources {
        let mut sources = Sources { by_width: [NEVER; WIDTHS], by_family: [NEVER; FAMILIES], all: NEVER };
        let mut number = 0_u64;
        let mut costs = self.costs.iter();
        let n = self.widths.len();
        // In the order of the modes' numbers: families with widths, families without, and three kinds more.
        let families = (0..self.families.len()).map(Some);
        for family in families.clone().chain(families).chain([None; 3]) {
            for (best, cost) in sources.by_width.iter_mut().zip(costs.by_ref().take(n)) {
                let cost = cost | number;
                *best = cost.min(*best);
                if let Some(by_family) = family.and_then(|f| sources.by_family.get_mut(f)) {
                    *by_family = cost.min(*by_family);
                }
                number += 1;
            }
        }
        for (window, cost) in costs.enumerate() {
            let width = self.windows.get(window).and_then(|w| self.place(w.width));
            if let Some(best) = width.and_then(|w| sources.by_width.get_mut(w)) {
                *best = (cost | number).min(*best);
            }
            number += 1;
        }
        sources.all = sources.by_width.iter().copied().min().unwrap_or(NEVER);
        sources
    }

    /// Modes that store bytes, and the same with width 0.
    fn store(&self, step: &Step, sources: &Sources, next: &mut [u64]) {
        let header = u64::from(self.sequence.header);
        let width_record = (header + 1) * UNIT;
        let n = self.widths.len();
        for (f, family) in self.families.iter().enumerate() {
            let need = family.need(step);
            let (entry_need, entry) = family.entry(step, header);
            let from_family = sources.by_family.get(f).copied().unwrap_or(NEVER) + width_record;
            let from_all = sources.all + entry + width_record;
            for (i, &width) in self.widths.iter().enumerate() {
                let from_width = sources.by_width.get(i).copied().unwrap_or(NEVER);
                let (full, zero) = (f * n + i, self.zero + f * n + i);
                let (cost_full, cost_zero) = (self.cost(full), self.cost(zero));
                let mut best = NEVER;
                if width > 0 && entry_need <= width {
                    best = best.min(from_width + entry).min(from_all);
                }
                if width > 0 && need <= width {
                    best = best.min(cost_full | STAY).min(from_family);
                }
                set(next, full, best + u64::from(step.items) * u64::from(width) * UNIT);
                let mut best = NEVER;
                if need == 0 {
                    best = best.min(cost_zero | STAY);
                    if width > 0 {
                        best = best.min((cost_full | full as u64) + width_record);
                    }
                }
                if entry_need == 0 && width > 0 {
                    best = best.min(from_width + entry + width_record);
                }
                set(next, zero, best);
            }
        }
    }

    /// Modes that store nothing.
    fn skip(&self, at: usize, step: &Step, sources: &Sources, next: &mut [u64]) {
        let header = u64::from(self.sequence.header);
        let default = if step.uniform { (header + u64::from(bytes_for(step.first, false))) * UNIT } else { NEVER };
        let goes_on = self.goes_on(at, step);
        let begins = self.begin(at, step).map_or(NEVER, |stride| {
            let initial = bytes_for(step.first.wrapping_sub(stride), false);
            (header + 2 * u64::from(initial.max(bytes_for(stride, true)))) * UNIT
        });
        for (i, &source) in sources.by_width.iter().enumerate().take(self.widths.len()) {
            let kept = if step.same { self.cost(self.default + i) | STAY } else { NEVER };
            set(next, self.default + i, kept.min(source + default));
            let kept = if goes_on { self.cost(self.stride + i) | STAY } else { NEVER };
            let begun = self.begins + i;
            // What began at the step before goes on here, as its difference is this step's.
            set(next, self.stride + i, kept.min(self.cost(begun) | begun as u64));
            set(next, begun, source + begins);
        }
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

    /// Windows.
    fn offset(&mut self, at: usize, step: &Step, sources: &Sources, items: (u64, u64), next: &mut [u64]) {
        let Ok(at) = u32::try_from(at) else { return };
        self.windows.advance(at, step);
        let header = u64::from(self.sequence.header);
        for number in 0..self.windows.count() {
            let Some(window) = self.windows.get(number) else { return };
            let entry = (header + u64::from(window.bytes)) * UNIT;
            let by_width = self.place(window.width).and_then(|w| sources.by_width.get(w)).copied().unwrap_or(NEVER);
            let enter = by_width.min(sources.all + (header + 1) * UNIT) + entry;
            #[allow(clippy::cast_possible_truncation, reason = "the number of a mode is a byte")]
            let from = enter as u8;
            let cost = self.windows.cost(number, (at, step), (enter / UNIT, from), items);
            set(next, self.window + number, cost.map_or(NEVER, |cost| cost * UNIT));
        }
    }

    fn cost(&self, number: usize) -> u64 {
        self.costs.get(number).copied().unwrap_or(NEVER)
    }

    fn place(&self, width: u8) -> Option<usize> {
        self.widths.iter().position(|&w| w == width)
    }

    /// The mode before the first step.
    fn start(&self) -> (Mode, u8) {
        let start = self.sequence.start;
        let mode = match start.interpretation {
            Interpretation::Default(_) => Mode::Default,
            Interpretation::Stride(..) => Mode::Stride,
            interpretation => {
                let same =
                    |f: &Family| std::mem::discriminant(&f.interpretation) == std::mem::discriminant(&interpretation);
                Mode::Stores(self.families.iter().position(same).unwrap_or(0), start.width)
            }
        };
        (mode, start.remembered)
    }

    fn number(&self, (mode, remembered): (Mode, u8)) -> usize {
        let place = self.place(remembered).unwrap_or(0);
        match mode {
            Mode::Stores(family, 0) => self.zero + family * self.widths.len() + place,
            Mode::Stores(family, _) => family * self.widths.len() + place,
            Mode::Default => self.default + place,
            Mode::Stride => self.stride + place,
            Mode::StrideBegins => self.begins + place,
            Mode::Window(window) => self.window + window,
        }
    }

    fn mode(&self, number: usize) -> (Mode, u8) {
        let n = self.widths.len();
        let width = |i: usize| self.widths.get(i % n).copied().unwrap_or(0);
        match number {
            _ if number < self.zero => (Mode::Stores(number / n, width(number)), width(number)),
            _ if number < self.default => (Mode::Stores((number - self.zero) / n, 0), width(number - self.zero)),
            _ if number < self.stride => (Mode::Default, width(number - self.default)),
            _ if number < self.begins => (Mode::Stride, width(number - self.stride)),
            _ if number < self.window => (Mode::StrideBegins, width(number - self.begins)),
            _ => {
                let window = number - self.window;
                (Mode::Window(window), self.windows.get(window).map_or(0, |w| w.width))
            }
        }
    }

    /// The changes along the cheapest path, from its end.
    fn trace_back(&self, start: usize) -> Path {
        let modes = self.costs.len();
        let mut number = (0..modes).min_by_key(|&i| self.cost(i)).unwrap_or(0);
        let mut behind = self.sequence.steps.len();
        let mut path = Path::new();
        while behind > 0 {
            let at = behind - 1;
            let mode = self.mode(number);
            let (begin, from) = match mode.0 {
                Mode::Window(w) => self.windows.get(w).map_or((at, 0), |w| w.begin(at)),
                _ => (at, self.from.get(at * modes + number).copied().unwrap_or(0)),
            };
            behind = begin;
            if u64::from(from) == STAY {
                continue;
            }
            let source = self.mode(from.into());
            let step = u32::try_from(begin).unwrap_or(u32::MAX);
            path.extend(self.switch(source, mode, begin, at).into_iter().rev().flatten().map(|change| (step, change)));
            number = from.into();
        }
        debug_assert_eq!(number, start);
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

fn set(next: &mut [u64], number: usize, cost: u64) {
    if let Some(slot) = next.get_mut(number) {
        *slot = cost;
    }
}

impl Family {
    /// Bytes a step needs.
    fn need(&self, step: &Step) -> u8 {
        match self.interpretation {
            Interpretation::Delta(_) => step.delta,
            Interpretation::BaseOffset(base) => {
                signed(step.least.wrapping_sub(base)).max(signed(step.most.wrapping_sub(base)))
            }
            Interpretation::BaseOffsetOf(..) => step.reference,
            _ => step.none,
        }
    }

    /// Bytes a step needs where the interpretation is set right before it, and what setting it costs.
    fn entry(&self, step: &Step, header: u64) -> (u8, u64) {
        let cost = |values: u8| (header + u64::from(values)) * UNIT;
        match self.interpretation {
            _ if !self.settable => (u8::MAX, NEVER),
            Interpretation::Delta(_) => (step.delta_entry, cost(bytes_for(step.first, false))),
            Interpretation::BaseOffset(base) => (self.need(step), cost(bytes_for(base, false))),
            _ => (self.need(step), cost(0)),
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
    let mut seen = [false; WIDTHS];
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
