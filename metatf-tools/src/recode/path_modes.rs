//! The modes that the search for a leaf's cheapest path distinguishes, their numbers, and the metadata that switches
//! between them.

use super::leaf_steps::LeafSteps;
use super::offset_windows::Windows;
use super::plan_step::PlanStep;
use super::plan_step::base;
use super::setting::Setting;
use metatf::Change;
use metatf::format::Interpretation;
use metatf::internals::bytes_for;

/// An interpretation that stores bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredAs {
    pub(super) interpretation: Interpretation,
    /// Whether metadata can set this interpretation.
    pub(super) settable: bool,
}

/// A mode, decoded from its number. The number is the kind times the number of lanes, plus the lane; windows come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathMode {
    /// A family with this width.
    Stores(usize, u8),
    Default,
    /// An ongoing stride.
    Stride,
    /// A new stride, with the difference between this step and the next.
    StrideBegins,
    /// A window.
    Window(usize),
}

/// All modes of a leaf. The kinds are in this order: each family with a width, each family with width 0, `default`,
/// ongoing strides, and new strides.
pub(super) struct Modes<'s, const N: usize, const F: usize> {
    pub(super) sequence: &'s LeafSteps,
    /// The families. Unused entries can be neither set nor reached.
    pub(super) families: [StoredAs; F],
    /// The widths that may be remembered, one per lane. The widths of windows come first, followed by the other widths
    /// in ascending order.
    pub(super) widths: Vec<u8>,
}

impl<'s, const N: usize, const F: usize> Modes<'s, N, F> {
    /// The number of kinds of modes, excluding windows.
    pub(super) const KINDS: usize = 2 * F + 3;

    pub(super) fn new(sequence: &'s LeafSteps, families: &[StoredAs], widths: Vec<u8>) -> Self {
        let none = StoredAs { interpretation: Interpretation::None, settable: false };
        let families = std::array::from_fn(|f| families.get(f).copied().unwrap_or(none));
        Self { sequence, families, widths }
    }

    fn lane(&self, width: u8) -> usize {
        self.widths.iter().position(|&w| w == width).unwrap_or(0)
    }

    /// Returns the mode before the first step, as a kind and a lane.
    pub(super) fn start(&self) -> (usize, usize) {
        let start = self.sequence.start;
        let kind = match start.interpretation {
            Interpretation::Default(_) => 2 * F,
            Interpretation::Stride(..) => 2 * F + 1,
            interpretation => {
                let kind = std::mem::discriminant(&interpretation);
                let same = |f: &StoredAs| std::mem::discriminant(&f.interpretation) == kind;
                let family = self.families.iter().position(same).unwrap_or(0);
                if start.width == 0 { F + family } else { family }
            }
        };
        (kind, self.lane(start.remembered))
    }

    /// Returns the mode with this number, and the remembered width in this mode.
    pub(super) fn mode(&self, number: usize, windows: &Windows) -> (PathMode, u8) {
        if let Some(window) = number.checked_sub(Self::KINDS * N) {
            return (PathMode::Window(window), windows.get(window).map_or(0, |w| w.width));
        }
        let width = self.widths.get(number % N).copied().unwrap_or(0);
        let mode = match number / N {
            kind if kind < F => PathMode::Stores(kind, width),
            kind if kind < 2 * F => PathMode::Stores(kind - F, 0),
            kind if kind == 2 * F => PathMode::Default,
            kind if kind == 2 * F + 1 => PathMode::Stride,
            _ => PathMode::StrideBegins,
        };
        (mode, width)
    }

