//! Outcomes as blocks of a page.

use metatf_page::{Column, Note, Page, Table, Value};

use super::outcome::{Outcome, Percent};
use super::simulation::Stacks;

/// Adds what the operations were, and the outcomes beside each other.
pub fn describe(stacks: &Stacks, outcomes: &[Outcome], page: &mut Page) {
    let note =
        "{} objects and {} bytes in {} regions, at most {} deep; {} of the objects are captured by a registration";
    let numbers = [stacks.objects, stacks.bytes, stacks.regions, stacks.deepest, stacks.captured];
    page.push(Note::new(note).with(numbers.map(Value::Count)));
    let notes = [
        (stacks.in_the_heap, "{} objects outside of all regions are not simulated"),
        (stacks.outside, "{} exits and registrations outside of all regions did nothing"),
        (stacks.not_exited, "{} regions were never left"),
    ];
    for (number, note) in notes.into_iter().filter(|(number, _)| *number > 0) {
        page.push(Note::new(note).with([Value::Count(number)]));
    }
    page.heading("FRAGMENTATION (bytes; intra-region: f, inter-region: F)");
    let columns = ["sum of f", "most", "times", "sum of F", "most", "times", "most in blocks"];
    page.push(table(&columns, outcomes, |of| {
        let intra = [of.intra_sum, of.intra_most, of.intra_count];
        let inter = [of.inter_sum, of.inter_most, of.inter_count];
        intra.into_iter().chain(inter).chain([of.most_bytes]).map(Value::Count).collect()
    }));
    page.heading("INTRA-REGION FRAGMENTATION (percent of blocks: least, mean, most)");
    let columns = ["used regions", "mean", "most", "all regions", "mean", "most", "over time", "mean", "most"];
    page.push(table(&columns, outcomes, |of| {
        let three = |of: Percent| [of.min, of.average, of.max];
        let all = [of.used_regions, of.all_regions, of.over_time].into_iter().flat_map(three);
        all.map(|percent| Value::Number(percent, 2)).collect()
    }));
    page.heading("OPERATIONS");
    let columns = ["blocks looked at", "added", "freed", "objects collected", "oversize"];
    page.push(table(&columns, outcomes, |of| {
        let blocks = [of.blocks_looked_at, of.blocks_added, of.blocks_freed];
        blocks.into_iter().chain([of.objects_collected, of.oversize]).map(Value::Count).collect()
    }));
}

/// A table with a row for each outcome.
fn table(columns: &[&'static str], outcomes: &[Outcome], cells: impl Fn(&Outcome) -> Vec<Value>) -> Table {
    let columns = columns.iter().map(|column| Column::new(*column));
    let mut table = Table::new([Column::key("settings")].into_iter().chain(columns));
    for outcome in outcomes {
        table.row([Value::text(outcome.name.clone())].into_iter().chain(cells(outcome)));
    }
    table
}
