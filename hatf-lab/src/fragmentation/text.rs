//! The heap at one moment, for people.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::{Moment, Pages, Share};
use metatf_page::units::{bar, bytes, count, nanoseconds, percent};

/// Rows of a table of shares.
const ROWS: usize = 10;

/// Prints one moment: pages of each size, then who wastes them.
///
/// # Errors
/// The output's.
pub fn text(title: &str, moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    let Moment { tick, time, blocks, live, .. } = *moment;
    let after = if time == 0 { String::new() } else { format!(" ({})", nanoseconds(time)) };
    writeln!(out, "\n{title}, after event {}{after}: {} blocks, {} live", count(tick), count(blocks), bytes(live))?;
    writeln!(
        out,
        "  {:>10} {:>14} {:>12} {:>12} {:>7}   {:>22} {:>12}",
        "page", "held", "", "wasted", "", "pinned (live on each)", "wasted"
    )?;
    for pages in &moment.pages {
        let held = pages.held.saturating_mul(pages.page);
        let pinned = format!("{} (<= {})", count(pages.pinned), bytes(pages.pin));
        writeln!(
            out,
            "  {:>10} {:>14} {:>12} {:>12} {:>7}   {pinned:>22} {:>12}",
            bytes(pages.page),
            count(pages.held),
            bytes(held),
            bytes(pages.wasted),
            percent(pages.wasted, held),
            bytes(pages.wasted_on_pinned)
        )?;
        if pages.overlapping > 0 {
            writeln!(
                out,
                "  on {} of them a block begins in another: the trace is wrong, or records are missing",
                count(pages.overlapping)
            )?;
        }
    }
    let Some(pages) = moment.pages.first().filter(|pages| pages.held > 0) else { return Ok(()) };
    histogram(pages, out)?;
    let (wasted, has_times) = (pages.wasted, time > 0);
    table("site", &moment.sites, wasted, has_times, out)?;
    pinning(&moment.sizes_of_sites, pages.wasted_on_pinned, has_times, out)?;
    if moment.threads.len() > 1 {
        table("thread", &moment.threads, wasted, has_times, out)?;
    }
    table("size", &moment.sizes, wasted, has_times, out)
}

/// Prints how many pages are how full: pinned ones in a row of their own, as the table above counts them.
fn histogram(pages: &Pages, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n  pages of {} by live bytes, up to", bytes(pages.page))?;
    let tenths = pages.by_live_bytes.iter().zip(pages.pinned_by_live_bytes).map(|(all, pinned)| all - pinned);
    let rows: Vec<(u64, u64)> = (1..).zip(tenths).filter(|(tenth, _)| tenth * pages.page / 10 > pages.pin).collect();
    let most = rows.iter().map(|(_, number)| *number).max().unwrap_or(0).max(pages.pinned);
    writeln!(out, "  {:>7} {:>12} {}", "pinned", count(pages.pinned), bar(pages.pinned, most, 40))?;
    rows.into_iter().try_for_each(|(tenth, number)| {
        writeln!(out, "  {:>6}% {:>12} {}", tenth * 10, count(number), bar(number, most, 40))
    })
}

/// Prints the sites that keep pinned pages from being free, each size by itself, those with most waste there first.
fn pinning(sites: &[Share], total: u64, has_times: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut sites: Vec<&Share> = sites.iter().filter(|site| site.wasted_on_pinned > 0).collect();
    sites.sort_by_key(|site| Reverse(site.wasted_on_pinned));
    if sites.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:>14} {:>7} {:>10} {:>12} {:>12}  on pinned pages, by size and site",
        "wasted",
        "",
        "blocks",
        mean_title(has_times),
        oldest_title(has_times)
    )?;
    let (first, rest) = sites.split_at(ROWS.min(sites.len()));
    for site in first {
        let Share { wasted_on_pinned: wasted, blocks, ref name, .. } = **site;
        let (mean, oldest) = site.age(has_times);
        let (part, wasted) = (percent(wasted, total), count(wasted));
        writeln!(out, "  {wasted:>14} {part:>7} {:>10} {mean:>12} {oldest:>12}  {name}", count(blocks))?;
    }
    if !rest.is_empty() {
        let wasted = rest.iter().map(|site| site.wasted_on_pinned).sum();
        let (part, wasted) = (percent(wasted, total), count(wasted));
        writeln!(out, "  {wasted:>14} {part:>7} {:>36}  {} others", "", count(rest.len() as u64))?;
    }
    Ok(())
}

/// Prints the largest shares, and the rest as one: the rows sum to the total exactly.
fn table(of: &str, shares: &[Share], total: u64, has_times: bool, out: &mut dyn Write) -> io::Result<()> {
    if shares.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:>14} {:>7} {:>14} {:>10} {:>14} {:>12} {:>12}  by {of}",
        "wasted",
        "",
        "on pinned",
        "blocks",
        "live",
        mean_title(has_times),
        oldest_title(has_times)
    )?;
    let row = |share: &Share, out: &mut dyn Write| {
        let (mean, oldest) = share.age(has_times);
        writeln!(
            out,
            "  {:>14} {:>7} {:>14} {:>10} {:>14} {:>12} {:>12}  {}",
            count(share.wasted),
            percent(share.wasted, total),
            count(share.wasted_on_pinned),
            count(share.blocks),
            count(share.bytes),
            mean,
            oldest,
            share.name
        )
    };
    let (first, rest) = shares.split_at(ROWS.min(shares.len()));
    first.iter().try_for_each(|share| row(share, out))?;
    if !rest.is_empty() {
        let name = format!("{} others", count(rest.len() as u64));
        row(&rest.iter().fold(Share { name, ..Share::default() }, Share::with), out)?;
    }
    let all = shares.iter().fold(Share { name: "all".to_owned(), ..Share::default() }, Share::with);
    row(&all, out)
}

/// Ages are times, or else counted in events.
fn mean_title(has_times: bool) -> &'static str {
    if has_times { "mean age" } else { "mean (ev.)" }
}

fn oldest_title(has_times: bool) -> &'static str {
    if has_times { "oldest" } else { "oldest (ev.)" }
}

impl Share {
    /// Formats the mean age and that of the oldest block.
    fn age(&self, has_times: bool) -> (String, String) {
        if !has_times {
            return (count(self.ages / self.blocks.max(1)), count(self.oldest));
        }
        let mean = self.nanoseconds / u128::from(self.blocks.max(1));
        (nanoseconds(u64::try_from(mean).unwrap_or(u64::MAX)), nanoseconds(self.oldest_nanoseconds))
    }

    /// Adds another, and keeps its own name.
    fn with(self, other: &Self) -> Self {
        Self {
            name: self.name,
            wasted: self.wasted + other.wasted,
            wasted_on_pinned: self.wasted_on_pinned + other.wasted_on_pinned,
            blocks: self.blocks + other.blocks,
            bytes: self.bytes.saturating_add(other.bytes),
            oldest: self.oldest.max(other.oldest),
            ages: self.ages.saturating_add(other.ages),
            oldest_nanoseconds: self.oldest_nanoseconds.max(other.oldest_nanoseconds),
            // Of a row that stands for many the sum says it.
            mean_nanoseconds: 0,
            nanoseconds: self.nanoseconds + other.nanoseconds,
        }
    }
}
