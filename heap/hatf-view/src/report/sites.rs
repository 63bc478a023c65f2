//! Tables of allocations by stack.

use hatf_lab::history::Place;
use hatf_lab::sites::{Amount, Counts, Measure, ranked};
use hatf_lab::{Heap, Totals};
use metatf_page::{Column, Note, Page, Report, Table, Value};
use serde::{Serialize, Serializer};

use super::groups::{Grouped, around};
use super::site_tables::{NOT_KNOWN, SiteTables, title};
use crate::calls::Around;
use hatf_trace::stacks::{Location, Stacks};

/// Explanation for traces recorded with `--sizes-only`.
pub const SIZES_ONLY: &str = "the trace shows what was allocated, but not how long it was live";

/// Allocations by stack in a trace. The [module documentation](super) contains an example.
#[derive(Debug, Serialize)]
pub struct Sites<'s> {
    /// Name of the trace.
    #[serde(skip)]
    pub title: String,
    /// Totals of the trace.
    pub trace: Totals,
    /// Mean number of bytes per sampled block. If set, the amounts of sites are estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<u64>,
    /// Whether blocks are counted as if they had been freed immediately, because their ends are unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sizes_only: bool,
    /// Point in time for [`Measure::At`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// Range for [`Measure::Between`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Between>,
    /// The sites. JSON contains all of them.
    pub sites: AllSites<'s>,
    /// The allocations by function, line, file or module. If `None`, tables are by stack.
    #[serde(rename = "groups", skip_serializing_if = "Option::is_none")]
    pub grouped: Option<Grouped<'s>>,
    /// Pattern of functions. If set, the callers and callees of these functions are shown in place of the tables.
    #[serde(skip)]
    pub around: Option<&'s str>,
    /// Measures to show as tables.
    #[serde(skip)]
    pub measures: Vec<Measure>,
    /// Options of the tables.
    #[serde(skip)]
    pub tables: SiteTables,
}

/// A range of a trace.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Between {
    /// Start of the range.
    pub from: Place,
    /// End of the range.
    pub to: Place,
}

/// Sites, serialized with their stacks and sorted by allocated bytes in descending order.
#[derive(Clone, Copy, Debug)]
pub struct AllSites<'s> {
    /// Allocations of each stack, indexed by stack number.
    pub counts: &'s [Counts],
    /// The stacks.
    pub stacks: &'s Stacks,
}

impl Serialize for AllSites<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sites: Vec<_> = (0..).zip(self.counts).filter(|(_, counts)| counts.allocated.blocks > 0).collect();
        sites.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.allocated.bytes));
        let site = |(site, counts): (u64, &Counts)| SiteReport { counts: *counts, stack: frames(self.stacks, site) };
        serializer.collect_seq(sites.into_iter().map(site))
    }
}

impl Report for Sites<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        if self.sizes_only {
            page.note(format!("sizes only: {SIZES_ONLY}"));
        } else {
            self.trace.note(&mut page);
        }
        if let Some(mean) = self.sampling {
            let text = "sampled trace: one block per {} on average. Figures by site are estimates for all blocks.";
            page.push(Note::new(text).with([Value::Bytes(mean)]));
        }
        if let Some(at) = self.at {
            page.push(Note::new("chosen time: after event {}, at {}").with(place(at)));
        }
        if let Some(Between { from, to }) = self.between {
            let note = Note::new("range: from after event {}, at {}, to event {}, at {}");
            page.push(note.with(place(from).into_iter().chain(place(to))));
        }
        self.describe(&mut page);
        page
    }
}

fn place(Place { tick, time, .. }: Place) -> [Value; 2] {
    [Value::Count(tick), Value::Time(time)]
}

impl<'s> Sites<'s> {
    /// Returns the sites with all known measures to show. Tables are by group if `grouped` is given, and otherwise by
    /// stack.
    #[must_use]
    pub fn all(
        title: String,
        heap: &'s Heap,
        counts: &'s [Counts],
        grouped: Option<Grouped<'s>>,
        tables: SiteTables,
    ) -> Self {
        Self {
            title,
            trace: heap.totals(),
            sampling: heap.sampling,
            sizes_only: heap.has_sizes_only(),
            at: None,
            between: None,
            sites: AllSites { counts, stacks: &heap.stacks },
            grouped,
            around: None,
            measures: Measure::ALL.into_iter().filter(|measure| measure.is_known(heap)).collect(),
            tables,
        }
    }

