//! A report as text.

use std::io::{self, Write};

use super::sites::{SIZES_ONLY, title};
use crate::analysis::{
    Estimate, Level, MarkReport, Off, PageCalls, PagesReport, PhaseReport, Quantiles, Report, SitesReport,
};
use hatf_lab::sites::Measure;
use hatf_lab::units::{bar, bytes, count, nanoseconds, percent};
use metatf_cli::shown;

/// Columns of the picture of live bytes.
const COLUMNS: usize = 72;

/// Prints a report.
///
/// # Errors
/// The output's.
pub fn text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for comment in &report.comments {
        writeln!(out, "  {}", shown(comment))?;
    }
    if let Some(estimate) = &report.estimate {
        sample(estimate, report.sizes_only, out)?;
    }
    totals(report, out)?;
    report.pages.as_ref().map_or(Ok(()), |pages| self::pages(pages, report, out))?;
    picture(report, out)?;
    sizes(report, out)?;
    lifetimes(report, out)?;
    if !report.sizes_only {
        reallocs(report, out)?;
    }
    threads(report, out)?;
    phases(report, out)?;
    if !report.sizes_only {
        still_live(report, out)?;
    }
    report.sites.as_ref().map_or(Ok(()), |sites| self::sites(sites, report.sizes_only, out))
}

/// Formats a time, or a length of time, where the trace has times.
fn time(report: &Report, nanosecond: u64) -> String {
    if report.duration == 0 { "-".to_owned() } else { nanoseconds(nanosecond) }
}

fn heading(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out, "\n{title}")
}

/// Prints what the program did by a sample of its blocks.
fn sample(estimate: &Estimate, sizes_only: bool, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "SAMPLE")?;
    writeln!(out, "  One block for each {} on average was recorded. For all blocks that gives:", bytes(estimate.mean))?;
    let amounts =
        [("allocated", estimate.allocated), ("live at the peak", estimate.peak), ("live at the end", estimate.leaked)];
    for (what, amount) in amounts.into_iter().take(if sizes_only { 1 } else { 3 }) {
        writeln!(out, "    {:>10} in {:>12} blocks {what}", bytes(amount.bytes), count(amount.blocks))?;
    }
    writeln!(out, "  Numbers below are of the sample, except for those by stack.")
}

fn totals(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (totals, calls, peak) = (&report.totals, &report.calls, &report.peak);
    heading(out, "EVENTS")?;
    let named = [
        ("malloc", calls.malloc),
        ("calloc", calls.calloc),
        ("aligned", calls.aligned),
        ("realloc", calls.realloc),
        ("realloc(NULL)", calls.realloc_of_null),
        ("free", calls.free),
        ("failed", calls.failed),
    ];
    let named = named.iter().filter(|(_, n)| *n > 0);
    let list: Vec<String> = named.map(|(name, n)| format!("{} {name}", count(*n))).collect();
    writeln!(out, "  {} records: {}", count(totals.records), list.join(", "))?;
    // Word for word valgrind's line, to be compared with it.
    writeln!(
        out,
        "  total heap usage: {} allocs, {} frees, {} bytes allocated",
        count(totals.allocs),
        count(totals.frees),
        count(totals.bytes)
    )?;
    totals.contradictions.text(out)?;
    if let Some(off) = &report.off {
        paused(report, off, out)?;
    }
    if let Some(usable) = &report.usable {
        let more = usable.usable.saturating_sub(usable.asked);
        writeln!(
            out,
            "  blocks have {} more than was asked for ({}), those live at the peak {} more",
            bytes(more),
            percent(more, usable.asked),
            bytes(usable.spare_at_peak)
        )?;
    }
    if totals.lost > 0 {
        writeln!(out, "  {} events were lost while recording", count(totals.lost))?;
    }
    if totals.heaps > 1 {
        writeln!(out, "  {} heaps: a program that execs another begins a new one", totals.heaps)?;
    }
    if report.sizes_only {
        return writeln!(out, "  sizes only: {SIZES_ONLY}");
    }
    heading(out, "PEAK")?;
    let after =
        if report.duration == 0 { String::new() } else { format!(", {} after the start", nanoseconds(peak.time)) };
    writeln!(
        out,
        "  {} live in {} blocks{after} (record {}); at most {} blocks",
        bytes(peak.bytes),
        count(peak.blocks_then),
        count(peak.record),
        count(peak.blocks)
    )
}

