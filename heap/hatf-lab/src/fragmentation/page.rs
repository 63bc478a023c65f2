//! Report-page elements for a snapshot of the heap.

use std::cmp::Reverse;

use metatf_page::{Column, Note, Page, Table, Value};

use super::{Moment, Pages, Share};

/// The maximum number of rows in a table of shares.
const ROWS: usize = 10;

impl Moment {
    /// Adds the pages of each size, followed by the sources of the waste.
    pub fn describe(&self, title: &str, page: &mut Page) {
        let (blocks, live) = (Value::Count(self.blocks), Value::Bytes(self.live));
        let place = [Value::text(title.to_owned()), Value::Count(self.tick)];
        page.heading(match self.time {
            0 => Note::new("{}, after event {}: {} blocks, {} live").with(place).with([blocks, live]),
            time => {
                let place = place.into_iter().chain([Value::Time(time)]);
                Note::new("{}, after event {} ({}): {} blocks, {} live").with(place).with([blocks, live])
            }
        });
        let names = ["page", "held", "", "wasted", "", "pinned", "(live on each)", "wasted on pinned"];
        let mut table = Table::new(names.map(Column::new));
        for pages in &self.pages {
            let held = pages.held.saturating_mul(pages.page);
            table.row([
                Value::Bytes(pages.page),
                Value::Count(pages.held),
                Value::Bytes(held),
                Value::Bytes(pages.wasted),
                Value::Part(pages.wasted, held),
                Value::Count(pages.pinned),
                Value::text(format!("<= {}", Value::Bytes(pages.pin))),
                Value::Bytes(pages.wasted_on_pinned),
            ]);
        }
        page.push(table);
        for pages in self.pages.iter().filter(|pages| pages.overlapping > 0) {
            let text =
                "on {} pages of {}, a block starts inside another block: the trace is invalid, or records are missing";
            page.push(Note::new(text).with([Value::Count(pages.overlapping), Value::Bytes(pages.page)]));
        }
        let Some(pages) = self.pages.first().filter(|pages| pages.held > 0) else { return };
        histogram(pages, page);
        let (wasted, has_times) = (pages.wasted, self.time > 0);
        table_of("by site", &self.sites, wasted, has_times, page);
        pinning(&self.sizes_of_functions, pages.wasted_on_pinned, has_times, page);
        if self.threads.len() > 1 {
            table_of("by thread", &self.threads, wasted, has_times, page);
        }
        table_of("by size", &self.sizes, wasted, has_times, page);
    }
}

/// Adds the fill levels of pages. Pinned pages have their own row, as in the preceding table.
fn histogram(pages: &Pages, page: &mut Page) {
    let title = Note::new("pages of {} by live bytes").with([Value::Bytes(pages.page)]);
    let tenths = pages.by_live_bytes.iter().zip(pages.pinned_by_live_bytes).map(|(all, pinned)| all - pinned);
    let rows: Vec<(u64, u64)> = (1..).zip(tenths).filter(|(tenth, _)| tenth * pages.page / 10 > pages.pin).collect();
    let most = rows.iter().map(|(_, number)| *number).max().unwrap_or(0).max(pages.pinned);
    let mut table = Table::new(["up to", "pages", ""].map(Column::new));
    table.row([Value::text("pinned"), Value::Count(pages.pinned), Value::Bar(pages.pinned, most)]);
    for (tenth, number) in rows {
        table.row([Value::text(format!("{}%", tenth * 10)), Value::Count(number), Value::Bar(number, most)]);
    }
    page.subheading(title);
    page.push(table);
}

/// Adds the functions that keep pinned pages from being free, by size class and in descending order of waste.
fn pinning(functions: &[Share], total: u64, has_times: bool, page: &mut Page) {
    let mut ranked: Vec<&Share> = functions.iter().filter(|of| of.wasted_on_pinned > 0).collect();
    ranked.sort_by_key(|of| Reverse(of.wasted_on_pinned));
    if ranked.is_empty() {
        return;
    }
    let names = ["wasted", "", "blocks", mean_title(has_times), oldest_title(has_times), "by size and function"];
    let mut table = Table::new(names.map(Column::new));
    let (first, rest) = ranked.split_at(ROWS.min(ranked.len()));
    for of in first {
        let (wasted, [mean, oldest]) = (of.wasted_on_pinned, of.age(has_times));
        let cells = [Value::Count(wasted), Value::Part(wasted, total), Value::Count(of.blocks), mean, oldest];
        table.row(cells.into_iter().chain([Value::text(of.name.clone())]));
    }
    if !rest.is_empty() {
        let wasted = rest.iter().map(|of| of.wasted_on_pinned).sum();
        let others = Value::text(format!("{} others", Value::Count(rest.len() as u64)));
        let blank = [Value::Blank, Value::Blank, Value::Blank];
        table.row([Value::Count(wasted), Value::Part(wasted, total)].into_iter().chain(blank).chain([others]));
    }
    page.subheading("on pinned pages");
    page.push(table);
}

/// Adds the largest shares and combines all others in one row, so the rows add up to the total exactly.
fn table_of(by: &'static str, shares: &[Share], total: u64, has_times: bool, page: &mut Page) {
    if shares.is_empty() {
        return;
    }
    let names = ["wasted", "", "on pinned", "blocks", "live", mean_title(has_times), oldest_title(has_times), by];
    let mut table = Table::new(names.map(Column::new));
    let cells = |share: &Share| {
        let [mean, oldest] = share.age(has_times);
        [
            Value::Count(share.wasted),
            Value::Part(share.wasted, total),
            Value::Count(share.wasted_on_pinned),
            Value::Count(share.blocks),
            Value::Count(share.bytes),
            mean,
            oldest,
            Value::text(share.name.clone()),
        ]
    };
    let (first, rest) = shares.split_at(ROWS.min(shares.len()));
    first.iter().for_each(|share| table.row(cells(share)));
    if !rest.is_empty() {
        let name = format!("{} others", Value::Count(rest.len() as u64));
        table.row(cells(&rest.iter().fold(Share { name, ..Share::default() }, Share::with)));
    }
    table.sum(cells(&shares.iter().fold(Share { name: "all".to_owned(), ..Share::default() }, Share::with)));
    page.subheading("");
    page.push(table);
}

/// Returns the column title for ages, which are in nanoseconds or in events.
fn mean_title(has_times: bool) -> &'static str {
    if has_times { "mean age" } else { "mean (ev.)" }
}

fn oldest_title(has_times: bool) -> &'static str {
    if has_times { "oldest" } else { "oldest (ev.)" }
}

impl Share {
    /// Returns the mean age and the age of the oldest block.
    fn age(&self, has_times: bool) -> [Value; 2] {
        if !has_times {
            return [Value::Count(self.ages / self.blocks.max(1)), Value::Count(self.oldest)];
        }
        let mean = self.nanoseconds / u128::from(self.blocks.max(1));
        [Value::Time(u64::try_from(mean).unwrap_or(u64::MAX)), Value::Time(self.oldest_nanoseconds)]
    }

    /// Adds another share but keeps this share's name.
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
            // A combined row uses only the sum.
            mean_nanoseconds: 0,
            nanoseconds: self.nanoseconds + other.nanoseconds,
        }
    }
}
