//! Report on the blocks live at the end of a trace or at another point in time. It shows their functions and ages, and
//! whether their memory grows.

use std::collections::{BTreeMap, HashMap};

use hatf_lab::history::{Direction, Place};
use hatf_lab::leaks::{GroupLeak, Growth, Leaked, assumed_startup};
use hatf_lab::sites::{Amount, Counts, Measure};
use hatf_lab::{Heap, Totals};
use metatf_page::{Chart, Column, Note, Page, Report, Series, Shape, Table, Unit, Value, units};
use serde::Serialize;

use super::groups::{Grouped, Key};
use super::site_tables::{NOT_KNOWN, SiteTables};
use crate::analysis::Ending;
use crate::calls::{Groups, Places, title};
use crate::suppress::{Entry, Frame, Suppression, Suppressions};
use crate::verdict::{GrowingFunction, Run, ending, function_name, growth};

/// Maximum number of functions named in the introduction.
const NAMED: usize = 3;

/// Maximum number of functions drawn over time.
const DRAWN: usize = 6;

/// Group number of blocks without a stack.
const NOWHERE: u32 = u32::MAX;

/// Input of a report.
#[derive(Clone, Copy, Debug)]
pub struct LeaksOf<'s> {
    /// Name of the trace.
    pub name: &'s str,
    /// The heap at the chosen time.
    pub heap: &'s Heap,
    /// The blocks live at the chosen time.
    pub leaked: &'s Leaked,
    /// Whether the chosen time is the end of the trace.
    pub is_end: bool,
    /// The way in which the program ended.
    pub ending: Ending,
    /// The functions that hold the blocks.
    pub places: &'s Places<'s>,
    /// Extent of the startup.
    pub startup: Startup,
    /// The user's suppressions.
    pub suppressions: &'s Suppressions,
    /// The built-in suppressions.
    pub known: &'s Suppressions,
}

/// Extent of the startup.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Startup {
    /// Last event of the startup.
    #[serde(flatten)]
    pub end: Place,
    /// Whether the startup is assumed to be the first 5% of events, because it was not specified.
    pub is_guess: bool,
}

impl Startup {
    /// Assumes that the startup is the first 5% of events.
    #[must_use]
    pub fn guess(leaked: &Leaked) -> Self {
        Self { end: Place { tick: assumed_startup(leaked.at.tick), ..Place::default() }, is_guess: true }
    }
}

/// The live blocks of a trace. JSON contains all groups.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_trace::{Event, EventSink};
/// use hatf_view::calls::{Folding, GroupBy, Places};
/// use hatf_view::report::{Leaks, LeaksOf, SiteTables, Startup};
/// use hatf_view::suppress::Suppressions;
///
/// let mut tracker = HeapTracker::new(hatf_lab::leaks::Leaks::new());
/// for event in [Event::malloc(0x1000, 64), Event::malloc(0x2000, 32), Event::free(0x1000)] {
///     tracker.event(&event)?;
/// }
/// let (heap, leaks) = tracker.into_parts();
/// let (heap, leaked, none) = (&heap, &leaks.report(&heap), &Suppressions::default());
/// let places = &Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
/// let (startup, suppressions, known) = (Startup::guess(leaked), none, none);
/// let (name, is_end, ending) = ("a trace", true, hatf_view::analysis::Ending::Unknown);
/// let of = LeaksOf { name, heap, leaked, is_end, ending, places, startup, suppressions, known };
/// let left = Leaks::new(of, SiteTables::default()).left();
/// assert_eq!((left.blocks, left.bytes), (1, 32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Leaks<'s> {
    #[serde(skip)]
    title: String,
    trace: Totals,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling: Option<u64>,
    at: Place,
    startup: Startup,
    /// Unit of ages.
    ages: &'static str,
    /// Unit of rates.
    rates: &'static str,
    live: Amount,
    suppressed: Amount,
    known: Amount,
    /// All live blocks that no suppression matches, neither the user's nor a built-in one.
    left: GroupLeak,
    groups: Vec<GroupReport<'s>>,
    known_to_stay: Vec<Suppressed<'s>>,
    suppressions: Vec<Suppressed<'s>>,
    #[serde(skip)]
    is_end: bool,
    ending: Ending,
    /// The last time in the trace.
    #[serde(skip)]
    end: u64,
    /// The peak of live bytes.
    #[serde(skip)]
    peak: u64,
    #[serde(skip)]
    has_times: bool,
    #[serde(skip)]
    drawn: Vec<Series>,
    /// Sites that no suppression matches, with their group numbers.
    #[serde(skip)]
    sites: Vec<(u64, Amount, u32)>,
    #[serde(skip)]
    places: &'s Places<'s>,
    #[serde(skip)]
    tables: SiteTables,
}