/// Prints what is not known because recording was off for a while.
fn paused(report: &Report, off: &Off, out: &mut dyn Write) -> io::Result<()> {
    let times = if off.times == 1 { "once".to_owned() } else { format!("{} times", count(off.times)) };
    writeln!(out, "  recording was off {times}, for {} in all", time(report, off.duration))?;
    if off.frees > 0 {
        writeln!(out, "  {} frees of blocks that were allocated while it was off, or before", count(off.frees))?;
    }
    if off.forgotten_blocks > 0 {
        let (blocks, sum) = (count(off.forgotten_blocks), bytes(off.forgotten_bytes));
        writeln!(
            out,
            "  {blocks} blocks ({sum}) were live when it stopped, and do not count after that: whether they were freed is not known"
        )?;
    }
    if off.at_end {
        writeln!(out, "  it was off at the end: blocks that are still live may have been freed since it stopped")?;
    }
    Ok(())
}

/// Prints what the kernel said of pages, and how they were asked for.
fn pages(pages: &PagesReport, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "PAGES                                        at most       after    at the end")?;
    let mut row = |what: &str, level: &Level| {
        let (peak, time, end) = (bytes(level.peak), time(report, level.time), bytes(level.end));
        writeln!(out, "  {what:<40} {peak:>11} {time:>11} {end:>13}")
    };
    if !report.sizes_only {
        let Report { peak, still_live, .. } = report;
        row("live blocks", &Level { peak: peak.bytes, time: peak.time, end: still_live.bytes })?;
    }
    row("asked for by calls, of no file", &pages.held)?;
    if pages.samples > 0 {
        row("resident and private", &pages.private)?;
        row("resident", &pages.resident)?;
        row("private, to be written", &pages.data)?;
    }
    let PageCalls { mmap, munmap, mremap, brk, madvise } = pages.calls;
    let named = [("mmap", mmap), ("munmap", munmap), ("mremap", mremap), ("brk", brk), ("madvise", madvise)];
    let list: Vec<_> = named.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{} {name}", count(*n))).collect();
    let calls = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    writeln!(out, "  calls: {calls}; the kernel was asked {} times", count(pages.samples))
}