    /// Returns the metadata that switches from one mode to another before the step `at`. If the new mode is a window,
    /// its run ends at `end`.
    pub(super) fn switch(
        &self,
        from: (PathMode, u8),
        to: (PathMode, u8),
        at: usize,
        end: usize,
    ) -> [Option<Change>; 2] {
        let Some(step) = self.sequence.steps.get(at) else { return [None; 2] };
        let widen = (from.1 != to.1).then_some(Change::Width(to.1));
        let set = |interpretation| Some(Change::Interpretation(interpretation));
        match to.0 {
            PathMode::Stores(f, width) => {
                let Some(family) = self.families.get(f) else { return [None; 2] };
                let same = matches!(from.0, PathMode::Stores(g, _) if f == g) && family.need(step) <= width;
                match (same, width) {
                    (true, _) => [Some(Change::Width(width)), None],
                    (false, 0) => [set(family.at(step)), Some(Change::Width(0))],
                    (false, _) => [widen, set(family.at(step))],
                }
            }
            PathMode::Default => [set(Interpretation::Default(step.first)), None],
            PathMode::Stride => [None; 2],
            PathMode::StrideBegins => {
                let stride = self.sequence.stride_from(at).unwrap_or(0);
                [set(Interpretation::Stride(step.first.wrapping_sub(stride), stride)), None]
            }
            PathMode::Window(_) => {
                let steps = self.sequence.steps.get(at..=end).unwrap_or_default();
                let most = steps.iter().map(|s| s.most).max().unwrap_or(0);
                [widen, set(Interpretation::BaseOffset(base(most, to.1)))]
            }
        }
    }
}

impl StoredAs {
    /// Returns the number of bytes that a step needs.
    #[inline(always)]
    pub(super) fn need(&self, step: &PlanStep) -> u8 {
        match self.interpretation {
            Interpretation::Delta(_) => step.delta,
            Interpretation::BaseOffset(base) => step.offset(base).unwrap_or(step.reference),
            Interpretation::BaseOffsetOf(..) => step.reference,
            _ => step.none,
        }
    }

    /// Returns the number of bytes that a step needs if the interpretation is set right before it, and the number of
    /// metadata bytes for its value.
    #[inline(always)]
    pub(super) fn entry(&self, step: &PlanStep) -> (u8, u32) {
        match self.interpretation {
            Interpretation::Delta(_) => (step.delta_entry, bytes_for(step.first, false).into()),
            Interpretation::BaseOffset(base) => (self.need(step), bytes_for(base, false).into()),
            _ => (self.need(step), 0),
        }
    }

    /// Returns the interpretation as set before a step.
    fn at(&self, step: &PlanStep) -> Interpretation {
        match self.interpretation {
            Interpretation::Delta(_) => Interpretation::Delta(step.first),
            other => other,
        }
    }
}

/// Returns the families that a leaf can use, which are `none`, `delta` and the DTD's interpretation.
pub(super) fn families(sequence: &LeafSteps) -> Vec<StoredAs> {
    let settable = |interpretation| StoredAs { interpretation, settable: true };
    let start = sequence.start.interpretation;
    let mut families = vec![settable(Interpretation::None)];
    if sequence.may_set_previous || matches!(start, Interpretation::Delta(_)) {
        families.push(StoredAs { interpretation: Interpretation::Delta(0), settable: sequence.may_set_previous });
    }
    match start {
        Interpretation::BaseOffset(_) => families.push(settable(start)),
        Interpretation::BaseOffsetOf(..) => families.push(StoredAs { interpretation: start, settable: false }),
        Interpretation::SectionOffset(_) => return vec![StoredAs { interpretation: start, settable: false }],
        _ => {}
    }
    families
}

/// Returns every width that any step needs in any encoding, and the width remembered at the start. Other widths cannot
/// make a path cheaper, because they could be reduced to the next smaller of these widths along the entire path.
pub(super) fn widths(start: Setting, needs: u16, windows: &Windows) -> Vec<u8> {
    let seen = needs | 1 << (start.remembered & 15);
    // A value that needs no bytes needs no width.
    let used = |width: u8| width != 0 || start.remembered == 0;
    let mut widths: Vec<u8> = windows.widths().collect();
    let others = (0..=8_u8).filter(|&w| seen >> w & 1 == 1 && used(w) && !windows.widths().any(|x| x == w));
    widths.extend(others);
    widths
}