#[derive(Debug, Serialize)]
struct GroupReport<'s> {
    #[serde(flatten)]
    key: Option<Key<'s>>,
    #[serde(flatten)]
    leak: GroupLeak,
    #[serde(skip)]
    name: String,
    /// The name of the function in a sentence.
    #[serde(skip)]
    in_sentence: String,
    #[serde(skip)]
    cell: Value,
}

/// The blocks matched by a suppression.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Suppressed<'s> {
    /// Name of the suppression.
    pub name: &'s str,
    /// File of the suppression.
    pub file: &'s str,
    /// First line of the suppression.
    pub line: u64,
    /// Number of matched stacks.
    pub stacks: u64,
    /// Blocks of the matched stacks.
    #[serde(flatten)]
    pub live: Amount,
    #[serde(skip)]
    cannot_match: Option<&'static str>,
}

impl<'s> Suppressed<'s> {
    fn of(suppression: &'s Suppression) -> Self {
        let Suppression { name, file, line, .. } = suppression;
        let cannot_match = suppression.cannot_match();
        Self { name, file, line: *line, stacks: 0, live: Amount::default(), cannot_match }
    }

    fn take(&mut self, amount: Amount) {
        self.stacks += 1;
        self.live.sum(amount);
    }
}

/// Removes what a snapshot does not show about live blocks.
fn without_history(mut leak: GroupLeak) -> GroupLeak {
    (leak.startup, leak.ages, leak.growth) = Default::default();
    leak
}

