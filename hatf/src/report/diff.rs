//! What differs between two traces, for people and programs.

use std::io::{self, Write};

use hatf_lab::Totals;
use hatf_lab::classes::{bounds, range};
use hatf_lab::compare::{Change, Pair, ranked};
use hatf_lab::sites::{Amount, Counts, Measure};
use metatf_page::units::{bytes, count, count_change, percent_change};
use serde::Serialize;

use super::SiteTables;
use super::sites::{FrameReport, frames, stack, title};
use crate::compare::{Comparison, Matching, SiteStacks};

/// Prints the totals of two traces, and for each measure the sites, size classes and threads that changed most.
///
/// # Errors
/// The output's.
pub fn diff_text(
    comparison: &Comparison<'_>,
    measures: &[Measure],
    tables: SiteTables,
    out: &mut dyn Write,
) -> io::Result<()> {
    totals(comparison, out)?;
    for measure in measures {
        let (before, after) = (comparison.all.before.get(*measure), comparison.all.after.get(*measure));
        let amount = |amount: Amount| format!("{} in {} blocks", bytes(amount.bytes), count(amount.blocks));
        write!(out, "\n{}: {}", title(*measure), amount(before))?;
        writeln!(out, "{}", if before == after { String::new() } else { format!(" -> {}", amount(after)) })?;
        let mut table = Table { measure: *measure, tables, printed: false, out };
        table.print("by stack", "stacks", &comparison.sites, |start, key, out| {
            site(comparison, *key, start, tables, out)
        })?;
        table.print("by size", "sizes", &comparison.classes, |start, class, out| {
            writeln!(out, "{start}{}", range(*class))
        })?;
        // One thread has what all have.
        if comparison.threads.len() > 1 {
            let name = |key| thread(comparison, key);
            table.print("by thread", "threads", &comparison.threads, |start, key, out| {
                writeln!(out, "{start}{}", name(*key))
            })?;
        }
        if !table.printed {
            writeln!(out, "  no difference")?;
        }
    }
    Ok(())
}

fn totals(comparison: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
    let row = |name: &str, before: u64, after: u64, out: &mut dyn Write| {
        let change = count_change(i128::from(after) - i128::from(before));
        let percent = percent_change(before, after);
        writeln!(out, "  {name:<18} {:>16} {:>16} {change:>16} {percent:>8}", count(before), count(after))
    };
    writeln!(out, "\nTOTALS                         before            after           change")?;
    let (before, after) = (&comparison.before.totals, &comparison.after.totals);
    row("events", before.events, after.events, out)?;
    let named = [
        ("allocated", Measure::Allocated),
        ("live at the peak", Measure::Peak),
        ("leaked", Measure::Leaked),
        ("temporary", Measure::Temporary),
    ];
    for (name, measure) in named {
        let (before, after) = (comparison.all.before.get(measure), comparison.all.after.get(measure));
        row(name, before.bytes, after.bytes, out)?;
        row("  blocks", before.blocks, after.blocks, out)?;
    }
    let sides = [("before", before), ("after", after)];
    sides.into_iter().try_for_each(|(side, totals)| {
        totals.oddities.contradictions.lines().try_for_each(|line| writeln!(out, "  {side}: {line}"))
    })
}

/// The tables of one measure.
struct Table<'t> {
    measure: Measure,
    tables: SiteTables,
    /// Whether there was a difference.
    printed: bool,
    out: &'t mut dyn Write,
}

impl Table<'_> {
    /// Prints the rows that changed most; those that are not shown are the last row. `row` prints a key behind the start of its line.
    fn print<K>(
        &mut self,
        name: &str,
        others: &str,
        pairs: &[Pair<K>],
        row: impl Fn(&str, &K, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let rows = ranked(pairs, self.measure, self.tables.by_blocks);
        if rows.is_empty() {
            return Ok(());
        }
        self.printed = true;
        writeln!(self.out, "  {:>14} {:>8} {:>12}  {name}", "bytes", "", "blocks")?;
        let start = |change: Change, percent: &str| {
            let (bytes, blocks) = (count_change(change.bytes), count_change(change.blocks));
            format!("  {bytes:>14} {percent:>8} {blocks:>12}  ")
        };
        let (first, rest) = rows.split_at(self.tables.rows.min(rows.len()));
        for (pair, change) in first {
            let rank = |counts: &Counts| self.tables.rank(counts.get(self.measure));
            row(&start(*change, &percent_change(rank(&pair.before), rank(&pair.after))), &pair.key, self.out)?;
        }
        if !rest.is_empty() {
            let sum = rest.iter().fold(Change::default(), |sum, (_, change)| sum.and(*change));
            writeln!(self.out, "{}{} other {others}", start(sum, ""), count(rest.len() as u64))?;
        }
        Ok(())
    }
}

