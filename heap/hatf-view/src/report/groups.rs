//! Tables of allocations by function, line, file or module.

use hatf_lab::sites::{Amount, Counts, Measure};
use metatf_page::{Column, Note, Page, Table, Value};
use serde::{Serialize, Serializer};

use super::site_tables::{NOT_KNOWN, SiteTables, title as name};
use crate::calls::{Around, Group, Groups, Place, Places, title};

/// Maximum number of lines in a row.
pub(super) const LINES: usize = 3;
/// Maximum number of callers in a row.
const CALLERS: usize = 3;

/// Allocations by group. JSON contains all groups.
///
/// # Examples
///
/// ```
/// use hatf_lab::sites::{Amount, Counts};
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
/// use hatf_view::calls::{Folding, GroupBy, Groups, Places};
/// use hatf_view::report::Grouped;
///
/// let mut stacks = Stacks::default();
/// stacks.note(&EventKind::Symbol { frame: 0x10, line: 7, name: b"parse" });
/// stacks.number(&[0x10]);
/// let places = Places::new(&stacks, &Folding::default(), GroupBy::Function);
/// let allocated = Counts { allocated: Amount { blocks: 2, bytes: 100 }, ..Counts::default() };
/// let groups = Groups::new(&places, &[Counts::default(), allocated]);
///
/// let json = serde_json::to_value(Grouped { places: &places, groups: &groups, inclusive: false })?;
/// assert_eq!(json[0]["name"], "parse");
/// assert_eq!(json[0]["own"]["allocated"]["bytes"], 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Grouped<'s> {
    /// The places that form the groups.
    pub places: &'s Places<'s>,
    /// Allocations of each group.
    pub groups: &'s Groups,
    /// Whether groups are ranked by their inclusive allocations.
    pub inclusive: bool,
}

impl Grouped<'_> {
    /// Returns the table of a measure.
    pub(super) fn table(&self, measure: Measure, total: Amount, tables: SiteTables) -> Table {
        let SiteTables { rows, by_blocks, .. } = tables;
        let ranked = self.groups.ranked(measure, self.inclusive, by_blocks);
        let (first, rest) = ranked.split_at(rows.min(ranked.len()));
        let share = |amount: Amount| Value::Part(tables.rank(amount), tables.rank(total));
        let names = ["bytes", "", "with callees", "", "blocks", ""];
        let mut table = Table::new(names.map(Column::new));
        let nothing = Group::default();
        for (number, _) in first {
            let group = number.and_then(|number| self.groups.groups.get(number as usize)).unwrap_or(&nothing);
            let (own, inclusive) = match number {
                Some(_) => (group.own.get(measure), group.inclusive.get(measure)),
                None => (self.groups.unknown.get(measure), self.groups.unknown.get(measure)),
            };
            table.row([
                Value::Count(own.bytes),
                share(own),
                Value::Count(inclusive.bytes),
                share(inclusive),
                Value::Count(own.blocks),
                self.cell(*number, group, measure, tables),
            ]);
        }
        if !rest.is_empty() {
            let rest: Vec<_> = rest.iter().filter(|(_, amount)| tables.rank(*amount) > 0).collect();
            let others = if rest.len() == 1 { "other" } else { "others" };
            let others = format!("{} {others}", Value::Count(rest.len() as u64));
            let own = |number: &Option<u32>| match number {
                Some(number) => {
                    self.groups.groups.get(*number as usize).map_or(Amount::default(), |group| group.own.get(measure))
                }
                None => self.groups.unknown.get(measure),
            };
            let sum = rest.iter().map(|(number, _)| own(number)).fold(Amount::default(), |sum, own| Amount {
                bytes: sum.bytes.saturating_add(own.bytes),
                blocks: sum.blocks.saturating_add(own.blocks),
            });
            table.row([
                Value::Count(sum.bytes),
                share(sum),
                Value::Blank,
                Value::Blank,
                Value::Count(sum.blocks),
                Value::text(others),
            ]);
        }
        table
    }

    /// Returns a cell with the name of a group and its callers below.
    pub(super) fn cell(&self, number: Option<u32>, group: &Group, measure: Measure, tables: SiteTables) -> Value {
        let Some(key) = number.and_then(|number| self.places.keys().get(number as usize)) else {
            return Value::text(NOT_KNOWN);
        };
        let rank = |counts: &Counts| tables.rank(counts.get(measure));
        let mut lines = vec![title(key, &most(group.lines.iter(), LINES, rank))];
        let own = rank(&group.own);
        let callers = most(group.callers.iter(), CALLERS, rank);
        for caller in &callers {
            let Some(key) = self.places.keys().get(*caller as usize) else { continue };
            let part = group.callers.get(caller).map_or(0, rank);
            let share = if part == own { String::new() } else { format!("{} ", Value::Part(part, own)) };
            lines.push(format!("<- {share}{}", title(key, &[])));
        }
        let more = group.callers.values().filter(|counts| rank(counts) > 0).count().saturating_sub(callers.len());
        if more > 0 {
            lines.push(format!("<- .. {more} more"));
        }
        Value::Lines(lines)
    }
}

