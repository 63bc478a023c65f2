//! Checks that referenced leaves are numbers, once the widths of all leaves are known.

use super::bases::PREDEFINED_RECORDS;
use super::leaves::Resolved;
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Interpretation;

/// Checks bases (spec 4) and the fields used by predictors (spec 3.5).
pub(super) fn check(resolved: &[Resolved], report: &mut Reporter) {
    bases(resolved, report);
    predictors(resolved, report);
}

fn bases(resolved: &[Resolved], report: &mut Reporter) {
    for leaf in resolved.iter().flat_map(|r| &r.leaves) {
        let Interpretation::BaseOffsetOf(record, base) = leaf.leaf.interpretation else { continue };
        let record = usize::try_from(record.0).unwrap_or(usize::MAX).wrapping_sub(PREDEFINED_RECORDS);
        let base = resolved.get(record).and_then(|r| r.leaves.get(usize::from(base.0)));
        if let Some(base) = base.filter(|b| !b.broken && !b.leaf.is_numeric()) {
            let message = format!("`{}` is a byte array and cannot be a base", base.leaf.name);
            report.add(Draft::new(Code::BaseUnknown, leaf.place, message).help(format!(
                "a base is a number: refer to another field, or write `{}: u32` for a number",
                base.leaf.name
            )));
        }
    }
}

fn predictors(resolved: &[Resolved], report: &mut Reporter) {
    for predicted in resolved.iter().flat_map(|r| &r.leaves).filter_map(|l| l.predicted.as_ref()) {
        for (record, leaf, place) in &predicted.references {
            let record = usize::try_from(record.0).unwrap_or(usize::MAX).wrapping_sub(PREDEFINED_RECORDS);
            let leaf = resolved.get(record).and_then(|r| r.leaves.get(usize::from(leaf.0)));
            if let Some(leaf) = leaf.filter(|l| !l.broken && !l.leaf.is_numeric()) {
                let message = format!("`{}` is a byte array, but a predictor requires a number", leaf.leaf.name);
                report.add(
                    Draft::new(Code::PredictorField, *place, message)
                        .help(format!("refer to another field, or write `{}: u32` for a number", leaf.leaf.name)),
                );
            }
        }
    }
}
