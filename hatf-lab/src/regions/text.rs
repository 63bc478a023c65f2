//! Outcomes as tables for people.

use std::io::{self, Write};

use super::outcome::{Outcome, Percent};
use super::simulation::Stacks;
use metatf_page::units::count;

/// Prints what the operations were, and the outcomes beside each other.
///
/// # Errors
/// The output's.
pub fn text(stacks: &Stacks, outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  {} objects and {} bytes in {} regions, at most {} deep; {} of the objects are captured by a registration",
        count(stacks.objects),
        count(stacks.bytes),
        count(stacks.regions),
        count(stacks.deepest),
        count(stacks.captured)
    )?;
    let notes = [
        (stacks.in_the_heap, "objects outside of all regions are not simulated"),
        (stacks.outside, "exits and registrations outside of all regions did nothing"),
        (stacks.not_exited, "regions were never left"),
    ];
    let mut told = notes.iter().filter(|(number, _)| *number > 0);
    told.try_for_each(|(number, what)| writeln!(out, "  {} {what}", count(*number)))?;

    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0).max(8);
    writeln!(out, "\nFRAGMENTATION (bytes; intra-region: f, inter-region: F)")?;
    writeln!(
        out,
        "  {:width$} {:>14} {:>12} {:>10} {:>14} {:>12} {:>10} {:>14}",
        "settings", "sum of f", "most", "times", "sum of F", "most", "times", "most in blocks"
    )?;
    for of in outcomes {
        writeln!(
            out,
            "  {:width$} {:>14} {:>12} {:>10} {:>14} {:>12} {:>10} {:>14}",
            of.name,
            count(of.intra_sum),
            count(of.intra_most),
            count(of.intra_count),
            count(of.inter_sum),
            count(of.inter_most),
            count(of.inter_count),
            count(of.most_bytes)
        )?;
    }
    writeln!(out, "\nINTRA-REGION FRAGMENTATION (percent of blocks: min / average / max)")?;
    writeln!(out, "  {:width$} {:>26} {:>26} {:>26}", "settings", "used regions", "all regions", "over time")?;
    for of in outcomes {
        let [used, all, time] = [of.used_regions, of.all_regions, of.over_time].map(show);
        writeln!(out, "  {:width$} {used:>26} {all:>26} {time:>26}", of.name)?;
    }
    writeln!(out, "\nOPERATIONS")?;
    writeln!(
        out,
        "  {:width$} {:>16} {:>14} {:>14} {:>18} {:>10}",
        "settings", "blocks looked at", "added", "freed", "objects collected", "oversize"
    )?;
    for of in outcomes {
        writeln!(
            out,
            "  {:width$} {:>16} {:>14} {:>14} {:>18} {:>10}",
            of.name,
            count(of.blocks_looked_at),
            count(of.blocks_added),
            count(of.blocks_freed),
            count(of.objects_collected),
            count(of.oversize)
        )?;
    }
    Ok(())
}

fn show(percent: Percent) -> String {
    format!("{:.2} / {:.2} / {:.2}", percent.min, percent.average, percent.max)
}
