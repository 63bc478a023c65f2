//! `hatf report`, alone and with other analyses (`--with`).

use std::path::Path;

use hatf_host::record::Spooled;
use hatf_lab::HeapTracker;
use hatf_lab::churn::{Churns, Settings};
use hatf_lab::fragmentation::Held;
use hatf_lab::leaks::Leaks as Collecting;
use hatf_lab::profile::{Merged, Profiler, ProfilerSettings, Sizes};
use hatf_lab::sites::Measure;
use hatf_lab::whatif::{WhatIf, bars, describe};
use hatf_trace::{Error, Result};
use hatf_view::analysis::{Report, ReportBuilder};
use hatf_view::calls::{GroupBy, Groups, Places};
use hatf_view::page::{Collected, HeapPage, Side, sentences};
use hatf_view::report::{Fragmentation, Grouped, Leaks, LeaksOf, ProfileReport, Sites, Startup, default_moments};
use hatf_view::suppress::Suppressions;
use hatf_view::whatif::Running;
use metatf_cli::{OutputFile, open_trace};
use metatf_page::{Form, Page, Report as Paged, render};
use serde::Serialize;

use super::lab::{Source, Tables};
use super::output::show;
use super::symbols::Symbols;
use super::{Report as Options, churn, print_message, profile, sites};

/// An analysis to run in the same pass as the report.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum With {
    /// Allocations by call stack: hatf sites
    Sites,
    /// Short-lived blocks: hatf churn
    Churn,
    /// Blocks live at the end, their age, and whether they grow: hatf leaks
    Leaks,
    /// Pages in use over time, and the blocks that hold them at the end: hatf fragmentation --at end
    Fragmentation,
    /// Calling contexts of the heap profile: hatf profile and hatf profile show
    Profile,
    /// Memory needed by other allocators and settings; takes several times as long: hatf whatif
    Whatif,
}

/// Observers in addition to the report's own. Sites need no observer, because the report counts them.
type Beside = ((Option<Held>, Option<Running>), ((Option<Churns>, Option<Collecting>), Option<Profiler<Merged>>));

/// Results, by the name of the analysis.
#[derive(Serialize)]
struct Reports<'h> {
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<Sites<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    churn: Option<churn::Report<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaks: Option<Leaks<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fragmentation: Option<Fragmentation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileReport<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whatif: Option<WhatIf>,
}

impl Paged for Reports<'_> {
    fn page(&self) -> Page {
        let mut page = self.report.page();
        self.sites.iter().for_each(|sites| sites.describe(&mut page));
        self.churn.iter().for_each(|churn| churn.describe(&mut page));
        self.leaks.iter().for_each(|leaks| {
            page.heading("LEAKS");
            leaks.describe(&mut page);
        });
        self.fragmentation.iter().for_each(|fragmentation| fragmentation.describe(&mut page));
        self.profile.iter().for_each(|profile| profile.describe(&mut page));
        self.whatif.iter().for_each(|whatif| describe(whatif, &mut page));
        page
    }
}

