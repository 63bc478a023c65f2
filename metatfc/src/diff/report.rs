//! The result of a comparison, as a report page and as JSON.

use super::Side;
use crate::output::count;
use metatf_page::{Column, Page, Table};
use metatf_tools::compare::{Comparison, Difference, Named, RecordSummary, Shown, What, Which};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The maximum number of characters to show of a value.
const LONGEST: usize = 120;

/// A comparison of two traces.
pub(super) struct Report<'r> {
    pub(super) sides: &'r [Side; 2],
    pub(super) result: &'r Comparison,
    /// Whether to list individual differences, not only the first difference.
    pub(super) details: bool,
    /// Whether to print a message if there are no differences. False for text output, which then stays empty so that
    /// scripts can check it easily.
    pub(super) says_same: bool,
}

impl metatf_page::Report for Report<'_> {
    fn page(&self) -> Page {
        let mut page = Page::default();
        self.describe(&mut page);
        if !page.blocks.is_empty() {
            page.title = format!("{} and {}", self.name(0), self.name(1));
        }
        page
    }
}

impl Report<'_> {
    fn name(&self, side: usize) -> &str {
        self.sides.get(side).map_or("", |side| &side.name)
    }

    fn describe(&self, page: &mut Page) {
        let result = self.result;
        for only in &result.only {
            page.note(format!("only in {}: {}", self.name(only.which as usize), only.what));
        }
        if result.nothing_in_common {
            page.note("nothing was compared because the traces have no record type in common");
        }
        if result.is_same() {
            if self.says_same {
                page.note(format!("no differences in {}", count(result.compared, "record")));
            }
            return;
        }
        let (same, differ): (Vec<_>, Vec<_>) = result.records.iter().partition(|summary| summary.is_same());
        if !differ.is_empty() {
            page.push(summaries(&differ));
        }
        if !same.is_empty() {
            let records = same.iter().map(|summary| summary.compared).sum::<u64>();
            page.note(format!("no differences in {} of {}", count(records, "record"), count(same.len(), "type")));
        }
        for Difference { section, records, .. } in &result.out_of_step {
            let [Some(left), Some(right)] = records else { continue };
            let section = section.as_deref().unwrap_or("(global)");
            page.note(format!(
                "{section} is out of step from {} {} (left) and {} {} (right); later records are only counted",
                left.record, left.number, right.record, right.number
            ));
        }
        // Metadata differences are not counted.
        let is_metadata = |difference: &&Difference| matches!(difference.what, What::User(..) | What::Dtd);
        let (metadata, listed): (Vec<_>, Vec<_>) = result.differences.iter().partition(is_metadata);
        let heading = if self.details { "DIFFERENCES" } else { "FIRST DIFFERENCE" };
        for (heading, differences) in [(heading, listed), ("METADATA", metadata)] {
            if !differences.is_empty() {
                page.heading(heading);
                page.push(self.differences(&differences));
            }
        }
        if result.stopped {
            let option = if self.details { "--max" } else { "--details" };
            page.note(format!("there are more differences; to list them, use {option}"));
        }
    }

    fn differences(&self, differences: &[&Difference]) -> Table {
        let mut table = Table::new([Column::key("record"), Column::new("field"), Column::new("left != right")]);
        for Difference { section, records, what } in differences {
            let named = |n: &Named| format!("{} {}", n.record, n.number);
            let section = section.as_deref().unwrap_or("(global)");
            let (place, field, values) = match (what, records) {
                (What::Field(field, values), [Some(l), Some(r)]) => {
                    let second = if l == r { String::new() } else { format!(" (right: {})", r.number) };
                    let [a, b] = values.each_ref().map(|v| v.as_ref().map_or_else(|| "(none)".to_owned(), value));
                    (format!("{section} {}{second}", named(l)), field.clone(), format!("{a} != {b}"))
                }
                (What::Record, [Some(l), Some(r)]) => {
                    (format!("{section} {}", named(l)), String::new(), format!("{} != {}", named(l), named(r)))
                }
                (What::More(which, more), records) => {
                    let which = *which as usize;
                    let first = records.get(which).and_then(Option::as_ref).map(named).unwrap_or_default();
                    let (one, other) = (self.name(which), self.name(1 - which));
                    let more = format!("{other} ends here; {one} contains {more} more");
                    (format!("{section} {first}"), String::new(), more)
                }
                (What::User(key, values), _) => {
                    let [a, b] = values.each_ref().map(|v| v.as_deref().unwrap_or("(none)"));
                    ("user metadata".to_owned(), key.clone(), format!("{a} != {b}"))
                }
                (What::Dtd, _) => ("DTDs".to_owned(), String::new(), "their text differs".to_owned()),
                (What::Field(..) | What::Record, _) => continue,
            };
            table.row([place, field, values].map(metatf_page::Value::text));
        }
        table
    }
}

