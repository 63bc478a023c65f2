//! The heap page, as written by `hatf report --html --with sites,fragmentation`.

use crate::Result;
use crate::open::File;
use hatf_lab::fragmentation::{Held, HeldReport, Moment, Names, PAGES, Peak, Settings};
use hatf_lab::{Heap, HeapTracker, Until};
use hatf_trace::event::EventSink;
use hatf_trace::forms::{self, Input, OpenOptions, TraceReader};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{Folding, GroupBy, Groups, Places, title};
use hatf_view::page::{Collected, HeapPage, Section, Side};
use hatf_view::report::{Grouped, SiteTables, Sites};
use hatf_view::verdict::Facts;
use metatf_page::Report as _;
use serde::Serialize;
use std::io::Cursor;
use std::sync::Arc;

/// Number of stack functions shown for a page.
const FRAMES: usize = 4;
/// Rows in a table of sites, and functions in its stacks, as in the command.
const TABLES: SiteTables = SiteTables { rows: 10, depth: 8, by_blocks: false };

/// Returns whether the bytes contain a heap trace.
#[must_use]
pub fn is_heap(bytes: &Arc<[u8]>) -> bool {
    reader(bytes).is_ok()
}

fn reader(bytes: &Arc<[u8]>) -> hatf_trace::Result<TraceReader> {
    let input = Input::of("the trace".to_owned(), Box::new(Cursor::new(Arc::clone(bytes))))?;
    forms::read(input, &OpenOptions::default())
}

/// Sends the events of a trace to a sink, up to the first damage, and returns a description of the damage.
fn read(bytes: &Arc<[u8]>, sink: &mut dyn EventSink) -> hatf_trace::Result<Option<String>> {
    match reader(bytes)?.give(sink) {
        Ok(_) => Ok(None),
        Err(hatf_trace::Error::Trace(error)) => Ok(Some(error.to_string())),
        Err(other) => Err(other),
    }
}

/// A heap page.
#[derive(Serialize)]
pub struct Made {
    /// The page.
    #[serde(skip)]
    pub html: Vec<u8>,
    /// Description of the damage. The page omits everything after the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Builds the page from the part of the trace before the first damage.
///
/// # Errors
/// Returns an error if the trace is not a heap trace, or is damaged at the beginning.
pub fn page(file: &File) -> Result<Made> {
    let mut made = made(file.name(), file.bytes()).map_err(|error| format!("{}: {error}", file.name()))?;
    let damage = made
        .damage
        .take()
        .map(|error| format!("{}: {error}; the page covers only the part before the corruption", file.name()));
    Ok(Made { damage: damage.or_else(|| file.converted_damage()), ..made })
}

fn made(name: &str, bytes: &Arc<[u8]>) -> hatf_trace::Result<Made> {
    let mut tracker = HeapTracker::new((ReportBuilder::new(), (Collected::new(), Held::new())));
    let damage = read(bytes, &mut tracker)?;
    let (heap, (analysis, (collected, held))) = tracker.into_parts();
    let counts = analysis.site_counts();
    let summed = collected.sum_up(&heap.objects)?;
    let places = Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
    let groups = Groups::new(&places, &counts);
    let held = held.report();
    let moments = moments(bytes, &heap, &places, &held)?;
    let report = analysis.report(&heap);
    if let Some(error) = damage.as_ref().filter(|_| report.totals.records == 0) {
        return Err(hatf_trace::Error::Trace(error.clone().into()));
    }
    let mut below = report.page();
    let grouped = Some(Grouped { places: &places, groups: &groups, inclusive: false });
    let sites = Sites::all(name.to_owned(), &heap, &counts, grouped, TABLES);
    sites.describe(&mut below);
    for (title, moment) in &moments {
        moment.describe(&title.to_uppercase(), &mut below);
    }
    below.figure(held.curves.chart("Live bytes, and the pages they hold".to_owned(), metatf_page::Unit::Bytes));
    let mut recorded = summed.recorded(name.to_owned(), &heap, &report, counts.clone());
    for (name, moment) in &moments {
        recorded.add_pages(name, moment);
    }
    let (places, groups, live) = (&places, &groups, &analysis.live_by_site());
    let page = HeapPage {
        title: name,
        sides: &[Side { recorded: &recorded, places, groups }],
        sentences: Facts { report: &report, places, groups, counts: &counts, live }.sentences(),
        has_functions: true,
        below: &[Section::report(below)],
        threads: 1,
    };
    let mut html = Vec::new();
    page.write(&mut html).map_err(hatf_trace::Error::system("the page"))?;
    Ok(Made { html, damage })
}

/// Returns the state of the heap's pages at three points in time: when the most pages are held, when the most bytes are
/// wasted, and at the end. For each point before the end, the trace is read again.
fn moments(
    bytes: &Arc<[u8]>,
    end: &Heap,
    places: &Places<'_>,
    held: &HeldReport,
) -> hatf_trace::Result<Vec<(String, Moment)>> {
    let [page, ..] = PAGES;
    let settings = Settings { page, pin: None };
    let tick = |peaks: &[Peak]| peaks.iter().find(|peak| peak.page == page).map_or(0, |peak| peak.tick);
    let mut moments: Vec<(String, Moment)> = Vec::new();
    for (name, tick) in
        [("most pages held", tick(&held.peaks)), ("most bytes wasted", tick(&held.worst)), ("end", held.tick)]
    {
        if let Some((same, _)) = moments.iter_mut().find(|(_, moment)| moment.tick == tick) {
            *same = format!("{same}, {name}");
        } else if tick == held.tick {
            moments.push((name.to_owned(), look(end, places, (tick, held.time), settings)));
        } else {
            let mut tracker = HeapTracker::new(Until::new(tick));
            let read = read(bytes, &mut tracker);
            let (then, until) = tracker.into_parts();
            // The reader reports stopping as an error.
            if !until.reached() {
                read?;
            }
            moments.push((name.to_owned(), look(&then, places, (tick, until.time()), settings)));
        }
    }
    Ok(moments)
}

fn look(heap: &Heap, places: &Places<'_>, when: (u64, u64), settings: Settings) -> Moment {
    let site = &|site| places.stacks().name(site, FRAMES).with_lines().to_string();
    let function = &|site| {
        let group = places.own(site).next().map(|place| places.group(place));
        let key = group.and_then(|group| places.keys().get(group as usize));
        key.map_or_else(|| "unknown stack".to_owned(), |key| title(key, &[]))
    };
    Moment::new(heap.objects.live().collect(), when, settings, Names { site, function })
}
