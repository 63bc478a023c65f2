//! One table of functions for several questions.

use hatf_lab::leaks::{Growth, Growths};
use hatf_lab::sites::{Counts, Measure};
use metatf_page::{Column, Table, Value, units};

use super::groups::{Grouped, LINES, most};
use super::site_tables::NOT_KNOWN;
use crate::calls::title;
use crate::verdict::Run;

/// The measures of the table, except growth, which is between the first and the second.
const MEASURES: [Measure; 3] = [Measure::Peak, Measure::Leaked, Measure::Short];

/// Table of functions with their memory at the peak, growth, memory at the end and short-lived blocks.
///
/// # Examples
///
/// ```
/// use hatf_lab::leaks::Growths;
/// use hatf_lab::sites::{Amount, Counts};
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
/// use hatf_view::calls::{Folding, GroupBy, Groups, Places};
/// use hatf_view::report::{Grouped, Overview};
/// use metatf_page::{Form, Page, render};
///
/// let mut stacks = Stacks::default();
/// stacks.note(&EventKind::Symbol { frame: 0x10, line: 7, name: b"parse" });
/// stacks.number(&[0x10]);
/// let places = Places::new(&stacks, &Folding::default(), GroupBy::Function);
/// let amount = Amount { blocks: 2, bytes: 100 };
/// let counts = Counts { allocated: amount, peak: amount, ..Counts::default() };
/// let groups = Groups::new(&places, &[Counts::default(), counts]);
///
/// let grouped = Grouped { places: &places, groups: &groups, inclusive: false };
/// let growths = Growths::default();
/// let overview = Overview::new(grouped, &growths, true);
/// let mut page = Page::default();
/// page.push(overview.table(5));
/// let mut out = Vec::new();
/// render(&page, Form::text(None), &mut out)?;
/// assert_eq!(String::from_utf8(out)?, "  at peak  function\n    100 B  parse\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Overview<'s> {
    grouped: Grouped<'s>,
    /// Certain growth of each group, if the run took long enough.
    growths: &'s Growths,
    /// Whether the program ended by itself, so blocks that were live at the end were never freed.
    is_complete: bool,
    /// The groups, most notable first. `None` denotes allocations without a stack.
    ranked: Vec<Option<u32>>,
    total: Counts,
    /// The sum of the rates of all functions that are certain to grow.
    growth: u64,
}

impl<'s> Overview<'s> {
    /// Ranks the functions by their largest share of growth or of any other measure.
    #[must_use]
    pub fn new(grouped: Grouped<'s>, growths: &'s Growths, is_complete: bool) -> Self {
        let mut total = grouped.groups.unknown;
        grouped.groups.groups.iter().for_each(|group| total.add(&group.own));
        let mut this = Self { grouped, growths, is_complete, ranked: Vec::new(), total, growth: 0 };
        let numbers = (0..).take(grouped.groups.groups.len()).map(Some).chain([None]);
        let rates = numbers.clone().map(|group| this.growth(group).map_or(0, Growth::rounded_rate));
        this.growth = rates.fold(0, u64::saturating_add);
        let mut ranked: Vec<_> =
            numbers.map(|group| (this.share(group), group)).filter(|(share, _)| *share > 0).collect();
        ranked.sort_by_key(|(share, group)| (std::cmp::Reverse(*share), *group));
        this.ranked = ranked.into_iter().map(|(_, group)| group).collect();
        this
    }

    /// Returns whether a function is certain to grow.
    #[must_use]
    pub fn has_growth(&self) -> bool {
        self.growth > 0
    }

