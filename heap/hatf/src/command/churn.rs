//! `hatf churn`: finds short-lived blocks and possible replacements.

use hatf_lab::churn::{Churn as SiteChurn, Churns, Instead, Settings};
use hatf_lab::sites::Amount;
use hatf_lab::{Heap, HeapTracker, Totals};
use hatf_trace::Result;
use hatf_trace::stacks::Stacks;
use hatf_view::report::{frames, stack};
use metatf_cli::OutputArgs;
use metatf_page::{Column, Note, Page, Table, Value, units};
use serde::Serialize;

use super::lab::{Source, Tables};
use super::output::show;
use super::symbols::Symbols;
use super::values::{size, time};

/// Find short-lived blocks by call stack, and suggest replacements for them.
///
/// A block is short-lived if it is freed within --within and before the threads have allocated another --meanwhile
/// bytes. If at least nine of ten blocks of a stack are short-lived, the last column suggests how to avoid allocating
/// each of them: a buffer kept by each thread, if no thread has two of them live at the same time; an arena, if they
/// are allocated one after the other and freed together; or a pool of free blocks.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf churn perl.mtf
  hatf churn perl.mtf --within 100us --meanwhile 4KiB
  hatf churn perl.mtf --format json | jq '.sites[] | select(.instead == \"buffer\")'")]
pub(crate) struct Churn {
    #[command(flatten)]
    source: Source,

    /// Maximum time from allocation to free. Ignored for traces without timestamps.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    within: u64,

    /// Maximum number of bytes allocated between allocation and free.
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = size)]
    meanwhile: u64,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputArgs,
}

/// The short-lived blocks of a trace.
#[derive(Serialize)]
pub(super) struct Report<'s> {
    #[serde(skip)]
    title: String,
    trace: Totals,
    settings: Settings,
    /// Short-lived blocks of all stacks.
    short: Amount,
    sites: Vec<Site<'s>>,
    #[serde(skip)]
    tables: Tables,
}

#[derive(Serialize)]
struct Site<'s> {
    #[serde(flatten)]
    churn: SiteChurn,
    stack: Frames<'s>,
}

/// The frames of a site. They are built only when printed, because the frames of all sites take more memory than the
/// trace's heap.
struct Frames<'s> {
    stacks: &'s Stacks,
    site: u64,
}

impl Serialize for Frames<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        frames(self.stacks, self.site).serialize(serializer)
    }
}

pub(crate) fn run(options: &Churn) -> Result<u8> {
    let settings = Settings { within: options.within, meanwhile: options.meanwhile };
    let mut tracker = HeapTracker::new(Churns::new(settings));
    options.source.observe(&mut tracker)?;
    let (mut heap, churns) = tracker.into_parts();
    let first = churns.report().into_iter().take(options.tables.rows).map(|churn| churn.site).collect();
    options.symbols.name(&options.source.trace, &mut heap.stacks, Some((first, options.tables.depth)))?;
    let title = options.source.trace.display().to_string();
    show(&Report::new(title, &heap, &churns, options.tables), &options.output)?;
    Ok(0)
}

impl metatf_page::Report for Report<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        self.trace.note(&mut page);
        self.describe(&mut page);
        page
    }
}

impl<'s> Report<'s> {
    pub(super) fn new(title: String, heap: &'s Heap, churns: &Churns, tables: Tables) -> Self {
        let (sites, stacks) = (churns.report(), &heap.stacks);
        let mut short = Amount::default();
        sites.iter().for_each(|site| short.sum(site.short));
        let site = |churn: SiteChurn| Site { churn, stack: Frames { stacks, site: churn.site } };
        let (trace, settings) = (heap.totals(), churns.settings());
        Self { title, trace, settings, short, sites: sites.into_iter().map(site).collect(), tables }
    }

    /// Adds the findings, without the totals.
    pub(super) fn describe(&self, page: &mut Page) {
        let Settings { within, meanwhile } = self.settings;
        let (all, short) = (self.trace.objects, self.short.blocks);
        page.heading(Note::new("SHORT-LIVED: {} of {} blocks, {}; {} in total").with([
            Value::Count(short),
            Value::Count(all),
            Value::Part(short, all),
            Value::Bytes(self.short.bytes),
        ]));
        let what = Note::new("freed within {}, and before {} more were allocated");
        page.push(what.with([Value::Time(within), Value::Bytes(meanwhile)]));
        let names = ["blocks", "", "of the stack's", "live at once", "largest", "lived", "instead", ""];
        let mut table = Table::new(names.map(Column::new));
        for Site { churn, stack: Frames { stacks, .. } } in self.sites.iter().take(self.tables.rows) {
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
