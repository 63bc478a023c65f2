//! Report-page elements for outcomes.

use metatf_page::{Column, Note, Page, Table, Value};

use super::Outcome;
use crate::allocator::{Act, Acts};

/// Adds the memory usage and then the cost of each outcome.
pub fn describe(outcomes: &[Outcome], page: &mut Page) {
    page.heading(
        "MEMORY (fragmentation as heap / live: (1) mean, (2) at peak live, (3) at peak heap, (4) peak / peak)",
    );
    let mut table = table(["heap", "most live", "efficiency", "(1)", "(2)", "(3)", "(4)"]);
    for outcome in outcomes {
        let of = &outcome.fragmentation;
        table.row([
            name(outcome),
            Value::Count(outcome.heap),
            Value::Count(outcome.most_live),
            decimal(outcome.memory_efficiency),
            decimal(of.mean),
            decimal(of.at_most_live),
            decimal(of.at_most_heap),
            decimal(of.most_heap_to_most_live),
        ]);
    }
    page.push(table);
    let reserving: Vec<&str> =
        outcomes.iter().filter(|of| of.ratios_of_pages_held).map(|outcome| outcome.name.as_str()).collect();
    if !reserving.is_empty() {
        let names = reserving.join(", ");
        page.note(format!(
            "{names}: the heap is reserved address space; efficiency and (1) to (4) refer to pages held"
        ));
    }
    held(outcomes, page);
    if outcomes.iter().any(|outcome| outcome.touched.is_some()) {
        touched(outcomes, page);
    }
    cost(outcomes, page);
    for outcome in outcomes.iter().filter(|outcome| outcome.refused > 0) {
        let note = Note::new("{}: {} objects did not fit into 2^47 bytes");
        page.push(note.with([name(outcome), Value::Count(outcome.refused)]));
    }
}

fn held(outcomes: &[Outcome], page: &mut Page) {
    page.heading("PAGES HELD (bytes of pages that were used and not returned to the system)");
    let mut table = table(["peak", "mean", "most heap"]);
    for outcome in outcomes {
        let numbers = [outcome.most_held, outcome.mean_held, outcome.most_heap].map(Value::Count);
        table.row([name(outcome)].into_iter().chain(numbers));
    }
    page.push(table);
}

fn touched(outcomes: &[Outcome], page: &mut Page) {
    page.heading("TOUCHED (per 1,000 events: distinct cache lines and pages; misses of a TLB with that many entries)");
    let first = outcomes.iter().find_map(|outcome| outcome.touched.as_ref());
    let tlbs = first.iter().flat_map(|touched| &touched.tlbs);
    let tlbs = tlbs.map(|tlb| format!("{} ({})", Value::Count(tlb.entries as u64), Value::Bytes(tlb.reach)));
    let mut table = table(["lines".to_owned(), "pages".to_owned()].into_iter().chain(tlbs));
    for outcome in outcomes {
        let Some(touched) = &outcome.touched else { continue };
        let misses = touched.tlbs.iter().map(|tlb| decimal(tlb.misses_of_1000));
        table.row([name(outcome), decimal(touched.lines), decimal(touched.pages)].into_iter().chain(misses));
    }
    page.push(table);
}

fn cost(outcomes: &[Outcome], page: &mut Page) {
    let weights = outcomes.first().map(|outcome| outcome.weights).unwrap_or_default();
    page.heading(format!("COST (ops: operations per object, {})", weighing(&weights)));
    let acts: Vec<Act> = Act::ALL.iter().copied().filter(|act| outcomes.iter().any(|o| o.acts.of(*act) > 0)).collect();
    let mut table = table(["ops", "steps"].into_iter().chain(acts.iter().map(|act| act.name())));
    for outcome in outcomes {
        let numbers = acts.iter().map(|act| Value::Count(outcome.acts.of(*act)));
        table.row([name(outcome), decimal(outcome.ops), decimal(outcome.steps)].into_iter().chain(numbers));
    }
    page.push(table);
}

/// Returns a table with a row per allocator.
fn table<S: Into<std::borrow::Cow<'static, str>>>(columns: impl IntoIterator<Item = S>) -> Table {
    Table::new([Column::key("allocator")].into_iter().chain(columns.into_iter().map(Column::new)))
}

fn name(outcome: &Outcome) -> Value {
    Value::text(outcome.name.clone())
}

fn decimal(value: Option<f64>) -> Value {
    value.map_or(Value::Unknown, |value| Value::Number(value, 3))
}

fn weighing(weights: &Acts) -> String {
    let other = Act::ALL.iter().filter(|act| weights.of(**act) != Acts::weights().of(**act));
    let other: Vec<String> = other.map(|act| format!("{} {}", act.name(), weights.of(*act))).collect();
    if other.is_empty() { "each with weight 1".to_owned() } else { format!("weights 1, but {}", other.join(", ")) }
}
