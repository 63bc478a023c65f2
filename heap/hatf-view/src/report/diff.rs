//! Report on the differences between two traces.

use hatf_lab::Totals;
use hatf_lab::sites::{Amount, AmountChange, Counts, Measure, Pair, ranked_pairs};
use hatf_lab::statistics::{bounds, range};
use metatf_page::{Column, Note, Page, Report, Table, Value};
use serde::{Serialize, Serializer};

use super::SiteTables;
use super::site_tables::title;
use super::sites::{FrameReport, frames, stack};
use crate::analysis::Ending;
use crate::compare::{Comparison, Matching, SiteStacks, Summary};
use crate::verdict::ending;

/// The differences between two traces.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::sites::Measure;
/// use hatf_trace::{Event, EventSink};
/// use hatf_view::compare::{Comparison, Counting};
/// use hatf_view::report::{Difference, SiteTables};
///
/// let mut traces = [HeapTracker::new(Counting::new()), HeapTracker::new(Counting::new())];
/// traces[0].event(&Event::malloc(0x1000, 1000))?;
/// traces[1].event(&Event::malloc(0x1000, 1500))?;
/// let [before, after] = traces.map(HeapTracker::into_parts).map(|(heap, counting)| counting.finish(heap));
/// let difference = Difference {
///     title: "before -> after".to_owned(),
///     comparison: &Comparison::new(&before, &after),
///     functions: Vec::new(),
///     folded: None,
///     measures: vec![Measure::Allocated],
///     tables: SiteTables::default(),
/// };
/// let (_, verdict) = &difference.verdicts()[0];
/// assert_eq!(verdict.to_string(), "allocated: +500 B (+50.0%)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Difference<'c> {
    /// Names of the traces.
    pub title: String,
    /// The comparison.
    pub comparison: &'c Comparison<'c>,
    /// Application functions; empty if stacks are not compared by function.
    pub functions: Vec<Pair<String>>,
    /// A sentence about the functions folded as wrappers, if there are any.
    pub folded: Option<Note>,
    /// Measures to show as tables. JSON rows are sorted by the change in the first measure.
    pub measures: Vec<Measure>,
    /// Options of the tables.
    pub tables: SiteTables,
}

impl Serialize for Difference<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let measure = self.measures.first().copied().unwrap_or(Measure::Peak);
        let function = |pair: &Pair<String>| FunctionDiff { counts: RowReport::new(pair), name: pair.key.clone() };
        let functions = differing(&self.functions, measure, self.tables.by_blocks).map(function).collect();
        DiffReport { functions, ..report(self.comparison, measure, self.tables.by_blocks) }.serialize(serializer)
    }
}

impl Report for Difference<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        self.endings().into_iter().for_each(|text| page.note(text));
        self.verdicts().into_iter().for_each(|(_, verdict)| page.push(verdict));
        totals(self.comparison, &mut page);
        self.measures.iter().for_each(|measure| self.measure(*measure, &mut page));
        if self.functions.iter().any(|pair| pair.before != pair.after) {
            self.folded.iter().for_each(|folded| page.push(folded.clone()));
        }
        page
    }
}

