//! Checks the values that records take from the header of a file (spec 5.4).

use super::bases::PREDEFINED_RECORDS;
use super::leaves::{Resolved, ResolvedLeaf};
use super::model::{Model, ScopeIndex};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::MAGIC;

/// Checks every value from a header, given the section of the file's records, if there is one.
pub(super) fn check(model: &Model, resolved: &[Resolved], records: Option<ScopeIndex>, report: &mut Reporter) {
    let scope = |record: &Resolved| model.records.get(record.layout.record).map_or(0, |record| record.scope);
    let is_start = |record: &&Resolved| record.leaves.iter().any(|leaf| leaf.leaf.role() == Some(MAGIC));
    let starts = resolved.iter().filter(is_start).count();
    for record in resolved {
        for (index, leaf) in record.leaves.iter().enumerate() {
            let Some((header, field)) = leaf.leaf.header.filter(|_| !leaf.broken) else { continue };
            let at = usize::try_from(header.0).unwrap_or(usize::MAX).wrapping_sub(PREDEFINED_RECORDS);
            let Some((target, source)) =
                resolved.get(at).and_then(|target| Some((target, target.leaves.get(usize::from(field.0))?)))
            else {
                continue;
            };
            let is_repeated = |record: &Resolved, index: usize| {
                record.layout.leaves.get(index).is_none_or(|raw| !raw.repeats.is_empty())
            };
            let is_of_records = records.is_some_and(|records| scope(record) == records || scope(record) == 0);
            let why = if !is_start(&target) || Some(scope(target)) == records || records.is_none() {
                "its record is not the header of a file, with a field of role \"magic\" before the section of the records"
            } else if starts > 1 {
                "a file of this format may begin with another record"
            } else if !source.leaf.is_numeric() || source.broken {
                "it is not a number"
            } else if is_repeated(target, usize::from(field.0)) {
                "it is repeated or optional"
            } else if !is_of_records {
                "this record does not belong to the section of the file's records"
            } else if is_repeated(record, index) {
                "the field that receives it is repeated or optional"
            } else {
                continue;
            };
            report.add(refused(leaf, source, why));
        }
    }
}

fn refused(leaf: &ResolvedLeaf, source: &ResolvedLeaf, why: &str) -> Draft {
    let message =
        format!("`{}` cannot be used as the value of `{}`: {why}", source.leaf.path.join("."), leaf.leaf.name);
    Draft::new(Code::HeaderField, leaf.place, message).help(
        "list the field outside of repetitions in a record of the file, as in `version.interpretation = default \
             header.version.value;`",
    )
}
