//! `hatf report`: reports on a trace, optionally with other analyses (`--with`).

use std::path::Path;

use clap::builder::TypedValueParser;
use hatf_host::record::Spooled;
use hatf_lab::HeapTracker;
use hatf_lab::sites::Measure;
use hatf_trace::{Error, Result};
use hatf_view::analyses::{ANALYSES, Analysis, Answer, Together, View};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::{Folding, GroupBy, Groups, Places};
use hatf_view::page::{Collected, HeapPage, Section, Side};
use hatf_view::report::Grouped;
use hatf_view::verdict::{Facts, Summary};
use metatf_cli::{OutputFile, open_trace};
use metatf_page::{Form, Page, Report as Paged, render};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::lab::{Source, Tables};
use super::output::show;
use super::symbols::{Symbols, allocated};
use super::{Report as Options, print_message, sites};

/// Returns a parser for the name of an analysis that runs in the same pass as the report.
pub(crate) fn with() -> impl TypedValueParser<Value = &'static Analysis> {
    let names = ANALYSES.iter().map(|analysis| (analysis.name, analysis.adds));
    super::row(names).try_map(|name| Analysis::named(&name).ok_or("unknown analysis"))
}

/// The report, and the results of other analyses by name.
struct Reports<'h> {
    summary: Summary,
    answers: Vec<(&'static str, Box<dyn Answer + 'h>)>,
}

impl Serialize for Reports<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.answers.len()))?;
        map.serialize_entry("report", &self.summary)?;
        self.answers.iter().try_for_each(|(name, answer)| map.serialize_entry(name, answer))?;
        map.end()
    }
}

impl Paged for Reports<'_> {
    fn page(&self) -> Page {
        let mut page = self.summary.page();
        self.answers.iter().for_each(|(_, answer)| answer.describe(&mut page));
        page
    }
}

impl Reports<'_> {
    /// Returns the sections at the bottom of the HTML report.
    fn below(&self) -> Vec<Section> {
        let answers = self.answers.iter().map(|(name, answer)| {
            let mut page = Page::default();
            answer.describe(&mut page);
            answer.describe_in_html(&mut page);
            Section { name, title: Analysis::named(name).map_or(*name, |analysis| analysis.question), page }
        });
        answers.chain([Section::report(self.summary.report.page())]).collect()
    }
}

pub(crate) fn run(options: &Options) -> Result<u8> {
    if options.with.is_empty() && options.html.is_none() {
        let summary = analyse(&options.source, &options.symbols, &options.folded.folding())?;
        draw(options, &summary)?;
        show(&summary, &options.output)?;
        return Ok(0);
    }
    let source = &options.source;
    // Analyses are printed in the order of their table.
    let mut asked = ANALYSES.iter().filter(|analysis| options.with.iter().any(|with| with.name == analysis.name));
    let (analyses, threads): (Vec<_>, _) = (asked.by_ref().collect(), source.threads());
    let start = |analysis: &&Analysis| analysis.start(&analysis.options::<&str>([])?, threads);
    let running = Together(analyses.iter().map(start).collect::<Result<_>>()?);
    let collected = options.html.is_some().then(Collected::new);
    if collected.is_some() && !analyses.is_empty() {
        source.reread()?;
    }
    let mut tracker = HeapTracker::new((ReportBuilder::new(), (collected, running)));
    if analyses.iter().all(|analysis| analysis.traits.sizes_only) {
        tracker = tracker.with_sizes_only();
    }
    let read = source.read(&mut tracker);
    warn_of_spool(&source.trace);
    let (mut heap, (report, (collected, Together(mut running)))) = tracker.into_parts();
    if let Err(error) = read {
        return Err(running.into_iter().fold(error, |error, running| running.cause(error)));
    }
    let name = source.trace.display().to_string();
    let (counts, tables) = (report.site_counts(), Tables::default().by(false));
    let view = View { tables, counts: &counts, ..View::new(&name, &heap) };
    let shown = running.iter().zip(&analyses).filter(|(_, analysis)| analysis.traits.stacks);
    // An HTML page shows all stacks.
    let shown = if collected.is_some() { None } else { shown.map(|(running, _)| running.shown(&view)).collect() };
    let shown: Option<Vec<Vec<u64>>> = shown;
    let shown = shown.map(|sites| (sites.concat(), tables.depth));
    let (summed, named) = source.both(
        || collected.map(|collected| collected.sum_up(&heap.objects)).transpose(),
        || options.symbols.name(&source.trace, &mut heap.stacks, shown, allocated(&counts)),
    )?;
    let (summed, ()) = (summed?, named?);
    let live = &report.live_by_site();
    let ((report, mut recorded), (groups, places)) = source.both(
        || {
            let report = report.report(&heap);
            let recorded = summed.map(|summed| summed.recorded(name.clone(), &heap, &report, counts.clone()));
            (report, recorded)
        },
        || {
            let places = Places::new(&heap.stacks, &options.folded.folding(), GroupBy::Function);
            (Groups::new(&places, &counts), places)
        },
    )?;
    running.iter_mut().try_for_each(|running| running.end(&heap))?;
    let (places, groups) = (&places, &groups);
    let functions = Some(Grouped { places, groups, inclusive: false });
    let view = View { tables, counts: &counts, functions, ..View::new(&name, &heap) };
    let sentences = Facts { report: &report, places, groups, counts: &counts, live }.sentences();
    let answers = running.iter().zip(&analyses).map(|(running, analysis)| Ok((analysis.name, running.answer(&view)?)));
    let reports = Reports { summary: Summary { sentences, report }, answers: answers.collect::<Result<_>>()? };
    draw(options, &reports)?;
    if let (Some(path), Some(recorded)) = (&options.html, &mut recorded) {
        for running in &running {
            for (name, moment) in running.moments(&view, &mut |sink| source.read(sink))? {
                recorded.add_pages(&name, &moment);
            }
        }
        let (sides, below, threads) = (&[Side { recorded, places, groups }], &reports.below(), source.threads());
        let sentences = reports.summary.sentences.clone();
        write_page(path, &HeapPage { title: &name, sides, sentences, has_functions: true, below, threads })?;
    }
    if analyses.is_empty() {
        show(&reports.summary, &options.output)?;
    } else {
        show(&reports, &options.output)?;
    }
    Ok(0)
}

/// Maximum number of rows per measure in the report's own table of stacks.
const ROWS: usize = 5;
/// Maximum number of functions per stack in this table.
const DEPTH: usize = 3;

/// Analyses a trace.
pub(crate) fn analyse(source: &Source, symbols: &Symbols, folding: &Folding) -> Result<Summary> {
    let mut tracker = HeapTracker::new(ReportBuilder::new()).with_sizes_only();
    let read = source.read(&mut tracker);
    warn_of_spool(&source.trace);
    read?;
    let (mut heap, analysis) = tracker.into_parts();
    if heap.stacks.have_places() {
        let counts = analysis.site_counts();
        let shown = sites::shown(&counts, &Measure::ALL, false, Tables { rows: ROWS, depth: DEPTH });
        symbols.name(&source.trace, &mut heap.stacks, shown, allocated(&counts))?;
    }
    Ok(Summary::new(&analysis, &heap, folding))
}

/// Prints the location of the events not yet in the trace if recording is still in progress or was interrupted. If the
/// trace is finished, a leftover spool is ignored.
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
