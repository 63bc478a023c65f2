//! The report of `spans`.

use super::table::{Kind, Table, saturated};
use super::tree::{self, Lines};
use metatf_page::{Column, Note, Page, Value};
use metatf_tools::spans::Pairs;
use serde::Serialize;

/// The durations of spans.
#[derive(Serialize)]
pub(super) struct Report<'s> {
    #[serde(skip)]
    trace: &'s str,
    kinds: Vec<KindReport<'s>>,
    tree: Lines<'s>,
    /// The number of unfinished spans.
    open: u64,
    without_end: u64,
    without_begin: u64,
}

#[derive(Serialize)]
struct KindReport<'s> {
    name: &'s str,
    count: u64,
    total_ns: u64,
    self_ns: u64,
    busy_ns: Option<u64>,
    mean_ns: u64,
    min_ns: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    histogram: Vec<Power>,
}

/// The spans whose duration is less than a power of two and at least the previous power of two.
#[derive(Serialize)]
struct Power {
    below_ns: u64,
    count: u64,
}

impl<'s> Report<'s> {
    pub(super) fn new(trace: &'s str, table: &'s Table, pairs: &'s Pairs) -> Self {
        Self {
            trace,
            kinds: table.sorted().into_iter().map(|(name, kind)| KindReport::new(name, kind)).collect(),
            tree: Lines(&pairs.tree),
            open: pairs.open(),
            without_end: pairs.without_end,
            without_begin: pairs.without_begin,
        }
    }
}

impl metatf_page::Report for Report<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.trace.to_owned());
        let names = ["count", "total", "self", "busy", "mean", "50 %", "90 %", "99 %", "most"].map(Column::new);
        let mut table = metatf_page::Table::new(names.into_iter().chain([Column::key("span")]));
        for kind in &self.kinds {
            let times = [kind.mean_ns, kind.p50_ns, kind.p90_ns, kind.p99_ns, kind.max_ns];
            let busy = kind.busy_ns.map_or(Value::Unknown, Value::Time);
            let sums = [Value::Count(kind.count), Value::Time(kind.total_ns), Value::Time(kind.self_ns), busy];
            let name = Value::text(kind.name.to_owned());
            table.row(sums.into_iter().chain(times.map(Value::Time)).chain([name]));
        }
        page.push(table);
        for (count, what) in [
            (self.open, "{} spans have not ended"),
            (self.without_end, "{} spans have no end, because their number was reused or an enclosing span ended"),
            (self.without_begin, "{} spans ended without a beginning in the trace"),
        ] {
            if count > 0 {
                page.push(Note::new(what).with([Value::Count(count)]));
            }
        }
        if !self.kinds.is_empty() {
            page.heading("DURATIONS");
        }
        for kind in &self.kinds {
            page.subheading(kind.name.to_owned());
            let most = kind.histogram.iter().map(|power| power.count).max().unwrap_or(0);
            let mut table = metatf_page::Table::new(["under", "spans", ""].map(Column::new));
            for Power { below_ns, count } in &kind.histogram {
                table.row([Value::Time(*below_ns), Value::Count(*count), Value::Bar(*count, most)]);
            }
            page.push(table);
        }
        let title = format!("{}: time of spans, excluding nested spans", self.trace);
        page.figure(tree::flame(self.tree.0, title));
        page
    }
}

impl<'s> KindReport<'s> {
    fn new(name: &'s str, kind: &Kind) -> Self {
        let powers = kind.powers().into_iter();
        Self {
            name,
            count: kind.count,
            total_ns: saturated(kind.total),
            self_ns: saturated(kind.own),
            busy_ns: kind.busy.map(saturated),
            mean_ns: kind.mean(),
            min_ns: kind.least,
            p50_ns: kind.at(0.5),
            p90_ns: kind.at(0.9),
            p99_ns: kind.at(0.99),
            max_ns: kind.most,
            histogram: powers.map(|(below_ns, count)| Power { below_ns, count }).collect(),
        }
    }
}

/// A report of spans nested in other spans.
#[derive(Serialize)]
pub(super) struct TreeReport<'s>(pub(super) Report<'s>);

impl metatf_page::Report for TreeReport<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.0.trace.to_owned());
        page.push(tree::table(self.0.tree.0));
        page
    }
}