impl Difference<'_> {
    /// Describes how both programs ended, unless both exited with status 0 or nothing is known about their ends.
    fn endings(&self) -> Vec<String> {
        let sides = [("before", self.comparison.before), ("after", self.comparison.after)];
        let is_usual = |ending| matches!(ending, Ending::Unknown | Ending::Exited { status: 0 });
        if sides.iter().all(|(_, side)| is_usual(side.ending)) {
            return Vec::new();
        }
        let text = |(name, side): &(&str, &Summary)| {
            Some(format!("{name}: {}", ending(side.ending, side.duration, Some(side.all.leaked.bytes))?))
        };
        sides.iter().filter_map(text).collect()
    }

    /// Describes each measure that changed, with the function that contributed the most to the change.
    #[must_use]
    pub fn verdicts(&self) -> Vec<(Measure, Note)> {
        self.measures.iter().filter_map(|measure| Some((*measure, self.verdict(*measure)?))).collect()
    }

    /// Describes the change in a measure, and the function that contributed the most to it.
    fn verdict(&self, measure: Measure) -> Option<Note> {
        let all = &self.comparison.all;
        let (before, after) = (all.before.get(measure), all.after.get(measure));
        let changed = all.change(measure);
        let (total, by_blocks) = (self.growth(changed), self.tables.by_blocks);
        if total == 0 {
            return None;
        }
        let what = Value::text(verdict(measure));
        let amount = if by_blocks { Value::CountChange(total) } else { Value::BytesChange(total) };
        let part = Value::PartChange { before: self.tables.rank(before), after: self.tables.rank(after) };
        // Other functions may have changed in the opposite direction, so the change of one function may exceed the
        // total change.
        let most = ranked_pairs(&self.functions, measure, by_blocks)
            .into_iter()
            .find(|(_, change)| (self.growth(*change) > 0) == (total > 0));
        Some(match most {
            Some((pair, change)) => {
                let share = u64::try_from(self.growth(change).unsigned_abs()).unwrap_or(u64::MAX);
                let all = u64::try_from(total.unsigned_abs()).unwrap_or(u64::MAX);
                let by = Value::text(pair.key.clone());
                if share > all {
                    let own = if by_blocks { Value::CountChange } else { Value::BytesChange };
                    return Some(Note::new("{} {} ({}), {} by {}").with([
                        what,
                        amount,
                        part,
                        own(self.growth(change)),
                        by,
                    ]));
                }
                let values = [what, amount, part, Value::Part(share, all), by];
                Note::new("{} {} ({}), {} of it by {}").with(values)
            }
            None => Note::new("{} {} ({})").with([what, amount, part]),
        })
    }

    /// Returns the number by which a change is ranked.
    fn growth(&self, change: AmountChange) -> i128 {
        if self.tables.by_blocks { change.blocks } else { change.bytes }
    }

    /// Adds the largest changes in a measure.
    fn measure(&self, measure: Measure, page: &mut Page) {
        let comparison = self.comparison;
        let [before, after] = [&comparison.all.before, &comparison.all.after].map(|counts| counts.get(measure));
        let amount = |amount: Amount| [Value::Bytes(amount.bytes), Value::Count(amount.blocks)];
        let title = [Value::text(title(measure))];
        page.heading(if before == after {
            Note::new("{}: {} in {} blocks").with(title).with(amount(before))
        } else {
            Note::new("{}: {} in {} blocks -> {} in {} blocks").with(title).with(amount(before)).with(amount(after))
        });
        let tables = [
            self.table(measure, "by function", "functions", &self.functions, |name| Value::text(name.clone())),
            self.table(measure, "by stack", "stacks", &comparison.sites, |key| self.site(*key)),
            self.table(measure, "by size", "sizes", &comparison.classes, |class| Value::text(range(*class))),
            // With a single thread, the table would repeat the totals.
            (comparison.threads.len() > 1)
                .then(|| {
                    self.table(measure, "by thread", "threads", &comparison.threads, |key| {
                        Value::text(thread(comparison, *key))
                    })
                })
                .flatten(),
        ];
        let mut tables = tables.into_iter().flatten().peekable();
        if tables.peek().is_none() {
            page.note("no difference");
        }
        tables.for_each(|table| page.push(table));
    }

    /// Builds a table of the largest changes. The last row sums up the omitted rows.
    fn table<K>(
        &self,
        measure: Measure,
        name: &'static str,
        others: &str,
        pairs: &[Pair<K>],
        key: impl Fn(&K) -> Value,
    ) -> Option<Table> {
        let rows = ranked_pairs(pairs, measure, self.tables.by_blocks);
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::new(["bytes", "", "blocks", name].map(Column::new));
        let cells = |change: AmountChange, part: Value, key: Value| {
            [Value::CountChange(change.bytes), part, Value::CountChange(change.blocks), key]
        };
        let (first, rest) = rows.split_at(self.tables.rows.min(rows.len()));
        for (pair, change) in first {
            let rank = |counts: &Counts| self.tables.rank(counts.get(measure));
            let part = Value::PartChange { before: rank(&pair.before), after: rank(&pair.after) };
            table.row(cells(*change, part, key(&pair.key)));
        }
        if !rest.is_empty() {
            let sum = rest.iter().fold(AmountChange::default(), |sum, (_, change)| sum.and(*change));
            let others = Value::text(format!("{} other {others}", Value::Count(rest.len() as u64)));
            table.row(cells(sum, Value::Blank, others));
        }
        Some(table)
    }

    /// Returns the stack of a site in the second trace, or in the first if the second does not contain the site.
    fn site(&self, key: SiteStacks) -> Value {
        match (key.after, key.before) {
            (Some(number), _) => stack(self.comparison.after.stacks.get(number), self.tables.depth),
            (None, number) => stack(self.comparison.before.stacks.get(number.unwrap_or(0)), self.tables.depth),
        }
    }
}

