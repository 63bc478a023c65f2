//! Short-lived blocks, and possible replacements.

use hatf_lab::Totals;
use hatf_lab::blocks::{Churn as SiteChurn, Churns, Instead, Settings};
use hatf_lab::sites::Amount;
use hatf_trace::Result;
use metatf_page::{Column, Note, Page, Table, Value, units};
use serde::Serialize;

use super::{Analysis, Answer, Options, Running, Traits, View, size, time};
use crate::report::{SiteFrames, SiteTables, stack};

pub(super) const ROW: Analysis = Analysis::new::<Churn>(
    "churn",
    "Which blocks are short-lived, and would a buffer avoid them?",
    "Short-lived blocks",
    "churn.md",
)
.with(Traits { stacks: true, ..Traits::NONE });

/// Find short-lived blocks by call stack, and suggest replacements for them.
///
/// A block is short-lived if it is freed within --within and before the threads have allocated another --meanwhile
/// bytes. If at least nine of ten blocks of a stack are short-lived, the last column suggests how to avoid allocating
/// each block. It suggests a buffer kept by each thread if no thread has two of the blocks live at the same time, an
/// arena if the blocks are allocated one after the other and freed together, and a pool of free blocks in all other
/// cases.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf churn perl.mtf
  hatf churn perl.mtf --within 100us --meanwhile 4KiB
  hatf churn perl.mtf --format json | jq '.sites[] | select(.instead == \"buffer\")'")]
struct Churn {
    /// Maximum time from allocation to free. Ignored for traces without timestamps.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    within: u64,

    /// Maximum number of bytes allocated between allocation and free.
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = size)]
    meanwhile: u64,
}

impl Options for Churn {
    fn start(self, _: usize) -> Result<Box<dyn Running>> {
        Ok(Box::new(Churns::new(Settings { within: self.within, meanwhile: self.meanwhile })))
    }
}

impl Running for Churns {
    fn shown(&self, view: &View<'_>) -> Option<Vec<u64>> {
        Some(self.report().into_iter().take(view.tables.rows).map(|churn| churn.site).collect())
    }

    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        Ok(Box::new(ShortLived::new(self, view)))
    }
}

/// The short-lived blocks of a trace.
#[derive(Serialize)]
struct ShortLived<'s> {
    trace: Totals,
    settings: Settings,
    /// Short-lived blocks of all stacks.
    short: Amount,
    sites: Vec<Site<'s>>,
    #[serde(skip)]
    tables: SiteTables,
}

#[derive(Serialize)]
struct Site<'s> {
    #[serde(flatten)]
    churn: SiteChurn,
    stack: SiteFrames<'s>,
}

impl<'s> ShortLived<'s> {
    fn new(churns: &Churns, view: &View<'s>) -> Self {
        let View { heap, tables, .. } = *view;
        let (sites, stacks) = (churns.report(), &heap.stacks);
        let mut short = Amount::default();
        sites.iter().for_each(|site| short.sum(site.short));
        let site = |churn: SiteChurn| Site { churn, stack: SiteFrames { stacks, site: churn.site } };
        let (trace, settings) = (heap.totals(), churns.settings());
        Self { trace, settings, short, sites: sites.into_iter().map(site).collect(), tables }
    }
}

impl Answer for ShortLived<'_> {
    fn describe(&self, page: &mut Page) {
        let Settings { within, meanwhile } = self.settings;
        let (all, short) = (self.trace.objects, self.short.blocks);
        page.heading(Note::new("SHORT-LIVED: {} of {} blocks ({}), {} in total").with([
            Value::Count(short),
            Value::Count(all),
            Value::Part(short, all),
            Value::Bytes(self.short.bytes),
        ]));
        let what = Note::new("freed within {} and before another {} were allocated");
        page.push(what.with([Value::Time(within), Value::Bytes(meanwhile)]));
        let names = ["blocks", "", "of the stack's", "live at once", "largest", "lived", "instead", ""];
        let mut table = Table::new(names.map(Column::new));
        for Site { churn, stack: SiteFrames { stacks, .. } } in self.sites.iter().take(self.tables.rows) {
            table.row([
                Value::Count(churn.short.blocks),
                Value::Part(churn.short.blocks, short),
                Value::Part(churn.short.blocks, churn.allocated.blocks),
                Value::Count(churn.most_live),
                Value::Bytes(churn.largest),
                churn.mean_life.map_or(Value::Unknown, Value::Time),
                churn.instead.map_or(Value::Unknown, |instead| Value::text(said(instead, churn))),
                stack(stacks.get(churn.site), self.tables.depth),
            ]);
        }
        if !table.is_empty() {
            page.push(table);
        }
        let rest = self.sites.len().saturating_sub(self.tables.rows);
        if rest > 0 {
            page.push(Note::new("{} other stacks").with([Value::Count(rest as u64)]));
        }
    }
}

/// Describes the suggested replacement for a site's blocks.
fn said(instead: Instead, churn: &SiteChurn) -> String {
    match instead {
        Instead::Buffer if churn.threads > 1 => "a buffer per thread".to_owned(),
        Instead::Buffer => "a buffer".to_owned(),
        Instead::Arena => format!("an arena of {}", units::bytes(churn.most_bytes)),
        Instead::Pool => format!("a pool of {}", units::count(churn.most_live)),
    }
}
