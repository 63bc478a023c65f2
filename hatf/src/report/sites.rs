//! What each stack allocated, for people and programs.

use std::io::{self, Write};

use hatf_lab::sites::{Amount, Counts, Measure, ranked};
use metatf_cli::shown;
use metatf_page::units::{bytes, count, percent};
use serde::Serialize;

use crate::stacks::{Location, Stacks};

/// How tables of sites are printed.
#[derive(Clone, Copy, Debug)]
pub struct SiteTables {
    /// Rows of a table.
    pub rows: usize,
    /// Lines of a stack.
    pub depth: usize,
    /// Ranks by blocks, and not by bytes.
    pub by_blocks: bool,
}

impl SiteTables {
    /// Returns what amounts are ranked by.
    #[must_use]
    pub(super) fn rank(self, amount: Amount) -> u64 {
        if self.by_blocks { amount.blocks } else { amount.bytes }
    }
}

/// What is known of a trace that was recorded with `--sizes-only`.
pub const SIZES_ONLY: &str = "it is known what was allocated, and not how long it was live";

/// Returns a line that says what the numbers of a sample are.
#[must_use]
pub fn sampling_note(mean: u64) -> String {
    format!("  a sample: one block for each {} on average. Numbers by site are estimates for all blocks.", bytes(mean))
}

/// Prints a table for each measure: the sites with the most, each with its stack.
///
/// # Errors
/// The output's.
pub fn sites_text(
    sites: &[Counts],
    stacks: &Stacks,
    measures: &[Measure],
    tables: SiteTables,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut total = Counts::default();
    sites.iter().for_each(|site| total.add(site));
    for measure in measures {
        let total = total.get(*measure);
        writeln!(out, "\n{}: {} in {} blocks", title(*measure), bytes(total.bytes), count(total.blocks))?;
        let rank = |amount: Amount| tables.rank(amount);
        let ranked = ranked(sites, *measure, tables.by_blocks);
        let (first, rest) = ranked.split_at(tables.rows.min(ranked.len()));
        if !first.is_empty() {
            writeln!(out, "  {:>14} {:>7} {:>12}", "bytes", "", "blocks")?;
        }
        for (site, amount) in first {
            let start = format!(
                "  {:>14} {:>7} {:>12}  ",
                count(amount.bytes),
                percent(rank(*amount), rank(total)),
                count(amount.blocks)
            );
            stack(&start, stacks, *site as u64, tables.depth, out)?;
        }
        if !rest.is_empty() {
            let mut amount = Amount::default();
            for (_, other) in rest {
                amount.bytes = amount.bytes.saturating_add(other.bytes);
                amount.blocks = amount.blocks.saturating_add(other.blocks);
            }
            writeln!(
                out,
                "  {:>14} {:>7} {:>12}  {} other stacks",
                count(amount.bytes),
                percent(rank(amount), rank(total)),
                count(amount.blocks),
                count(rest.len() as u64)
            )?;
        }
    }
    Ok(())
}

/// Prints a stack, a line for each function; the first behind `start`.
pub(super) fn stack(start: &str, stacks: &Stacks, site: u64, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    stack_lines(start, stacks.get(site), depth, out)
}

/// Prints locations, innermost first, as [`stack`] does.
pub(super) fn stack_lines<'l>(
    start: &str,
    locations: impl Iterator<Item = &'l Location>,
    depth: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines = locations.flat_map(Location::lines);
    let Some(first) = lines.next() else { return writeln!(out, "{start}stack not known") };
    writeln!(out, "{start}{}", shown(&first))?;
    let indent = " ".repeat(start.chars().count() + 2);
    for line in lines.by_ref().take(depth.saturating_sub(1)) {
        writeln!(out, "{indent}{}", shown(&line))?;
    }
    match lines.count() {
        0 => Ok(()),
        more => writeln!(out, "{indent}.. {more} more"),
    }
}

pub(super) fn title(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "LIVE AT THE PEAK",
        Measure::Leaked => "LEAKED (live at the end)",
        Measure::Allocated => "ALLOCATED",
        Measure::Temporary => "TEMPORARY (freed by the next event)",
    }
}

/// A site in JSON.
#[derive(Debug, Serialize)]
pub struct SiteReport {
    #[serde(flatten)]
    counts: Counts,
    stack: Vec<FrameReport>,
}

/// A frame in JSON.
#[derive(Debug, Serialize)]
pub(super) struct FrameReport {
    address: u64,
    module: String,
    offset: u64,
    functions: Vec<FunctionReport>,
}

#[derive(Debug, Serialize)]
struct FunctionReport {
    name: String,
    file: String,
    line: u64,
}

/// Makes the frames of a stack, as they are printed as JSON.
pub(super) fn frames(stacks: &Stacks, site: u64) -> Vec<FrameReport> {
    frame_reports(stacks.get(site))
}

/// Makes frames of locations.
pub(super) fn frame_reports<'l>(locations: impl Iterator<Item = &'l Location>) -> Vec<FrameReport> {
    let frame = |location: &Location| FrameReport {
        address: location.address,
        module: location.module.clone(),
        offset: location.offset,
        functions: location
            .functions
            .iter()
            .map(|function| FunctionReport {
                name: function.name.clone(),
                file: function.file.clone(),
                line: function.line,
            })
            .collect(),
    };
    locations.map(frame).collect()
}

/// Makes what is printed as JSON: all sites, those with most allocated bytes first.
#[must_use]
pub fn site_reports(sites: &[Counts], stacks: &Stacks) -> Vec<SiteReport> {
    let mut reports: Vec<_> = (0..)
        .zip(sites)
        .filter(|(_, counts)| counts.allocated.blocks > 0)
        .map(|(site, counts)| SiteReport { counts: *counts, stack: frames(stacks, site) })
        .collect();
    reports.sort_by_key(|site| std::cmp::Reverse(site.counts.allocated.bytes));
    reports
}