    /// Returns the table with up to this many functions, ordered by their memory at the peak. Columns without values are
    /// omitted.
    #[must_use]
    pub fn table(&self, rows: usize) -> Table {
        let (first, rest) = self.ranked.split_at(rows.min(self.ranked.len()));
        let mut first = first.to_vec();
        first.sort_by_key(|group| std::cmp::Reverse(MEASURES.map(|measure| self.amount(*group, measure))));
        let [peak, leaked, short] = MEASURES.map(|measure| rank(&self.total, measure) > 0);
        let grows = first.iter().any(|group| self.growth(*group).is_some());
        let end = if self.is_complete { "not freed" } else { "at end" };
        let columns = [(peak, "at peak"), (grows, "growth"), (leaked, end), (short, "short-lived"), (true, "function")];
        let kept = |cells: [Value; 5]| cells.into_iter().zip(columns).filter(|(_, (is_kept, _))| *is_kept);
        let mut table = Table::new(columns.iter().filter(|column| column.0).map(|column| Column::new(column.1)));
        let mut row = |[peak, leaked, short]: [u64; 3], growth, name| {
            let cells = [Value::Bytes(peak), growth, Value::Bytes(leaked), Value::Count(short), name];
            table.row(kept(cells).map(|(cell, _)| cell));
        };
        for group in first {
            let growth = self.growth(group).map_or(Value::Blank, |growth| Value::text(self.rate(growth)));
            row(MEASURES.map(|measure| self.amount(group, measure)), growth, self.name(group));
        }
        if !rest.is_empty() {
            let sum = |measure| rest.iter().fold(0, |sum: u64, group| sum.saturating_add(self.amount(*group, measure)));
            let others = if rest.len() == 1 { "other" } else { "others" };
            let others = format!("{} {others}", Value::Count(rest.len() as u64));
            row(MEASURES.map(sum), Value::Blank, Value::text(others));
        }
        table
    }

    fn counts(&self, group: Option<u32>) -> Counts {
        let Some(number) = group else { return self.grouped.groups.unknown };
        self.grouped.groups.groups.get(number as usize).map_or_else(Counts::default, |group| group.own)
    }

    fn amount(&self, group: Option<u32>, measure: Measure) -> u64 {
        rank(&self.counts(group), measure)
    }

    /// Returns the largest share of growth or of any other measure in millionths.
    fn share(&self, group: Option<u32>) -> u128 {
        let share = |part: u64, whole: u64| u128::from(part) * 1_000_000 / u128::from(whole.max(1));
        let growth = share(self.growth(group).map_or(0, Growth::rounded_rate), self.growth);
        let shares = MEASURES.map(|measure| share(self.amount(group, measure), rank(&self.total, measure)));
        shares.into_iter().fold(growth, u128::max)
    }

    fn growth(&self, group: Option<u32>) -> Option<&Growth> {
        let growth = self.growths.groups.get(&group?)?;
        let run = Run { has_times: self.growths.has_times, exited: self.is_complete, peak: 0 };
        (growth.rounded_rate() > 0 && run.is_certain(growth)).then_some(growth)
    }

    fn rate(&self, growth: &Growth) -> String {
        let per = if self.growths.has_times { "/s" } else { "/1,000 events" };
        format!("{}{per}", units::bytes_change(growth.rounded_rate().into()))
    }

    /// Returns the name of a function with the lines that allocated most.
    fn name(&self, group: Option<u32>) -> Value {
        let of = |number: u32| {
            Some((self.grouped.places.keys().get(number as usize)?, self.grouped.groups.groups.get(number as usize)?))
        };
        let Some((key, counted)) = group.and_then(of) else { return Value::text(NOT_KNOWN) };
        let measure = MEASURES.into_iter().find(|measure| rank(&counted.own, *measure) > 0);
        let lines = measure.map(|measure| most(counted.lines.iter(), LINES, |counts| rank(counts, measure)));
        Value::text(title(key, &lines.unwrap_or_default()))
    }
}

/// Returns the number by which functions are ranked.
fn rank(counts: &Counts, measure: Measure) -> u64 {
    let amount = counts.get(measure);
    if measure == Measure::Short { amount.blocks } else { amount.bytes }
}