/// Builds a table of the record types, with the number of records in each trace, the number of differing records, and
/// the differing fields.
fn summaries(summaries: &[&RecordSummary]) -> Table {
    let names = ["left", "right", "compared", "differ", "fields"].map(Column::new);
    let mut table = Table::new([Column::key("record")].into_iter().chain(names));
    for RecordSummary { section, record, counts: [left, right], compared, differ, fields } in summaries {
        let section = section.as_deref().map(|section| format!("{section} ")).unwrap_or_default();
        let fields: Vec<String> = fields.iter().map(|(name, n)| format!("{name} in {n}")).collect();
        let numbers = [*left, *right, *compared, *differ].map(metatf_page::Value::Count);
        let name = metatf_page::Value::text(format!("{section}{record}"));
        table.row([name].into_iter().chain(numbers).chain([metatf_page::Value::text(fields.join(", "))]));
    }
    table
}

fn value(shown: &Shown) -> String {
    let text = &shown.text;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.clone(),
    }
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        json(self.sides, self.result).serialize(to)
    }
}

fn json(sides: &[Side; 2], result: &Comparison) -> Value {
    let side = |which: Which| if which == Which::Left { "left" } else { "right" };
    let only: Vec<Value> = result.only.iter().map(|o| json!({ "in": side(o.which), "what": o.what })).collect();
    json!({
        "left": sides[0].name,
        "right": sides[1].name,
        "same": result.is_same(),
        "compared": result.compared,
        "records": result.records.iter().map(summary_json).collect::<Vec<_>>(),
        "out_of_step": result.out_of_step.iter().map(difference_json).collect::<Vec<_>>(),
        "stopped": result.stopped,
        "only": only,
        "differences": result.differences.iter().map(difference_json).collect::<Vec<_>>(),
    })
}

fn summary_json(summary: &RecordSummary) -> Value {
    let fields: Map<String, Value> = summary.fields.iter().map(|(name, n)| (name.clone(), (*n).into())).collect();
    json!({
        "section": summary.section,
        "record": summary.record,
        "left": summary.counts[0],
        "right": summary.counts[1],
        "compared": summary.compared,
        "differ": summary.differ,
        "fields": fields,
    })
}

fn difference_json(difference: &Difference) -> Value {
    let record = |n: &Option<Named>| match n {
        Some(n) => json!({ "record": n.record, "number": n.number }),
        None => Value::Null,
    };
    let [left, right] = difference.records.each_ref().map(record);
    match &difference.what {
        What::Field(field, values) => {
            // The values are JSON.
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_ref().and_then(|v| serde_json::from_str(&v.json).ok()).unwrap_or(Value::Null));
            json!({
                "what": "field", "section": difference.section, "left": left, "right": right,
                "field": field, "values": [a, b],
            })
        }
        What::Record => json!({ "what": "record", "section": difference.section, "left": left, "right": right }),
        What::More(_, records) => json!({
            "what": "more", "section": difference.section, "left": left, "right": right, "records": records,
        }),
        What::User(key, values) => {
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_deref().and_then(|v| serde_json::from_str(v).ok()).unwrap_or(Value::Null));
            json!({ "what": "user metadata", "key": key, "values": [a, b] })
        }
        What::Dtd => json!({ "what": "dtd" }),
    }
}
