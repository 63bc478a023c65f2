//! Outcomes as tables for people.

use std::io::{self, Write};

use super::Outcome;
use crate::allocator::{Act, Acts};
use metatf_page::units::{bytes, count};

/// Prints outcomes of one trace: memory, then cost.
///
/// # Errors
/// The output's.
pub fn text(outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0).max(9);
    writeln!(out, "\nMEMORY (fragmentation: heap / live; mean, at most live, at most heap, most / most)")?;
    writeln!(
        out,
        "  {:width$} {:>16} {:>16} {:>10} {:>7} {:>7} {:>7} {:>7}",
        "allocator", "heap", "most live", "efficiency", "(1)", "(2)", "(3)", "(4)"
    )?;
    for outcome in outcomes {
        let of = &outcome.fragmentation;
        writeln!(
            out,
            "  {:width$} {:>16} {:>16} {:>10} {:>7} {:>7} {:>7} {:>7}",
            outcome.name,
            count(outcome.heap),
            count(outcome.most_live),
            decimal(outcome.memory_efficiency),
            decimal(of.mean),
            decimal(of.at_most_live),
            decimal(of.at_most_heap),
            decimal(of.most_heap_to_most_live)
        )?;
    }
    let reserving: Vec<&str> =
        outcomes.iter().filter(|of| of.ratios_of_pages_held).map(|outcome| outcome.name.as_str()).collect();
    if !reserving.is_empty() {
        let names = reserving.join(", ");
        writeln!(out, "  {names}: the heap is reserved address space; efficiency and (1) to (4) are of pages held")?;
    }
    writeln!(out, "\nPAGES HELD (bytes of pages that hold memory, or held some that was not given back)")?;
    writeln!(out, "  {:width$} {:>16} {:>16} {:>16}", "allocator", "peak", "mean", "most heap")?;
    for outcome in outcomes {
        let [peak, mean, heap] = [outcome.most_held, outcome.mean_held, outcome.most_heap].map(count);
        writeln!(out, "  {:width$} {peak:>16} {mean:>16} {heap:>16}", outcome.name)?;
    }
    if outcomes.iter().any(|outcome| outcome.touched.is_some()) {
        touched(outcomes, width, out)?;
    }
    let weights = outcomes.first().map(|outcome| outcome.weights).unwrap_or_default();
    writeln!(out, "\nCOST (ops: acts an object, {})", weighing(&weights))?;
    let acts: Vec<Act> = Act::ALL.iter().copied().filter(|act| outcomes.iter().any(|o| o.acts.of(*act) > 0)).collect();
    write!(out, "  {:width$} {:>9} {:>9}", "allocator", "ops", "steps")?;
    acts.iter().try_for_each(|act| write!(out, " {:>13}", act.name()))?;
    writeln!(out)?;
    for outcome in outcomes {
        let (ops, steps) = (decimal(outcome.ops), decimal(outcome.steps));
        write!(out, "  {:width$} {ops:>9} {steps:>9}", outcome.name)?;
        acts.iter().try_for_each(|act| write!(out, " {:>13}", count(outcome.acts.of(*act))))?;
        writeln!(out)?;
    }
    let refused = outcomes.iter().filter(|outcome| outcome.refused > 0);
    for outcome in refused {
        writeln!(out, "  {}: {} objects did not fit into 2^47 bytes", outcome.name, count(outcome.refused))?;
    }
    Ok(())
}

fn touched(outcomes: &[Outcome], width: usize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nTOUCHED (for 1,000 events: distinct cache lines and pages; pages that a TLB of so many entries misses)"
    )?;
    write!(out, "  {:width$} {:>12} {:>12}", "allocator", "lines", "pages")?;
    for tlb in outcomes.iter().filter_map(|outcome| outcome.touched.as_ref()).take(1).flat_map(|touched| &touched.tlbs)
    {
        write!(out, " {:>22}", format!("{} ({})", count(tlb.entries as u64), bytes(tlb.reach)))?;
    }
    writeln!(out)?;
    for outcome in outcomes {
        let Some(touched) = &outcome.touched else { continue };
        write!(out, "  {:width$} {:>12} {:>12}", outcome.name, decimal(touched.lines), decimal(touched.pages))?;
        touched.tlbs.iter().try_for_each(|tlb| write!(out, " {:>22}", decimal(tlb.misses_of_1000)))?;
        writeln!(out)?;
    }
    Ok(())
}

fn decimal(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

fn weighing(weights: &Acts) -> String {
    let other = Act::ALL.iter().filter(|act| weights.of(**act) != 1);
    let other: Vec<String> = other.map(|act| format!("{} {}", act.name(), weights.of(*act))).collect();
    if other.is_empty() { "each with weight 1".to_owned() } else { format!("weights 1, but {}", other.join(", ")) }
}
