//! Facts about a heap as sentences. The HTML report and every command that states a finding take its words and numbers
//! from this module.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_trace::{Event, EventSink};
//! use hatf_view::analysis::ReportBuilder;
//! use hatf_view::calls::Folding;
//! use hatf_view::verdict::Summary;
//!
//! let mut tracker = HeapTracker::new(ReportBuilder::new());
//! tracker.event(&Event::malloc(0x1000, 64))?;
//! let (heap, builder) = tracker.into_parts();
//! let summary = Summary::new(&builder, &heap, &Folding::default());
//! assert_eq!(summary.sentences[0].text, "At most 64 B were live.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ending;
mod growth;
mod programs;
mod resident;

use std::collections::HashSet;

use hatf_lab::Heap;
use hatf_lab::history::LiveBySite;
use hatf_lab::leaks::{Growth, Growths};
use hatf_lab::sites::{Amount, Counts, Measure};
use hatf_trace::stacks::Stacks;
use metatf_page::{Note, Page, Report as Paged, Value};
use serde::{Serialize, Serializer};

use crate::analysis::{Ending, Report, ReportBuilder};
use crate::calls::{Folding, GroupBy, Groups, Place, Places, title};
#[cfg(feature = "native")]
use crate::suppress::Suppressions;

pub use ending::{ending, signal_name};
pub use growth::{GrowingFunction, Run, growth};
pub use programs::programs;
pub use resident::resident;

/// A sentence with a link to a view of the HTML report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Text of the sentence.
    pub text: String,
    /// Measure to show.
    pub(crate) measure: &'static str,
    /// Point in time to show: `peak`, `end`, or empty for the whole trace.
    pub(crate) at: &'static str,
}

/// The facts of a trace that sentences describe.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The report on the trace.
    pub report: &'f Report,
    /// The functions in the stacks.
    pub places: &'f Places<'f>,
    /// Allocations of each function.
    pub groups: &'f Groups,
    /// Allocations of each stack, indexed by stack number.
    pub counts: &'f [Counts],
    /// Live bytes of each stack over time.
    pub live: &'f LiveBySite,
}