impl<'s> Leaks<'s> {
    /// Builds the report, with tables formatted as specified.
    #[must_use]
    pub fn new(of: LeaksOf<'s>, tables: SiteTables) -> Self {
        let LeaksOf { name, heap, leaked, is_end, ending, places, startup, suppressions, known } = of;
        let mut used: Vec<_> = suppressions.list().iter().map(Suppressed::of).collect();
        let mut of_known: Vec<_> = known.list().iter().map(Suppressed::of).collect();
        let (mut live, mut suppressed, mut is_known) = (Amount::default(), Amount::default(), Amount::default());
        let (mut counts, mut sites) = (Vec::new(), Vec::new());
        for (site, amount) in leaked.sites() {
            live.sum(amount);
            let taken = |by: &Suppressions, list: &mut Vec<Suppressed<'s>>, sum: &mut Amount| {
                let found = by.find(&heap.stacks, site).and_then(|number| list.get_mut(number));
                let is_found = found.is_some();
                found.into_iter().for_each(|found| {
                    found.take(amount);
                    sum.sum(amount);
                });
                is_found
            };
            if taken(suppressions, &mut used, &mut suppressed) || taken(known, &mut of_known, &mut is_known) {
                continue;
            }
            let group = places.own(site).next().map_or(NOWHERE, |place| places.group(place));
            sites.push((site, amount, group));
            if let Ok(site) = usize::try_from(site) {
                counts.resize(counts.len().max(site + 1), Counts::default());
                let one = Counts { leaked: amount, allocated: amount, ..Counts::default() };
                counts.get_mut(site).into_iter().for_each(|counts| *counts = one);
            }
        }
        let group_of: HashMap<u64, u32> = sites.iter().map(|(site, _, group)| (*site, *group)).collect();
        let mut left =
            leaked.groups(startup.end.tick, |site| group_of.get(&site).map(|_| 0)).remove(&0).unwrap_or_default();
        // The order of the blocks in a snapshot is not that of their allocations.
        let is_snapshot = ending == Ending::Snapshot;
        if is_snapshot {
            left = without_history(left);
        }
        let groups = Groups::new(places, &counts);
        let grouped = Grouped { places, groups: &groups, inclusive: false };
        let found = leaked.groups(startup.end.tick, |site| group_of.get(&site).copied());
        let ranked = ranked(found, tables);
        let drawn = ranked.iter().take(DRAWN).map(|(number, _)| Series {
            name: name_of(places, *number),
            shape: Shape::Steps,
            points: leaked.over_time(|site| group_of.get(&site) == Some(number)),
        });
        let drawn = drawn.collect();
        let nothing = crate::calls::Group::default();
        let report = |(number, leak): (u32, GroupLeak)| {
            let known = Some(number).filter(|number| *number != NOWHERE);
            let group = known.and_then(|number| groups.groups.get(number as usize)).unwrap_or(&nothing);
            GroupReport {
                key: places.keys().get(number as usize).map(Key::of),
                leak: if is_snapshot { without_history(leak) } else { leak },
                name: name_of(places, number),
                in_sentence: function_name(places, &groups, number, Measure::Leaked)
                    .unwrap_or_else(|| NOT_KNOWN.to_owned()),
                cell: grouped.cell(known, group, Measure::Leaked, tables),
            }
        };
        Self {
            title: name.to_owned(),
            trace: heap.totals(),
            sampling: heap.sampling,
            at: leaked.at,
            startup,
            ages: if leaked.has_times { "nanoseconds" } else { "bytes allocated since" },
            rates: if leaked.has_times { "bytes a second" } else { "bytes in 1,000 events" },
            live,
            suppressed,
            known: is_known,
            left,
            groups: ranked.into_iter().map(report).collect(),
            known_to_stay: of_known.into_iter().filter(|known| known.stacks > 0).collect(),
            suppressions: used,
            is_end,
            ending,
            end: leaked.end,
            peak: heap.totals().max_bytes,
            has_times: leaked.has_times,
            drawn,
            sites,
            places,
            tables,
        }
    }

    /// Returns the live blocks that no suppression matches.
    #[must_use]
    pub fn left(&self) -> Amount {
        self.left.live
    }

    /// Removes the table of known blocks.
    #[must_use]
    pub fn without_known(mut self) -> Self {
        self.known_to_stay.clear();
        self
    }

    /// Returns the suppressions that matched nothing. If a suppression cannot match anything, the reason is returned
    /// with it.
    pub fn unused(&self) -> impl Iterator<Item = (&Suppressed<'s>, Option<&'static str>)> {
        self.suppressions.iter().filter(|used| used.stacks == 0).map(|used| (used, used.cannot_match))
    }

    /// Returns one suppression per remaining stack, sorted by bytes in descending order.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'s>> {
        let mut sites = self.sites.clone();
        sites.sort_by_key(|(site, amount, _)| (std::cmp::Reverse(amount.bytes), *site));
        let entry = |(site, amount, group): (u64, Amount, u32)| Entry {
            name: format!(
                "{} bytes in {} blocks by {}",
                units::count(amount.bytes),
                units::count(amount.blocks),
                name_of(self.places, group)
            ),
            function: self.places.keys().get(group as usize).map_or("", |key| &key.name),
            frames: Frame::of_stack(self.places.stacks(), site),
        };
        sites.into_iter().map(entry).collect()
    }

    /// Adds a summary in full sentences.
    fn verdict(&self, page: &mut Page) {
        let amount = |amount: Amount| [Value::Bytes(amount.bytes), Value::Count(amount.blocks)];
        let Place { tick, time, .. } = self.at;
        if self.is_end {
            ending(self.ending, self.end, Some(self.live.bytes)).into_iter().for_each(|text| page.note(text));
        }
        page.push(if self.ending == Ending::Snapshot {
            Note::new("{} in {} blocks are live; a snapshot contains neither their functions nor their ages")
                .with(amount(self.live))
        } else if self.is_end {
            Note::new("{} in {} blocks are live at the end").with(amount(self.live))
        } else {
            let at = [Value::Count(tick), Value::Time(time)];
            Note::new("{} in {} blocks are live after event {}, at {}").with(amount(self.live).into_iter().chain(at))
        });
        if self.suppressed.blocks > 0 {
            page.push(Note::new("{} in {} blocks are suppressed").with(amount(self.suppressed)));
        }
        if self.known.blocks > 0 {
            let note = "{} in {} blocks belong to libraries and interpreters that are known to keep them until the end";
            page.push(Note::new(note).with(amount(self.known)));
        }
        if self.left.live.blocks == 0 {
            page.note("nothing else is live");
            return;
        }
        if self.ending == Ending::Snapshot {
            return;
        }
        let startup = self.left.startup;
        let part = [Value::Bytes(startup.bytes), Value::Part(startup.bytes, self.left.live.bytes)];
        let end = [Value::Count(self.startup.end.tick), Value::Time(self.startup.end.time)];
        let text = match (self.startup.is_guess, self.has_times) {
            (true, _) => {
                "{} in {} blocks remain; {} ({}) of that is from the startup (the first 5% of events, up to event {})"
            }
            (false, true) => "{} in {} blocks remain; {} ({}) of that is from the startup (up to event {}, at {})",
            (false, false) => "{} in {} blocks remain; {} ({}) of that is from the startup (up to event {})",
        };
        page.push(Note::new(text).with(amount(self.left.live).into_iter().chain(part).chain(end)));
        self.growing(page);
        page.note(
            "a trace does not show whether the program still has pointers to these blocks; Valgrind and LeakSanitizer \
             search for such pointers",
        );
    }

    /// Adds a sentence about growth.
    fn growing(&self, page: &mut Page) {
        let Some(all) = self.left.growth else {
            page.note("growth unknown: too few events after the startup");
            return;
        };
        let known = self.groups.iter().filter(|group| group.key.is_some());
        let function = |group: &GroupReport<'_>| {
            Some(GrowingFunction { name: group.in_sentence.clone(), growth: group.leak.growth? })
        };
        let functions = (self.places.stacks().count() > 1).then(|| known.filter_map(function).collect());
        let run = Run { has_times: self.has_times, exited: self.is_end && self.ending.is_exit(), peak: self.peak };
        let text = growth("Their memory", Some(all), functions, run);
        text.into_iter().for_each(|text| page.note(text));
        let grows = |group: &&GroupReport<'_>| is_growing(&group.leak);
        let growing: Vec<_> = self.groups.iter().filter(grows).collect();
        let named = growing.iter().take(NAMED).map(|group| {
            let growth = group.leak.growth.map_or_else(String::new, |growth| self.rate(growth.rate));
            format!("{} ({growth})", group.name)
        });
        let named: Vec<String> = named.collect();
        let more = match growing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let count = Value::Count(growing.len() as u64);
        match (named.is_empty(), all.direction == Direction::Growing) {
            (true, false) => {
                page.note("no function is certain to grow: the blocks come and go, or were allocated once");
            }
            (true, true) => page.note("the total grows, but no single function is certain to grow"),
            (false, _) => {
                let text = if growing.len() == 1 { "{} function grows: {}{}" } else { "{} functions grow: {}{}" };
                page.push(Note::new(text).with([count, Value::text(named.join(", ")), Value::text(more)]));
            }
        }
    }

    /// Formats a rate.
    fn rate(&self, rate: f64) -> String {
        let per = if self.has_times { "/s" } else { "/1,000 events" };
        format!("{}{per}", units::bytes_change(rounded(rate)))
    }

    fn table(&self, page: &mut Page) {
        let by_blocks = self.tables.by_blocks;
        let ages =
            if self.has_times { ["youngest", "median", "oldest"] } else { ["youngest (bytes)", "median", "oldest"] };
        let [youngest, median, oldest] = ages;
        let names = [if by_blocks { "blocks" } else { "bytes" }, "", if by_blocks { "bytes" } else { "blocks" }];
        let names = names.into_iter().chain(["startup", youngest, median, oldest, "growth", "95% range", "function"]);
        let mut table = Table::new(names.map(Column::new));
        let age = |age| if self.has_times { Value::Time(age) } else { Value::Bytes(age) };
        for GroupReport { leak, cell, .. } in self.groups.iter().take(self.tables.rows) {
            let GroupLeak { live, startup, ages, growth, .. } = *leak;
            let [growth, interval] = self.growth(growth);
            let (first, second) = if by_blocks { (live.blocks, live.bytes) } else { (live.bytes, live.blocks) };
            table.row([
                Value::Count(first),
                Value::Part(self.tables.rank(live), self.tables.rank(self.left.live)),
                Value::Count(second),
                Value::Part(startup.bytes, live.bytes),
                age(ages.youngest),
                age(ages.median),
                age(ages.oldest),
                growth,
                interval,
                cell.clone(),
            ]);
        }
        let rest = self.groups.iter().skip(self.tables.rows).map(|group| group.leak.live);
        let (others, rest) = rest.fold((0_u64, Amount::default()), |(count, mut sum), live| {
            sum.sum(live);
            (count + 1, sum)
        });
        if others > 0 {
            let text = Note::new("and {} others: {} in {} blocks");
            table.rest(text.with([Value::Count(others), Value::Bytes(rest.bytes), Value::Count(rest.blocks)]));
        }
        page.heading("BY FUNCTION, growing functions first");
        page.push(table);
    }

    /// Returns the cells of a growth.
    fn growth(&self, growth: Option<Growth>) -> [Value; 2] {
        match growth {
            None => [Value::text("too few events"), Value::Blank],
            Some(Growth { direction: Direction::Steady, rate, .. }) if rounded(rate) > 0 => {
                [Value::text(format!("perhaps {}", self.rate(rate))), Value::Blank]
            }
            Some(Growth { direction: Direction::Steady, .. }) => [Value::text("steady"), Value::Blank],
            Some(Growth { rate, low, high, .. }) => {
                let interval =
                    format!("{} to {}", units::bytes_change(rounded(low)), units::bytes_change(rounded(high)));
                [Value::text(self.rate(rate)), Value::text(interval)]
            }
        }
    }
}