pub(crate) fn run(options: &Options) -> Result<u8> {
    if options.with.is_empty() && options.html.is_none() {
        let report = analyse(&options.source, &options.symbols)?;
        draw(options, &report)?;
        show(&report, &options.output)?;
        return Ok(0);
    }
    let asked = |with| options.with.contains(&with);
    let beside: Beside = (
        (
            asked(With::Fragmentation).then(Held::new),
            asked(With::Whatif).then(|| Running::new(options.source.threads())).transpose()?,
        ),
        (
            (asked(With::Churn).then(|| Churns::new(Settings::default())), asked(With::Leaks).then(Collecting::new)),
            asked(With::Profile).then(profiler).transpose()?,
        ),
    );
    let collected = options.html.is_some().then(Collected::new);
    if collected.is_some() && asked(With::Fragmentation) {
        options.source.reread()?;
    }
    let mut tracker = HeapTracker::new((ReportBuilder::new(), (collected, beside)));
    if options.with.iter().all(|with| *with == With::Sites) {
        tracker = tracker.with_sizes_only();
    }
    let read = options.source.read(&mut tracker);
    warn_of_spool(&options.source.trace);
    read?;
    let (mut heap, (report, (collected, ((held, running), ((churns, collecting), profiler))))) = tracker.into_parts();
    let name = options.source.trace.display().to_string();
    let counts = report.site_counts();
    let shown = if options.with == [With::Sites] {
        sites::shown(&counts, &Measure::ALL, false, Tables::default())
    } else {
        None
    };
    let by_function = asked(With::Sites) || collecting.is_some() || collected.is_some();
    let (summed, named) = options.source.both(
        || collected.map(|collected| collected.sum_up(&heap.objects)).transpose(),
        || options.symbols.name(&options.source.trace, &mut heap.stacks, shown),
    )?;
    let (summed, ()) = (summed?, named?);
    let ((report, mut recorded), functions) = options.source.both(
        || {
            let report = report.report(&heap);
            let recorded = summed.map(|summed| summed.recorded(name.clone(), &heap, &report, counts.clone()));
            (report, recorded)
        },
        || {
            by_function
                .then(|| Places::new(&heap.stacks, &options.folded.folding(), GroupBy::Function))
                .map(|places| (Groups::new(&places, &counts), places))
        },
    )?;
    let profile = profiler.map(|profiler| profiler.finish(heap.objects.live())).transpose()?;
    let profile = profile.map(|profiled| profile::in_memory(profiled, &heap));
    let (leaked, known, none) =
        (collecting.map(|leaks| leaks.report(&heap)), Suppressions::known(), Suppressions::default());
    let grouped = functions.as_ref().map(|(groups, places)| Grouped { places, groups, inclusive: false });
    let held_pages = held.as_ref().zip(functions.as_ref()).filter(|_| options.html.is_some());
    let moments = held_pages
        .map(|(held, (_, places))| default_moments(&mut |sink| options.source.read(sink), &heap, places, held));
    let moments = moments.transpose()?;
    let reports = Reports {
        sites: asked(With::Sites).then(|| sites::report(name.clone(), &heap, &counts, grouped, Tables::default())),
        leaks: leaked.as_ref().zip(functions.as_ref()).map(|(leaked, (_, places))| {
            let (startup, is_end) = (Startup::guess(leaked), true);
            let (heap, suppressions, known) = (&heap, &none, &known);
            let of = LeaksOf { name: &name, heap, leaked, is_end, places, startup, suppressions, known };
            Leaks::new(of, Tables::default().by(false))
        }),
        churn: churns.map(|churns| churn::Report::new(name.clone(), &heap, &churns, Tables::default())),
        fragmentation: held.map(|held| Fragmentation::at_end(name.clone(), &heap, &held)),
        whatif: running.map(|running| running.finish(heap.totals(), None, Ok(()))).transpose()?,
        profile: profile.as_ref().map(|profile| profile::whole(name.clone(), profile)),
        report,
    };
    draw(options, &reports)?;
    for (name, moment) in moments.unwrap_or_default() {
        recorded = recorded.map(|recorded| recorded.with_pages(&name, &moment));
    }
    if let (Some(path), Some(recorded), Some((groups, places))) = (&options.html, &recorded, &functions) {
        let sentences = sentences(&reports.report, places, groups, &counts);
        let (sides, mut below) = (&[Side { recorded, places, groups }], reports.page());
        reports.whatif.iter().for_each(|whatif| bars(whatif, &mut below));
        let (below, threads) = (&below, options.source.threads());
        write_page(path, &HeapPage { title: &name, sides, sentences, has_functions: true, below, threads })?;
    }
    if options.with.is_empty() {
        show(&reports.report, &options.output)?;
        return Ok(0);
    }
    show(&reports, &options.output)?;
    Ok(0)
}

/// Maximum number of rows per measure in the report's own table of stacks.
const ROWS: usize = 5;
/// Maximum number of functions per stack in this table.
const DEPTH: usize = 3;

/// Returns a profiler that merges heap info blocks as they arrive.
fn profiler() -> hatf_lab::Result<Profiler<Merged>> {
    Profiler::new(ProfilerSettings::default(), Sizes::default(), Merged::new())
}

/// Analyses a trace.
pub(crate) fn analyse(source: &Source, symbols: &Symbols) -> Result<Report> {
    let mut tracker = HeapTracker::new(ReportBuilder::new()).with_sizes_only();
    let read = source.read(&mut tracker);
    warn_of_spool(&source.trace);
    read?;
    let (mut heap, analysis) = tracker.into_parts();
    if heap.stacks.have_places() {
        let shown = sites::shown(&analysis.site_counts(), &Measure::ALL, false, Tables { rows: ROWS, depth: DEPTH });
        symbols.name(&source.trace, &mut heap.stacks, shown)?;
    }
    Ok(analysis.report(&heap))
}

/// Prints the location of the remaining events, if the recording of a trace has not ended or was interrupted. A
/// finished trace may still have its spool, which is ignored.
fn warn_of_spool(path: &Path) {
    if path == Path::new("-") || !path.is_file() {
        return;
    }
    let is_finished = open_trace(path, false).is_ok_and(|trace| trace.header().nrecords > 0);
    if is_finished {
        return;
    }
    if let Some(spool) = Spooled::of_trace(path) {
        let (path, spool) = (path.display(), spool.display());
        print_message(&format!(
            "{path}: unfinished trace; the remaining events are in {spool}. To complete the trace, run `hatf recover {path}`"
        ));
    }
}

/// Draws the chart of a report to the file of `--svg`.
fn draw(options: &Options, report: &impl Paged) -> Result<()> {
    let Some(path) = &options.svg else { return Ok(()) };
    let drawn = || {
        let (file, mut out) = OutputFile::create(path)?;
        render(&report.page(), Form::Svg, &mut out)?;
        file.keep(out)
    };
    drawn().map_err(Error::system(path.display().to_string()))
}

/// Writes the HTML report of `--html`.
pub(super) fn write_page(path: &Path, page: &HeapPage<'_>) -> Result<()> {
    let written = || {
        let (file, mut out) = OutputFile::create(path)?;
        page.write(&mut out)?;
        file.keep(out)
    };
    written().map_err(Error::system(path.display().to_string()))
}
