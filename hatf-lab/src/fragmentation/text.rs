//! The heap at one moment, for people.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::{Moment, Share};
use crate::units::{bar, bytes, count, percent};

/// Rows of a table of shares.
const ROWS: usize = 10;

/// Prints one moment: pages of each size, then who wastes them.
///
/// # Errors
/// The output's.
pub fn text(title: &str, moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    let Moment { tick, blocks, live, .. } = *moment;
    writeln!(out, "\n{title}, after event {}: {} blocks, {} live", count(tick), count(blocks), bytes(live))?;
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
            writeln!(out, "  {} of them have blocks that overlap: the trace is wrong", count(pages.overlapping))?;
        }
    }
    let Some(pages) = moment.pages.first().filter(|pages| pages.held > 0) else { return Ok(()) };
    writeln!(out, "\n  pages of {} by live bytes, up to", bytes(pages.page))?;
    let most = pages.by_live_bytes.iter().copied().max().unwrap_or(0);
    for (tenth, number) in (1..).zip(pages.by_live_bytes) {
        writeln!(out, "  {:>4}% {:>14} {}", tenth * 10, count(number), bar(number, most, 40))?;
    }
    table("site", &moment.sites, pages.wasted, out)?;
    pinning(&moment.sites, pages.wasted_on_pinned, out)?;
    if moment.threads.len() > 1 {
        table("thread", &moment.threads, pages.wasted, out)?;
    }
    table("size", &moment.sizes, pages.wasted, out)
}

/// Prints the sites that keep pinned pages from being free, those with most waste there first.
fn pinning(sites: &[Share], total: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut sites: Vec<&Share> = sites.iter().filter(|site| site.wasted_on_pinned > 0).collect();
    sites.sort_by_key(|site| Reverse(site.wasted_on_pinned));
    if sites.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:>14} {:>7} {:>10} {:>12} {:>12}  on pinned pages, by site",
        "wasted", "", "blocks", "mean age", "oldest"
    )?;
    let (first, rest) = sites.split_at(ROWS.min(sites.len()));
    for site in first {
        let Share { wasted_on_pinned: wasted, blocks, ages, oldest, ref name, .. } = **site;
        let mean = count(ages / blocks.max(1));
        let (part, wasted) = (percent(wasted, total), count(wasted));
        writeln!(out, "  {wasted:>14} {part:>7} {:>10} {mean:>12} {:>12}  {name}", count(blocks), count(oldest))?;
    }
    if !rest.is_empty() {
        let wasted = rest.iter().map(|site| site.wasted_on_pinned).sum();
        let (part, wasted) = (percent(wasted, total), count(wasted));
        writeln!(out, "  {wasted:>14} {part:>7} {:>36}  {} others", "", count(rest.len() as u64))?;
    }
    Ok(())
}

/// Prints the largest shares, and the rest as one: the rows sum to the total exactly.
fn table(of: &str, shares: &[Share], total: u64, out: &mut dyn Write) -> io::Result<()> {
    if shares.is_empty() {
        return Ok(());
    }
    let mean = |share: &Share| count(share.ages / share.blocks.max(1));
    writeln!(
        out,
        "\n  {:>14} {:>7} {:>14} {:>10} {:>14} {:>12} {:>12}  by {of}",
        "wasted", "", "on pinned", "blocks", "live", "mean age", "oldest"
    )?;
    let row = |share: &Share, out: &mut dyn Write| {
        writeln!(
            out,
            "  {:>14} {:>7} {:>14} {:>10} {:>14} {:>12} {:>12}  {}",
            count(share.wasted),
            percent(share.wasted, total),
            count(share.wasted_on_pinned),
            count(share.blocks),
            count(share.bytes),
            mean(share),
            count(share.oldest),
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

impl Share {
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
        }
    }
}