impl Facts<'_> {
    /// Returns sentences about the most notable facts. The first sentence states how the program ended, if that is
    /// known, and growth is the first finding.
    #[must_use]
    pub fn sentences(&self) -> Vec<Sentence> {
        let report = self.report;
        let mut total = Counts::default();
        self.counts.iter().for_each(|site| total.add(site));
        let mut all = Vec::new();
        let mut say = |text: String, measure, at| all.push(Sentence { text, measure, at });
        let live = (!report.sizes_only).then_some(total.leaked.bytes);
        ending(report.ending, report.duration, live).into_iter().for_each(|text| say(text, "live", "end"));
        if report.ending == Ending::Snapshot {
            say(self.left(), "leaked", "end");
            return all;
        }
        programs(&report.programs).into_iter().for_each(|text| say(text, "live", ""));
        self.last_failed().into_iter().for_each(|text| say(text, "live", "end"));
        if !report.sizes_only {
            self.growth(&total).into_iter().for_each(|text| say(text, "kept", ""));
            let when = if report.duration == 0 {
                String::new()
            } else {
                format!(", {} after the start", Value::Time(report.peak.time))
            };
            let most = self.most(Measure::Peak, total.peak);
            say(format!("At most {} were live{when}{most}.", Value::Bytes(total.peak.bytes)), "live", "peak");
            self.resident(total.peak.bytes).into_iter().for_each(|text| say(text, "live", ""));
            say(self.left(), "leaked", "end");
        }
        let Amount { blocks, bytes } = total.allocated;
        let most = self.most(Measure::Allocated, total.allocated);
        let counted = self.reallocs(bytes).unwrap_or_default();
        let blocks = in_blocks(blocks);
        say(format!("{} were allocated in {blocks}{most}.{counted}", Value::Bytes(bytes)), "allocated", "");
        let is_notable = total.short.blocks.saturating_mul(NOTABLE) >= total.allocated.blocks;
        if !report.sizes_only && total.short.blocks > 0 && is_notable {
            let share = Value::Part(total.short.blocks, total.allocated.blocks);
            let most = self.most(Measure::Short, total.short);
            say(format!("{share} of the blocks were short-lived{most}."), "short", "");
        }
        self.untouched(&total).into_iter().for_each(|text| say(text, "allocated", ""));
        all
    }

    /// Describes the last failed request for memory.
    fn last_failed(&self) -> Option<String> {
        let failed = self.report.last_failed?;
        let place = self.places.own(failed.site).next().and_then(|place| self.places.place(place));
        let place = place.map_or_else(String::new, |place| format!(" by {}", place_name(place, place.line)));
        let count = match self.report.calls.failed {
            0 | 1 => String::new(),
            count => format!("; {} requests failed", Value::Count(count)),
        };
        Some(format!("The last failed request was {}({}){place}{count}.", failed.function, Value::Bytes(failed.bytes)))
    }

    /// Estimates the growth of all live memory and of each function.
    #[must_use]
    pub fn growths(&self) -> Growths {
        let group = |site| self.places.own(site).next().map(|place| self.places.group(place));
        Growths::new(self.live, self.report.duration, group)
    }

    /// Describes the growth of live memory, if it is certain and large enough to matter.
    fn growth(&self, total: &Counts) -> Option<String> {
        let growths = self.growths();
        let function = |(number, growth): (&u32, &Growth)| {
            let name = function_name(self.places, self.groups, *number, Measure::Leaked)?;
            Some(GrowingFunction { name, growth: *growth })
        };
        let functions = growths.groups.iter().filter_map(function).collect();
        let functions = (self.places.stacks().count() > 1).then_some(functions);
        let exited = self.report.ending.is_exit();
        growth(
            "Live memory",
            growths.whole,
            functions,
            Run { has_times: growths.has_times, exited, peak: total.peak.bytes },
        )
    }

    /// Compares resident memory with the peak of live bytes, unless some blocks are missing in the trace.
    fn resident(&self, live: u64) -> Option<String> {
        let is_whole =
            self.report.estimate.is_none() && self.report.off.is_none() && self.report.programs.are_recorded();
        let pages = self.report.pages.as_ref().filter(|_| is_whole)?;
        resident(pages.private.peak, pages.samples, live)
    }

    /// Describes the blocks that are live at the end. They were never freed only if the program ended by itself. Blocks
    /// that libraries keep until the end are mentioned separately.
    fn left(&self) -> String {
        let is_complete = self.report.is_complete;
        let (mut counts, known) = (self.counts.to_vec(), known(self.places.stacks(), self.counts));
        let (mut all, mut kept) = (Amount::default(), Amount::default());
        for (site, counts) in counts.iter_mut().enumerate() {
            if known.contains(&site) {
                kept.sum(std::mem::take(&mut counts.leaked));
            } else {
                all.sum(counts.leaked);
            }
        }
        let never = match &self.report.programs.unrecorded {
            Some(program) => format!("were live when the process executed {}", program.name()),
            None if is_complete => "were never freed".to_owned(),
            None if self.report.ending == Ending::Snapshot => "were live".to_owned(),
            None => "were live at the end".to_owned(),
        };
        let text = match all.blocks {
            0 if is_complete && self.report.programs.are_recorded() => "Everything was freed".to_owned(),
            0 if is_complete => "All recorded blocks were freed".to_owned(),
            0 => "Nothing was live at the end".to_owned(),
            blocks => format!("{} in {} {never}", Value::Bytes(all.bytes), in_blocks(blocks)),
        };
        let except = match kept.blocks {
            0 => String::new(),
            _ if all.blocks == 0 => {
                format!(", except for {} that libraries keep until the end", Value::Bytes(kept.bytes))
            }
            _ => format!(", not counting {} that libraries keep until the end", Value::Bytes(kept.bytes)),
        };
        let most = self.most_of(&Groups::new(self.places, &counts), Measure::Leaked, all);
        format!("{text}{except}{most}.")
    }

    /// Returns a sentence about reallocs, if much more was requested in total than was `allocated` by growth.
    fn reallocs(&self, allocated: u64) -> Option<String> {
        let calls = &self.report.calls;
        let requested = self.report.totals.bytes;
        if self.report.estimate.is_some() || calls.realloc == 0 || requested - requested / 10 <= allocated {
            return None;
        }
        let in_place = Value::Part(calls.reallocs_in_place, calls.realloc);
        Some(format!(
            " Reallocs are counted by their growth; {in_place} of {} resized their block in place.",
            Value::Count(calls.realloc)
        ))
    }

    /// Describes the untouched pages of the function with the most, if they are a notable part of its blocks and of the
    /// program's memory. The untouched pages are at least this many, because the kernel keeps pages in memory that an
    /// earlier block touched.
    fn untouched(&self, total: &Counts) -> Option<String> {
        let (number, Amount { bytes: untouched, .. }) =
            *self.groups.ranked(Measure::Untouched, false, false).first()?;
        let number = number?;
        let examined = self.groups.groups.get(number as usize)?.own.examined?.bytes;
        let is_notable = |all: u64| untouched.saturating_mul(NOTABLE_UNTOUCHED) >= all;
        if self.report.estimate.is_some() || !is_notable(total.peak.bytes) || !is_notable(examined) {
            return None;
        }
        let name = function_name(self.places, self.groups, number, Measure::Untouched)?;
        let (untouched, examined) = (Value::Bytes(untouched), Value::Bytes(examined));
        let never = if self.report.is_complete { "were never touched" } else { "were not touched" };
        Some(format!("At least {untouched} of the {examined} that {name} requested in large blocks {never}."))
    }

    /// Names the function with the largest share of a measure, if stacks are known.
    fn most(&self, measure: Measure, all: Amount) -> String {
        self.most_of(self.groups, measure, all)
    }

    fn most_of(&self, groups: &Groups, measure: Measure, all: Amount) -> String {
        let by_blocks = measure == Measure::Short;
        let ranked = groups.ranked(measure, false, by_blocks);
        let Some((Some(number), amount)) = ranked.first() else { return String::new() };
        let Some(name) = function_name(self.places, groups, *number, measure) else { return String::new() };
        let share =
            if by_blocks { Value::Part(amount.blocks, all.blocks) } else { Value::Part(amount.bytes, all.bytes) };
        format!("; {name} allocated {share} of {}", if by_blocks { "them" } else { "that" })
    }
}