/// Prints the stack of a site as the second trace has it, if it does.
fn site(
    comparison: &Comparison<'_>,
    key: SiteStacks,
    start: &str,
    tables: SiteTables,
    out: &mut dyn Write,
) -> io::Result<()> {
    match (key.after, key.before) {
        (Some(number), _) => stack(start, &comparison.after.stacks, number, tables.depth, out),
        (None, number) => stack(start, &comparison.before.stacks, number.unwrap_or(0), tables.depth, out),
    }
}

/// Names a thread by its place, and by its numbers where they are others.
fn thread(comparison: &Comparison<'_>, place: usize) -> String {
    let [before, after] =
        [comparison.before, comparison.after].map(|side| side.threads.get(place).map(|(number, _)| *number));
    let name = place as u64 + 1;
    let number = |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    if [before, after].into_iter().flatten().all(|number| number == name) {
        format!("thread {name}")
    } else {
        format!("thread {name} (numbers: {}, {})", number(before), number(after))
    }
}

/// A difference in JSON.
#[derive(Debug, Serialize)]
pub struct DiffReport<'c> {
    before: &'c Totals,
    after: &'c Totals,
    total: RowReport,
    /// None if a trace has no stacks.
    sites: Option<Vec<SiteDiff>>,
    sizes: Vec<SizeDiff>,
    threads: Vec<ThreadDiff>,
}

#[derive(Debug, Serialize)]
struct RowReport {
    before: Counts,
    after: Counts,
    change: ChangeReport,
}

#[derive(Debug, Serialize)]
struct ChangeReport {
    peak: Change,
    leaked: Change,
    allocated: Change,
    temporary: Change,
}

#[derive(Debug, Serialize)]
struct SiteDiff {
    #[serde(flatten)]
    counts: RowReport,
    stack: Vec<FrameReport>,
}

#[derive(Debug, Serialize)]
struct SizeDiff {
    #[serde(flatten)]
    counts: RowReport,
    from: u64,
    to: u64,
}

#[derive(Debug, Serialize)]
struct ThreadDiff {
    #[serde(flatten)]
    counts: RowReport,
    /// Its place among the threads, from 1.
    thread: u64,
    /// Its number in the first trace.
    number_before: Option<u64>,
    number_after: Option<u64>,
}

impl RowReport {
    fn new<K>(pair: &Pair<K>) -> Self {
        let change = ChangeReport {
            peak: pair.change(Measure::Peak),
            leaked: pair.change(Measure::Leaked),
            allocated: pair.change(Measure::Allocated),
            temporary: pair.change(Measure::Temporary),
        };
        Self { before: pair.before, after: pair.after, change }
    }
}

/// Makes what is printed as JSON: all rows that differ, those that changed most by the measure first.
#[must_use]
pub fn diff_report<'c>(comparison: &Comparison<'c>, measure: Measure, by_blocks: bool) -> DiffReport<'c> {
    let site = |pair: &Pair<SiteStacks>| SiteDiff {
        counts: RowReport::new(pair),
        stack: match pair.key {
            SiteStacks { after: Some(number), .. } => frames(&comparison.after.stacks, number),
            SiteStacks { before, .. } => frames(&comparison.before.stacks, before.unwrap_or(0)),
        },
    };
    let size = |pair: &Pair<usize>| {
        let (from, to) = bounds(pair.key);
        SizeDiff { counts: RowReport::new(pair), from, to }
    };
    let thread = |pair: &Pair<usize>| {
        let number = |threads: &[(u64, Counts)]| threads.get(pair.key).map(|(number, _)| *number);
        ThreadDiff {
            counts: RowReport::new(pair),
            thread: pair.key as u64 + 1,
            number_before: number(&comparison.before.threads),
            number_after: number(&comparison.after.threads),
        }
    };
    let has_sites = comparison.matching != Matching::Nothing;
    DiffReport {
        before: &comparison.before.totals,
        after: &comparison.after.totals,
        total: RowReport::new(&comparison.all),
        sites: has_sites.then(|| differing(&comparison.sites, measure, by_blocks).map(site).collect()),
        sizes: differing(&comparison.classes, measure, by_blocks).map(size).collect(),
        threads: differing(&comparison.threads, measure, by_blocks).map(thread).collect(),
    }
}

/// Returns the pairs that differ in any measure: those that differ in this one first.
fn differing<K>(pairs: &[Pair<K>], measure: Measure, by_blocks: bool) -> impl Iterator<Item = &Pair<K>> {
    let first = ranked(pairs, measure, by_blocks).into_iter().map(|(pair, _)| pair);
    let same = move |pair: &&Pair<K>| pair.change(measure) == Change::default() && pair.before != pair.after;
    first.chain(pairs.iter().filter(same))
}