/// Returns the start of a sentence about a change.
fn verdict(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "live at the peak:",
        Measure::Leaked => "live at the end:",
        Measure::Allocated => "allocated:",
        Measure::Temporary => "freed by the next event:",
        Measure::Short => "freed within 1 ms and 64 KiB of allocations:",
        // Traces are not compared by these measures.
        Measure::At | Measure::Between | Measure::Copied | Measure::Slack | Measure::Untouched => "",
    }
}

fn totals(comparison: &Comparison<'_>, page: &mut Page) {
    page.heading("TOTALS");
    let mut table = Table::new([Column::key("")].into_iter().chain(["before", "after", "change", ""].map(Column::new)));
    let mut row = |name: &'static str, before: u64, after: u64| {
        let change = Value::CountChange(i128::from(after) - i128::from(before));
        let cells = [Value::text(name), Value::Count(before), Value::Count(after), change];
        table.row(cells.into_iter().chain([Value::PartChange { before, after }]));
    };
    let (before, after) = (&comparison.before.totals, &comparison.after.totals);
    row("events", before.events, after.events);
    let named = [
        ("allocated", Measure::Allocated),
        ("live at the peak", Measure::Peak),
        ("live at the end", Measure::Leaked),
        ("temporary", Measure::Temporary),
        ("short-lived", Measure::Short),
    ];
    for (name, measure) in named {
        let (before, after) = (comparison.all.before.get(measure), comparison.all.after.get(measure));
        row(name, before.bytes, after.bytes);
        row("  blocks", before.blocks, after.blocks);
    }
    page.push(table);
    for (side, totals) in [("before", before), ("after", after)] {
        totals.oddities.contradictions.lines().for_each(|line| page.note(format!("{side}: {line}")));
    }
}

/// Names a thread by its position, followed by its numbers if they differ from the position.
fn thread(comparison: &Comparison<'_>, place: usize) -> String {
    let [before, after] =
        [comparison.before, comparison.after].map(|side| side.threads.get(place).map(|(number, _)| *number));
    let name = place as u64 + 1;
    let number = |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    if [before, after].into_iter().flatten().all(|number| number == name) {
        format!("thread {name}")
    } else {
        format!("thread {name} (number {} before, {} after)", number(before), number(after))
    }
}

/// A difference in JSON.
#[derive(Debug, Serialize)]
struct DiffReport<'c> {
    before: &'c Totals,
    after: &'c Totals,
    total: RowReport,
    /// Empty if stacks are not matched by functions.
    functions: Vec<FunctionDiff>,
    /// `None` if a trace has no stacks.
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
    peak: AmountChange,
    leaked: AmountChange,
    allocated: AmountChange,
    temporary: AmountChange,
    short: AmountChange,
}

#[derive(Debug, Serialize)]
struct FunctionDiff {
    #[serde(flatten)]
    counts: RowReport,
    name: String,
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
    /// Position among the threads, from 1.
    thread: u64,
    /// Thread number in the first trace.
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
            short: pair.change(Measure::Short),
        };
        Self { before: pair.before, after: pair.after, change }
    }
}

/// Builds the JSON report, which contains all rows that differ, sorted by the change in the measure.
fn report<'c>(comparison: &Comparison<'c>, measure: Measure, by_blocks: bool) -> DiffReport<'c> {
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
        functions: Vec::new(),
        sites: has_sites.then(|| differing(&comparison.sites, measure, by_blocks).map(site).collect()),
        sizes: differing(&comparison.classes, measure, by_blocks).map(size).collect(),
        threads: differing(&comparison.threads, measure, by_blocks).map(thread).collect(),
    }
}

/// Returns the pairs that differ in any measure, starting with the pairs that differ in this measure.
fn differing<K>(pairs: &[Pair<K>], measure: Measure, by_blocks: bool) -> impl Iterator<Item = &Pair<K>> {
    let first = ranked_pairs(pairs, measure, by_blocks).into_iter().map(|(pair, _)| pair);
    let same = move |pair: &&Pair<K>| pair.change(measure) == AmountChange::default() && pair.before != pair.after;
    first.chain(pairs.iter().filter(same))
}