/// Returns up to `count` keys with the largest amounts.
pub(super) fn most<'c, K: Copy + 'c>(
    all: impl Iterator<Item = (&'c K, &'c Counts)>,
    count: usize,
    rank: impl Fn(&Counts) -> u64,
) -> Vec<K> {
    let mut ranked: Vec<_> = all.map(|(key, counts)| (*key, rank(counts))).filter(|(_, rank)| *rank > 0).collect();
    ranked.sort_by_key(|(_, rank)| std::cmp::Reverse(*rank));
    ranked.into_iter().take(count).map(|(key, _)| key).collect()
}

/// Adds the callers and callees of a function.
pub(super) fn around(
    around: &Around,
    places: &Places<'_>,
    pattern: &str,
    measures: &[Measure],
    tables: SiteTables,
    page: &mut Page,
) {
    let keys = places.keys();
    let named = |group: &u32| keys.get(*group as usize).map(|key| title(key, &[]));
    let names: Vec<_> = around.groups.iter().filter_map(named).take(tables.rows).collect();
    let more = around.groups.len().saturating_sub(names.len());
    page.heading(Note::new("{}").with([Value::text(pattern.to_owned())]));
    page.push(Note::new("{}").with([match more {
        0 => Value::text(names.join(", ")),
        more => Value::text(format!("{}, and {more} more", names.join(", "))),
    }]));
    for measure in measures {
        let (own, inclusive) = (around.total.own.get(*measure), around.total.inclusive.get(*measure));
        if tables.rank(inclusive) == 0 {
            continue;
        }
        let values = [Value::text(name(*measure)), Value::Bytes(inclusive.bytes), Value::Bytes(own.bytes)];
        page.heading(Note::new("{}: {} with callees, {} itself").with(values));
        for (heading, by, nobody) in
            [("called by", &around.callers, "the start"), ("calls", &around.callees, "allocates itself")]
        {
            page.subheading(heading);
            let mut table = Table::new(["bytes", "", "blocks", ""].map(Column::new));
            let mut ranked: Vec<_> = by.iter().filter(|(_, counts)| tables.rank(counts.get(*measure)) > 0).collect();
            ranked.sort_by_key(|(group, counts)| (std::cmp::Reverse(tables.rank(counts.get(*measure))), **group));
            for (group, counts) in ranked.iter().take(tables.rows) {
                let amount = counts.get(*measure);
                let name = group.as_ref().and_then(named).unwrap_or_else(|| nobody.to_owned());
                let part = Value::Part(tables.rank(amount), tables.rank(inclusive));
                table.row([Value::Count(amount.bytes), part, Value::Count(amount.blocks), Value::text(name)]);
            }
            if let Some(more @ 1..) = ranked.len().checked_sub(tables.rows) {
                table.rest(Note::new("and {} more").with([Value::Count(more as u64)]));
            }
            page.push(table);
        }
    }
}

/// A group in JSON.
#[derive(Serialize)]
struct GroupReport<'g> {
    #[serde(flatten)]
    key: Key<'g>,
    own: Counts,
    inclusive: Counts,
    lines: Vec<LineReport>,
    callers: Vec<CallerReport<'g>>,
}

/// The identification of a group.
#[derive(Debug, Serialize)]
pub(super) struct Key<'g> {
    name: &'g str,
    file: &'g str,
    #[serde(skip_serializing_if = "is_nothing")]
    line: u64,
    module: &'g str,
}

impl<'g> Key<'g> {
    pub(super) fn of(place: &'g Place) -> Self {
        Self { name: &place.name, file: &place.file, line: place.line, module: &place.module }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_nothing(line: &u64) -> bool {
    *line == 0
}

#[derive(Serialize)]
struct LineReport {
    line: u64,
    #[serde(flatten)]
    own: Counts,
}

#[derive(Serialize)]
struct CallerReport<'g> {
    #[serde(flatten)]
    key: Key<'g>,
    #[serde(flatten)]
    own: Counts,
}

impl Serialize for Grouped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let key = |number: u32| self.places.keys().get(number as usize).map(Key::of);
        let caller = |(number, own): (&u32, &Counts)| Some(CallerReport { key: key(*number)?, own: *own });
        let group = |(number, group): (u32, &Group)| {
            Some(GroupReport {
                key: key(number)?,
                own: group.own,
                inclusive: group.inclusive,
                lines: group.lines.iter().map(|(line, own)| LineReport { line: *line, own: *own }).collect(),
                callers: group.callers.iter().filter_map(caller).collect(),
            })
        };
        let all = (0..).zip(&self.groups.groups).filter(|(_, group)| group.inclusive.allocated.blocks > 0);
        let mut all: Vec<_> = all.filter_map(group).collect();
        all.sort_by_key(|group| std::cmp::Reverse((group.own.allocated.bytes, group.inclusive.allocated.bytes)));
        serializer.collect_seq(all)
    }
}
