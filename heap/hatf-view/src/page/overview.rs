//! Overview of a heap in sentences that link to parts of the report.

use hatf_lab::sites::{Counts, Measure};
use metatf_page::{Note, Value};
use serde::Serialize;

use crate::analysis::Report;
use crate::calls::{Groups, Places, title};

/// A sentence with a link to a view of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Text of the sentence.
    pub text: String,
    /// Measure to show.
    pub(super) measure: &'static str,
    /// Point in time to show: `peak`, `end`, or empty for the whole trace.
    pub(super) at: &'static str,
}

/// Returns sentences about the most notable facts.
#[must_use]
pub fn sentences(report: &Report, places: &Places<'_>, groups: &Groups, counts: &[Counts]) -> Vec<Sentence> {
    let mut total = Counts::default();
    counts.iter().for_each(|site| total.add(site));
    let mut all = Vec::new();
    if !report.sizes_only {
        let when = if report.duration == 0 {
            String::new()
        } else {
            format!(", {} after the start", Value::Time(report.peak.time))
        };
        let text = format!(
            "At most {} were live{when}{}.",
            Value::Bytes(total.peak.bytes),
            most(places, groups, Measure::Peak, &total)
        );
        all.push(Sentence { text, measure: "live", at: "peak" });
        let leaked = total.leaked;
        let text = match leaked.blocks {
            0 => "Everything was freed.".to_owned(),
            blocks => format!(
                "{} in {} blocks were never freed{}.",
                Value::Bytes(leaked.bytes),
                Value::Count(blocks),
                most(places, groups, Measure::Leaked, &total)
            ),
        };
        all.push(Sentence { text, measure: "leaked", at: "end" });
    }
    let text = format!(
        "{} were allocated in {} blocks{}.",
        Value::Bytes(total.allocated.bytes),
        Value::Count(total.allocated.blocks),
        most(places, groups, Measure::Allocated, &total)
    );
    all.push(Sentence { text, measure: "allocated", at: "" });
    if !report.sizes_only && total.short.blocks > 0 {
        let text = format!(
            "{} of the blocks were short-lived{}.",
            Value::Part(total.short.blocks, total.allocated.blocks),
            most(places, groups, Measure::Short, &total)
        );
        all.push(Sentence { text, measure: "short", at: "" });
    }
    all
}

/// Returns sentences that describe the changed measures.
#[must_use]
pub fn of_changes(changes: &[(Measure, Note)]) -> Vec<Sentence> {
    let sentence = |(measure, note): &(Measure, Note)| {
        let (measure, at) = match measure {
            Measure::Peak => ("live", "peak"),
            Measure::Leaked => ("leaked", "end"),
            Measure::Temporary => ("temporary", ""),
            Measure::Short => ("short", ""),
            _ => ("allocated", ""),
        };
        Sentence { text: note.to_string(), measure, at }
    };
    changes.iter().map(sentence).collect()
}

/// Names the function with the largest share of a measure, if stacks are known.
fn most(places: &Places<'_>, groups: &Groups, measure: Measure, total: &Counts) -> String {
    let (all, by_blocks) = (total.get(measure), measure == Measure::Short);
    let ranked = groups.ranked(measure, false, by_blocks);
    let Some((Some(group), amount)) = ranked.first() else { return String::new() };
    let Some(key) = places.keys().get(*group as usize) else { return String::new() };
    let share = if by_blocks { Value::Part(amount.blocks, all.blocks) } else { Value::Part(amount.bytes, all.bytes) };
    format!("; {} allocated {share} of {}", title(key, &[]), if by_blocks { "them" } else { "that" })
}