impl Report for Leaks<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        self.describe(&mut page);
        page
    }
}

impl Leaks<'_> {
    /// Adds the report to a page.
    pub fn describe(&self, page: &mut Page) {
        self.verdict(page);
        if self.ending == Ending::Snapshot {
            return;
        }
        if let Some(mean) = self.sampling {
            let text = "sampled trace: one block per {} on average. Figures are estimates for all blocks.";
            page.push(Note::new(text).with([Value::Bytes(mean)]));
        }
        if !self.groups.is_empty() {
            self.table(page);
            self.places.wrappers_sentence().into_iter().for_each(|folded| page.push(folded));
        }
        taken("KNOWN TO STAY", &self.known_to_stay, page);
        taken("SUPPRESSED", &self.suppressions, page);
        let (unit, name) = if self.has_times { (Unit::Time, "") } else { (Unit::Count, "events") };
        let mut chart = Chart::new(format!("{}: remaining live bytes", self.title), unit, Unit::Bytes);
        chart.x_name = name.into();
        chart.series.clone_from(&self.drawn);
        page.figure(chart);
    }
}

/// Adds a table of the blocks matched by suppressions, largest first. Suppressions with the same name share a row.
fn taken(title: &'static str, list: &[Suppressed<'_>], page: &mut Page) {
    let mut by_name: BTreeMap<&str, (u64, Amount)> = BTreeMap::new();
    for taken in list {
        let (stacks, live) = by_name.entry(taken.name).or_default();
        *stacks += taken.stacks;
        live.sum(taken.live);
    }
    if by_name.is_empty() {
        return;
    }
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(name, (_, live))| (std::cmp::Reverse(live.bytes), *name));
    let mut table = Table::new(["bytes", "blocks", "stacks", ""].map(Column::new));
    for (name, (stacks, live)) in rows {
        let name = Value::text(name.to_owned());
        table.row([Value::Count(live.bytes), Value::Count(live.blocks), Value::Count(stacks), name]);
    }
    page.heading(title);
    page.push(table);
}

/// Ranks groups: growing groups first, then by size.
fn ranked(groups: BTreeMap<u32, GroupLeak>, tables: SiteTables) -> Vec<(u32, GroupLeak)> {
    let mut ranked: Vec<_> = groups.into_iter().collect();
    ranked.sort_by_key(|(number, leak)| (!is_growing(leak), std::cmp::Reverse(tables.rank(leak.live)), *number));
    ranked
}

fn is_growing(leak: &GroupLeak) -> bool {
    leak.growth.is_some_and(|growth| growth.direction == Direction::Growing)
}

fn name_of(places: &Places<'_>, group: u32) -> String {
    places.keys().get(group as usize).map_or_else(|| NOT_KNOWN.to_owned(), |key| title(key, &[]))
}

#[expect(clippy::cast_possible_truncation, reason = "a rate for people; what is out of range becomes the greatest")]
fn rounded(rate: f64) -> i128 {
    rate.round() as i128
}