/// Live bytes over time, as a row of eighths.
fn picture(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let columns = report.timeline.columns(COLUMNS);
    let most = columns.iter().copied().max().unwrap_or(0);
    if most == 0 || columns.len() < 2 {
        return Ok(());
    }
    let level = |bytes: u64| {
        let eighth = usize::try_from(u128::from(bytes) * 8 / u128::from(most)).unwrap_or(0);
        [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'].get(eighth).copied().unwrap_or('█')
    };
    heading(out, "LIVE BYTES OVER TIME")?;
    writeln!(out, "  {}", columns.into_iter().map(level).collect::<String>())?;
    let end = nanoseconds(report.duration);
    writeln!(out, "  0{end:>width$}", width = COLUMNS - 1)
}

fn sizes(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    heading(out, "SIZES           blocks            bytes")?;
    let most = report.sizes.buckets().map(|b| b.count).max().unwrap_or(0);
    for b in report.sizes.buckets() {
        let range = if b.from == b.to { b.from.to_string() } else { format!("{}..{}", b.from, b.to) };
        let (blocks, sum) = (count(b.count), bytes(b.bytes));
        writeln!(out, "  {range:>17} {blocks:>13} {sum:>10}  {}", bar(b.count, most, 30))?;
    }
    Ok(())
}

fn lifetimes(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.lifetimes.count() == 0 {
        return Ok(());
    }
    heading(out, "LIFETIMES of freed blocks: so many lived no longer (quantiles, at most 0.8 % too high)")?;
    let row = |name: &str, Quantiles { p50, p90, p99 }: Quantiles, unit: fn(u64) -> String| {
        format!("  {name:<28} 50%: {:<10} 90%: {:<10} 99%: {:<10}", unit(p50), unit(p90), unit(p99))
    };
    if report.duration > 0 {
        writeln!(out, "{}", row("in time", report.lifetime_quantiles, nanoseconds))?;
    }
    writeln!(out, "{}", row("in bytes allocated meanwhile", report.lifetime_in_bytes_quantiles, bytes))
}

fn reallocs(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let calls = &report.calls;
    if calls.realloc == 0 {
        return Ok(());
    }
    heading(out, "REALLOC")?;
    writeln!(
        out,
        "  {} of a block: {} grew, {} shrank, {} stayed in place; {} copied by those that moved",
        count(calls.realloc),
        count(calls.reallocs_grown),
        count(calls.reallocs_shrunk),
        percent(calls.reallocs_in_place, calls.realloc),
        bytes(calls.realloc_bytes_copied)
    )
}

fn threads(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.threads.len() < 2 {
        return Ok(());
    }
    heading(out, "THREADS        allocs        bytes        frees   began      ended      system     name")?;
    for thread in report.threads.iter().take(SHOWN) {
        let time = |at: Option<u64>| at.map_or_else(|| "-".to_owned(), |at| time(report, at));
        writeln!(
            out,
            "  {:>5} {:>13} {:>12} {:>12}   {:<10} {:<10} {:<10} {}",
            thread.thread,
            count(thread.allocs),
            bytes(thread.bytes),
            count(thread.frees),
            time(thread.began),
            time(thread.ended),
            thread.task.map_or_else(|| "-".to_owned(), |task| task.to_string()),
            shown(thread.name.as_deref().unwrap_or("-"))
        )?;
    }
    and_more(report.threads.len(), out)
}

/// Rows of a table that may be long.
const SHOWN: usize = 20;

fn and_more(rows: usize, out: &mut dyn Write) -> io::Result<()> {
    match rows.checked_sub(SHOWN) {
        Some(more @ 1..) => writeln!(out, "  and {more} more (--format json has all)"),
        _ => Ok(()),
    }
}

/// Prints phases and marks.
fn phases(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if !report.phases.is_empty() {
        heading(
            out,
            "PHASES                    times       time        allocs        bytes         peak       change",
        )?;
    }
    for phase in report.phases.iter().take(SHOWN) {
        let PhaseReport { times, allocs, change, .. } = *phase;
        let sign = if change < 0 { '-' } else { '+' };
        let mut change = format!("{sign}{}", bytes(change.unsigned_abs()));
        let (name, took) = (shown(&phase.name), time(report, phase.duration));
        let (times, allocs, sum, mut peak) = (count(times), count(allocs), bytes(phase.bytes), bytes(phase.peak));
        if report.sizes_only {
            "-".clone_into(&mut peak);
            "-".clone_into(&mut change);
        }
        let tail = if phase.not_ended > 0 { format!("  {} not ended", count(phase.not_ended)) } else { String::new() };
        writeln!(out, "  {name:<20} {times:>8} {took:>10} {allocs:>13} {sum:>12} {peak:>12} {change:>12}{tail}")?;
    }
    and_more(report.phases.len(), out)?;
    if !report.marks.is_empty() {
        heading(out, "MARKS                     times      first          last   live then")?;
    }
    for mark in report.marks.iter().take(SHOWN) {
        let MarkReport { times, first, last, live, .. } = *mark;
        let live = if report.sizes_only { "-".to_owned() } else { bytes(live) };
        let (name, times) = (shown(&mark.name), count(times));
        let (first, last) = (time(report, first), time(report, last));
        writeln!(out, "  {name:<20} {times:>8} {first:>10} {last:>13} {live:>12}")?;
    }
    and_more(report.marks.len(), out)?;
    match report.marks_and_phases_left_out {
        0 => Ok(()),
        more => writeln!(out, "  {} marks and phases were left out: there were too many names", count(more)),
    }
}

fn still_live(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let live = &report.still_live;
    heading(out, "STILL LIVE at the end")?;
    writeln!(out, "  {} bytes in {} blocks", count(live.bytes), count(live.blocks))?;
    if live.replaced_blocks > 0 {
        let (bytes, blocks) = (count(live.replaced_bytes), count(live.replaced_blocks));
        writeln!(out, "  and {bytes} bytes in {blocks} blocks when another program took the place of theirs (exec)")?;
    }
    if live.blocks == 0 {
        return Ok(());
    }
    writeln!(out, "  the largest:")?;
    for block in &live.largest {
        let when =
            if report.duration == 0 { String::new() } else { format!(", allocated at {}", nanoseconds(block.time)) };
        writeln!(out, "  {:>14} bytes at 0x{:x}{when}", count(block.size), block.address)?;
    }
    Ok(())
}

/// Functions of a stack that are shown.
const FUNCTIONS: usize = 3;

/// Prints the stacks that allocated most, each in a line.
fn sites(report: &SitesReport, sizes_only: bool, out: &mut dyn Write) -> io::Result<()> {
    let more = match (report.has_symbols, report.has_modules) {
        (false, true) => "hatf symbolize adds the names of functions; ",
        _ => "",
    };
    heading(out, &format!("SITES: {} stacks; {more}hatf sites prints all, and whole", count(report.stacks)))?;
    for measure in Measure::ALL {
        if sizes_only && measure != Measure::Allocated {
            continue;
        }
        let total = report.total.get(measure);
        let title = format!("{}: {} in {} blocks", title(measure), bytes(total.bytes), count(total.blocks));
        heading(out, &title)?;
        let rows = report.get(measure);
        if !rows.is_empty() {
            writeln!(out, "  {:>14} {:>7} {:>12}", "bytes", "", "blocks")?;
        }
        for site in rows {
            let mut names: Vec<_> =
                site.functions.iter().take(FUNCTIONS).map(|name| shown(name).into_owned()).collect();
            match names.len() {
                0 => names.push("stack not known".to_owned()),
                shown if shown < site.functions.len() => names.push("..".to_owned()),
                _ => {}
            }
            let (sum, share, blocks) = (count(site.bytes), percent(site.bytes, total.bytes), count(site.blocks));
            writeln!(out, "  {sum:>14} {share:>7} {blocks:>12}  {}", names.join(" <- "))?;
        }
    }
    Ok(())
}