/// Reciprocal of the share of short-lived blocks from which it is mentioned.
const NOTABLE: u64 = 10;

/// Reciprocal of the share of the peak, and of the function's large blocks, from which untouched pages are mentioned.
const NOTABLE_UNTOUCHED: u64 = 20;

/// Formats a number of blocks.
fn in_blocks(blocks: u64) -> String {
    if blocks == 1 { "1 block".to_owned() } else { format!("{} blocks", Value::Count(blocks)) }
}

/// Returns the sites whose blocks libraries and interpreters are known to keep until the end.
#[cfg(feature = "native")]
fn known(stacks: &Stacks, counts: &[Counts]) -> HashSet<usize> {
    let known = Suppressions::known();
    let left = counts.iter().enumerate().filter(|(_, counts)| counts.leaked.blocks > 0);
    left.map(|(site, _)| site).filter(|site| known.find(stacks, *site as u64).is_some()).collect()
}

/// Returns no sites, because a browser has no suppressions.
#[cfg(not(feature = "native"))]
fn known(_: &Stacks, _: &[Counts]) -> HashSet<usize> {
    HashSet::new()
}

/// Names a function and its line with the largest share of a measure.
pub(crate) fn function_name(places: &Places<'_>, groups: &Groups, number: u32, measure: Measure) -> Option<String> {
    let (key, group) = (places.keys().get(number as usize)?, groups.groups.get(number as usize)?);
    let rank = |(line, counts): &(&u64, &Counts)| {
        (counts.get(measure).bytes, counts.allocated.bytes, std::cmp::Reverse(**line))
    };
    let largest = group.lines.iter().max_by_key(rank);
    Some(place_name(key, largest.map_or(0, |(line, _)| *line)))
}

/// Names a function, with the name of its file and this line if they are known. Unlike tables, sentences omit
/// directories.
fn place_name(place: &Place, line: u64) -> String {
    let file = place.file.rsplit('/').next().unwrap_or_default().to_owned();
    title(&Place { file, line, ..place.clone() }, &[])
}

/// A report, preceded by sentences about its most notable facts.
#[derive(Debug)]
pub struct Summary {
    /// The sentences.
    pub sentences: Vec<Sentence>,
    /// The report.
    pub report: Report,
}

impl Summary {
    /// Summarizes a trace that has been read to its end.
    #[must_use]
    pub fn new(builder: &ReportBuilder, heap: &Heap, folding: &Folding) -> Self {
        let (report, counts) = (builder.report(heap), builder.site_counts());
        let places = &Places::new(&heap.stacks, folding, GroupBy::Function);
        let groups = &Groups::new(places, &counts);
        let facts = Facts { report: &report, places, groups, counts: &counts, live: &builder.live_by_site() };
        Self { sentences: facts.sentences(), report }
    }
}

/// The report with the additional key `summary`, which contains the sentences.
impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Both<'s> {
            summary: Vec<&'s str>,
            #[serde(flatten)]
            report: &'s Report,
        }
        let summary = self.sentences.iter().map(|sentence| &*sentence.text).collect();
        Both { summary, report: &self.report }.serialize(serializer)
    }
}

impl Paged for Summary {
    fn page(&self) -> Page {
        let mut page = Page::default();
        self.sentences.iter().for_each(|sentence| page.note(sentence.text.clone()));
        if !self.sentences.is_empty() && !self.report.comments.is_empty() {
            page.heading("TRACE");
        }
        let report = self.report.page();
        page.blocks.extend(report.blocks);
        page.figures.extend(report.figures);
        page
    }
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