    /// Adds the tables, or the callers and callees of the functions that match `around`.
    pub fn describe(&self, page: &mut Page) {
        if let (Some(pattern), Some(Grouped { places, .. })) = (self.around, self.grouped) {
            let found = Around::new(places, self.sites.counts, pattern);
            around(&found, places, pattern, &self.measures, self.tables, page);
        } else {
            let mut total = Counts::default();
            self.sites.counts.iter().for_each(|site| total.add(site));
            self.measures.iter().for_each(|measure| self.table(*measure, total.get(*measure), page));
        }
        let folded = self.grouped.and_then(|grouped| grouped.places.wrappers_sentence());
        folded.into_iter().for_each(|folded| page.push(folded));
    }

    /// Adds a heading and the table of the top sites: by stack, or by group if sites are grouped.
    fn table(&self, measure: Measure, total: Amount, page: &mut Page) {
        let values = [Value::text(title(measure)), Value::Bytes(total.bytes), Value::Count(total.blocks)];
        page.heading(Note::new("{}: {} in {} blocks").with(values));
        let table = match &self.grouped {
            Some(grouped) => grouped.table(measure, total, self.tables),
            None => self.by_stack(measure, total),
        };
        if !table.is_empty() {
            page.push(table);
            if measure == Measure::Short {
                page.push(Note::new("hatf churn shows which of these a buffer, an arena or a pool could replace"));
            }
        }
    }

    /// Returns a table of the top stacks.
    fn by_stack(&self, measure: Measure, total: Amount) -> Table {
        let SiteTables { rows, depth, by_blocks } = self.tables;
        let ranked = ranked(self.sites.counts, measure, by_blocks);
        let (first, rest) = ranked.split_at(rows.min(ranked.len()));
        let share = |amount: Amount| Value::Part(self.tables.rank(amount), self.tables.rank(total));
        let mut table = Table::new(["bytes", "", "blocks", ""].map(Column::new));
        for (site, amount) in first {
            let stack = stack(self.sites.stacks.get(*site as u64), depth);
            table.row([Value::Count(amount.bytes), share(*amount), Value::Count(amount.blocks), stack]);
        }
        if !rest.is_empty() {
            let add = |sum: Amount, (_, other): &(usize, Amount)| Amount {
                bytes: sum.bytes.saturating_add(other.bytes),
                blocks: sum.blocks.saturating_add(other.blocks),
            };
            let sum = rest.iter().fold(Amount::default(), add);
            let stacks = if rest.len() == 1 { "stack" } else { "stacks" };
            let others = Value::text(format!("{} other {stacks}", Value::Count(rest.len() as u64)));
            table.row([Value::Count(sum.bytes), share(sum), Value::Count(sum.blocks), others]);
        }
        table
    }
}

/// Formats a stack as a table cell with at most `depth` lines.
pub fn stack<'l>(locations: impl Iterator<Item = &'l Location>, depth: usize) -> Value {
    match stack_lines(locations, depth) {
        lines if lines.is_empty() => Value::text(NOT_KNOWN),
        lines => Value::Lines(lines),
    }
}

/// Returns up to `depth` lines of a stack, innermost function first.
pub(super) fn stack_lines<'l>(locations: impl Iterator<Item = &'l Location>, depth: usize) -> Vec<String> {
    let mut lines: Vec<String> = locations.flat_map(Location::lines).collect();
    let more = lines.len().saturating_sub(depth.max(1));
    lines.truncate(depth.max(1));
    lines.extend((more > 0).then(|| format!(".. {more} more")));
    lines
}

/// A site in JSON.
#[derive(Debug, Serialize)]
struct SiteReport {
    #[serde(flatten)]
    counts: Counts,
    stack: Vec<FrameReport>,
}

/// A frame in JSON.
#[derive(Debug, Serialize)]
pub struct FrameReport {
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

/// The frames of a site. The frames are built only when they are printed, because the frames of all sites occupy more
/// memory than the trace's heap.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
/// use hatf_view::report::SiteFrames;
///
/// let mut stacks = Stacks::default();
/// stacks.note(&EventKind::Symbol { frame: 0x10, line: 7, name: b"parse" });
/// let site = stacks.number(&[0x10]);
/// let json = serde_json::to_value(SiteFrames { stacks: &stacks, site })?;
/// assert_eq!(json[0]["functions"][0]["name"], "parse");
/// assert_eq!(json[0]["functions"][0]["line"], 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SiteFrames<'s> {
    /// The stacks of the trace.
    pub stacks: &'s Stacks,
    /// The number of the site.
    pub site: u64,
}

impl Serialize for SiteFrames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        frames(self.stacks, self.site).serialize(serializer)
    }
}

/// Returns the frames of a stack for JSON output.
#[must_use]
pub(super) fn frames(stacks: &Stacks, site: u64) -> Vec<FrameReport> {
    frame_reports(stacks.get(site))
}

/// Converts locations to frames.
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
