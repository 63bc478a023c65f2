//! Report-page elements for outcomes.

use metatf_page::{Column, Note, Page, Table, Value};

use super::calls::Calls;
use super::outcome::{Outcome, Percent};
use super::parts::MOST_REGIONS;
use super::simulation::Stacks;

/// Adds a summary of the operations and a comparison of the outcomes.
pub fn describe(stacks: &Stacks, outcomes: &[Outcome], page: &mut Page) {
    let note =
        "{} objects and {} bytes in {} regions, at most {} deep; {} of the objects are captured by a registration";
    let numbers = [stacks.objects, stacks.bytes, stacks.regions, stacks.deepest, stacks.captured];
    page.push(Note::new(note).with(numbers.map(Value::Count)));
    let notes = [
        (stacks.in_the_heap, "{} objects outside of all regions were not simulated"),
        (stacks.outside, "{} exits and registrations outside of all regions had no effect"),
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
    page.heading("INTRA-REGION FRAGMENTATION (percent of the bytes in blocks: minimum, mean, maximum)");
    let columns = ["used regions", "mean", "most", "all regions", "mean", "most", "over time", "mean", "most"];
    page.push(table(&columns, outcomes, |of| {
        let three = |of: Percent| [of.min, of.average, of.max];
        let all = [of.used_regions, of.all_regions, of.over_time].into_iter().flat_map(three);
        all.map(|percent| Value::Number(percent, 2)).collect()
    }));
    page.heading("OPERATIONS");
    let columns = ["blocks examined", "added", "freed", "objects collected", "oversize"];
    page.push(table(&columns, outcomes, |of| {
        let blocks = [of.blocks_looked_at, of.blocks_added, of.blocks_freed];
        blocks.into_iter().chain([of.objects_collected, of.oversize]).map(Value::Count).collect()
    }));
    parts(outcomes, page);
}

/// Adds the results of methods and regions for each setting, if they were requested.
fn parts(outcomes: &[Outcome], page: &mut Page) {
    let some = |outcome: &&Outcome| !outcome.methods.is_empty() || !outcome.regions.is_empty();
    for outcome in outcomes.iter().filter(some) {
        if !outcome.methods.is_empty() {
            page.heading(Note::new("METHODS, {}").with([Value::text(outcome.name.clone())]));
            let columns = ["regions", "objects", "bytes", "most objects", "most bytes", "most in blocks", "sum of f"]
                .map(Column::new);
            let mut table = Table::new([Column::key("method")].into_iter().chain(columns));
            for of in &outcome.methods {
                let most = [of.most_objects, of.most_bytes, of.most_block_bytes, of.intra_sum];
                let numbers = [of.regions, of.objects, of.bytes].into_iter().chain(most).map(Value::Count);
                table.row([Value::text(of.method.clone())].into_iter().chain(numbers));
            }
            page.push(table);
        }
        if !outcome.regions.is_empty() {
            page.heading(Note::new("REGIONS, {}").with([Value::text(outcome.name.clone())]));
            let columns = ["thread", "depth", "objects", "bytes", "in blocks", "sum of f"].map(Column::new);
            let mut table = Table::new([Column::key("region"), Column::key("method")].into_iter().chain(columns));
            for of in &outcome.regions {
                let numbers = [of.thread, of.depth, of.objects, of.bytes, of.block_bytes, of.intra_sum];
                let who = [Value::Count(of.number), Value::text(of.method.clone())];
                table.row(who.into_iter().chain(numbers.map(Value::Count)));
            }
            page.push(table);
            if outcome.regions.len() == MOST_REGIONS {
                page.push(
                    Note::new("Only the {} regions with the most bytes in blocks are listed.")
                        .with([Value::Count(MOST_REGIONS as u64)]),
                );
            }
        }
    }
}

/// Adds the call graph and the call tree.
pub fn describe_calls(calls: &Calls, page: &mut Page) {
    page.heading("CALL GRAPH");
    let mut table =
        Table::new(["caller", "call site", "callee"].map(Column::key).into_iter().chain([Column::new("calls")]));
    for edge in &calls.graph {
        let names = [&edge.caller, &edge.call_site, &edge.callee].map(|name| Value::text(name.clone()));
        table.row(names.into_iter().chain([Value::Count(edge.calls)]));
    }
    page.push(table);
    page.heading("CALL TREE (objects allocated by the method itself)");
    let columns = ["call site", "calls", "objects", "bytes"].map(Column::new);
    let mut table = Table::new([Column::key("method")].into_iter().chain(columns));
    for node in &calls.tree {
        let method = format!("{}{}", "  ".repeat(node.depth), node.method);
        let numbers = [node.calls, node.objects, node.bytes].map(Value::Count);
        table.row([Value::text(method), Value::text(node.call_site.clone())].into_iter().chain(numbers));
    }
    page.push(table);
    if calls.left_out > 0 {
        page.push(
            Note::new("{} regions are not shown, because the call tree has too many paths or is too deep")
                .with([Value::Count(calls.left_out)]),
        );
    }
}

/// Returns a table with a row per outcome.
fn table(columns: &[&'static str], outcomes: &[Outcome], cells: impl Fn(&Outcome) -> Vec<Value>) -> Table {
    let columns = columns.iter().map(|column| Column::new(*column));
    let mut table = Table::new([Column::key("settings")].into_iter().chain(columns));
    for outcome in outcomes {
        table.row([Value::text(outcome.name.clone())].into_iter().chain(cells(outcome)));
    }
    table
}
