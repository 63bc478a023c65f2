//! Leaves with an interpretation that is more than an encoding of numbers. These are `sectionOffset` (the location of
//! an element), `sectionStride` (the element itself), and models. They keep their interpretation in every record, so
//! planners choose only their widths and the encoding of the records in between.

use super::codes::Codes;
use super::leaf_steps::LeafSteps;
use super::setting::Path;
use metatf::Change;
use metatf::format::Interpretation;

/// Returns the interpretation that a leaf must keep, or `None` if it may be changed.
#[must_use]
pub(crate) fn kept_interpretation(interpretation: Interpretation) -> Option<Interpretation> {
    match interpretation {
        Interpretation::None
        | Interpretation::BaseOffset(_)
        | Interpretation::BaseOffsetOf(..)
        | Interpretation::Delta(_)
        | Interpretation::Default(_)
        | Interpretation::Stride(..) => None,
        kept => Some(kept),
    }
}

/// Changes to the interpretation that a leaf must keep, each as the record (or step) of the change and the new
/// interpretation.
pub(crate) type KeptRuns = Vec<(u32, Option<Interpretation>)>;

/// Returns the interpretations that the leaf's own records must keep, each with its first step. Entries of `kept_runs`
/// that contain none of these records are omitted.
pub(crate) fn in_force(sequence: &LeafSteps, kept_runs: &KeptRuns) -> KeptRuns {
    let mut used = KeptRuns::new();
    for (i, &(from, kept)) in kept_runs.iter().enumerate() {
        let until = kept_runs.get(i + 1).map_or(u32::MAX, |p| p.0);
        let first = sequence.steps.partition_point(|s| s.row < from);
        let stands = sequence.steps.get(first).is_some_and(|s| s.row < until);
        if stands && used.last().is_none_or(|last| last.1 != kept) {
            used.push((u32::try_from(first).unwrap_or(u32::MAX), kept));
        }
    }
    used
}

/// Returns the path of a leaf that keeps an interpretation in part of the block. The entries of `kept_runs` contain
/// indices of steps. `codes` are the codes of the leaf's model. They are known from the start of the block for as long
/// as the leaf is predicted.
pub(super) fn path(sequence: &LeafSteps, kept_runs: &KeptRuns, codes: Option<&Codes>) -> Path {
    let mut path = Path::new();
    let mut setting = sequence.start;
    for (i, &(first, kept)) in kept_runs.iter().enumerate() {
        let until = kept_runs.get(i + 1).map_or(sequence.steps.len(), |p| p.0 as usize);
        let steps = sequence.steps.get(first as usize..until).unwrap_or_default();
        let wanted = match kept.unwrap_or(Interpretation::None) {
            // Metadata cannot make a leaf predicted, so store its numbers unpredicted.
            Interpretation::Predicted(_) if !matches!(setting.interpretation, Interpretation::Predicted(_)) => {
                Interpretation::None
            }
            wanted => wanted,
        };
        let predicted =
            matches!((setting.interpretation, wanted), (Interpretation::Predicted(_), Interpretation::Predicted(_)));
        if let Some(codes) = codes.filter(|_| i == 0 && predicted) {
            for (step, change) in codes.path(sequence.metadata.header, setting) {
                setting = setting.apply(change).unwrap_or(setting);
                path.push((step, change));
            }
        }
        let need = match wanted {
            Interpretation::None | Interpretation::SectionOffset(_) => {
                steps.iter().map(|s| s.none).max().unwrap_or(0).max(1)
            }
            _ => 0,
        };
        let widen = Change::Width(need);
        // A leaf without a width stores nothing, so set a width before the interpretation.
        let before = (setting.remembered < need).then_some(widen);
        let set = (setting.interpretation != wanted).then_some(Change::Interpretation(wanted));
        // The remembered width need not be the current width.
        let after = (before.is_none() && set.is_none() && setting.width < need).then_some(widen);
        for change in [before, set, after].into_iter().flatten() {
            if let Some(new) = setting.apply(change) {
                setting = new;
                path.push((first, change));
            }
        }
    }
    path
}
