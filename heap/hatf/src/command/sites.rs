//! `hatf sites`: shows allocations by call stack.

use std::path::Path;

use hatf_lab::blocks::{Growths, Untouched};
use hatf_lab::history::{Found, Kept, Point};
use hatf_lab::sites::{Amount, Counts, Measure, Sites as Counting, folded, ranked};
use hatf_lab::{Heap, HeapTracker};
use hatf_trace::short_name::short_name;
use hatf_trace::{Error, Result};
use hatf_view::calls::{Folding, GroupBy, Groups, Place, Places};
use hatf_view::report::{Between, Grouped, SIZES_ONLY, Sites as SitesReport};
use metatf_cli::{Format, FormatOr, OutputFile, OutputOrArgs};
use metatf_page::units::count as count_of;
use metatf_page::{Flame as Graph, Form as Printed, Page, Unit, render};

use super::about;
use super::lab::{Source, Tables};
use super::points::{range, settled};
use super::print_message;
use super::symbols::{ShownStacks, Symbols, allocated};
use crate::command::output::show;

/// Show where a program allocates memory, in tables by function, line, file, module or call stack, or as a flame graph.
///
/// The trace must contain stacks (hatf record --stacks). Names of functions that are missing from the trace are looked
/// up in the programs and shared objects. A `realloc` ends a block, which counts for the stack that allocated it, and
/// starts a new block, which counts for the stack of the `realloc`.
///
/// --format svg draws a flame graph. Each box is a function, as wide as the bytes allocated by it and the functions it
/// called; main is at the bottom.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record --stacks -o perl.mtf perl -e '$x{$_} = 1 for 1..10000'
  hatf sites perl.mtf
  hatf sites perl.mtf --by leaked --rows 20
  hatf sites perl.mtf --at 30s
  hatf sites perl.mtf --live-between mark:ready..end
  hatf sites perl.mtf --by copied
  hatf sites perl.mtf --by untouched
  hatf sites perl.mtf --of Perl_pp_split
  hatf sites perl.mtf --group stack --depth 30
  hatf sites perl.mtf --format json | jq '.groups[0]'
  hatf sites perl.mtf --format svg -o peak.svg
  hatf sites perl.mtf --format svg --live-between 10s..60s -o growth.svg
  hatf sites perl.mtf --format folded --by temporary --blocks | less")]
pub(crate) struct Sites {
    #[command(flatten)]
    source: Source,

    /// Tables to print [default: the first five, or none with --at or --live-between]: blocks live at the peak, live at
    /// the end (leaked), allocated in total, freed by the next event (temporary), freed within 1 ms and 64 KiB of
    /// allocations (short), bytes copied by realloc, bytes beyond the requested size (slack; requires record --usable),
    /// and bytes of pages that were never touched (untouched; only in blocks of 64 KiB and more).
    #[arg(long, value_enum, value_name = "MEASURE", value_delimiter = ',')]
    by: Option<Vec<By>>,

    #[command(flatten)]
    chosen: Chosen,

    /// Rank by number of blocks instead of bytes.
    #[arg(long)]
    blocks: bool,

    /// Rank by the allocations of a function and everything it called.
    #[arg(long)]
    inclusive: bool,

    /// Unit of a table row: a function, a line, a file, a module, or a complete stack.
    #[arg(long, value_enum, value_name = "GROUP", default_value = "function")]
    group: Group,

    /// Show the callers and callees of functions whose name, file or module contains this text.
    #[arg(long, value_name = "TEXT", conflicts_with = "inclusive")]
    of: Option<String>,

    #[command(flatten)]
    folded: Folded,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    output: OutputOrArgs<Other>,
}

/// An output format other than a report.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Other {
    /// A line per stack, in the format that other flame graph tools read
    Folded,
}

/// The unit of code that each table row represents.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Group {
    Function,
    Line,
    File,
    Module,
    Stack,
}

impl Group {
    /// Returns the grouping, or `None` for complete stacks.
    fn by(self) -> Option<GroupBy> {
        match self {
            Self::Function => Some(GroupBy::Function),
            Self::Line => Some(GroupBy::Line),
            Self::File => Some(GroupBy::File),
            Self::Module => Some(GroupBy::Module),
            Self::Stack => None,
        }
    }
}

/// Options for folding frames into their callers.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Folded {
    /// Fold frames whose function, file or module name contains this text into their callers, in addition to allocation
    /// wrappers (allocators, the C and C++ libraries, `std`, `alloc`, `core` and interpreters). Can be repeated.
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,

    /// Fold all frames whose function, file or module name does not contain this text, leaving only your code. Can be
    /// repeated.
    #[arg(long, value_name = "TEXT")]
    project: Vec<String>,

    /// Show all frames without folding any.
    #[arg(long, conflicts_with_all = ["skip", "project"])]
    whole: bool,
}

impl Folded {
    pub(crate) fn folding(&self) -> Folding {
        let Self { skip, project, whole } = self.clone();
        Folding { skip, project, whole }
    }

    /// Returns an error if a pattern of `--project` matches no function of any trace, because the result would not
    /// contain any of the user's code.
    pub(crate) fn check(&self, traces: &[&Places<'_>], path: &Path) -> Result<()> {
        let places: Vec<Place> = traces.iter().flat_map(|places| places.all_places()).cloned().collect();
        // Without any stacks, a message already states the reason.
        let mut patterns = self.project.iter().filter(|_| !places.is_empty());
        let check = |pattern: &String| check_pattern("--project", pattern, &places);
        patterns.try_for_each(check).map_err(|error| about(path, error))
    }
}

/// A measure on the command line.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    Peak,
    Leaked,
    Allocated,
    Temporary,
    Short,
    Copied,
    Slack,
    Untouched,
}

impl By {
    pub(crate) fn measure(self) -> Measure {
        match self {
            Self::Peak => Measure::Peak,
            Self::Leaked => Measure::Leaked,
            Self::Allocated => Measure::Allocated,
            Self::Temporary => Measure::Temporary,
            Self::Short => Measure::Short,
            Self::Copied => Measure::Copied,
            Self::Slack => Measure::Slack,
            Self::Untouched => Measure::Untouched,
        }
    }
}

/// Returns a description of the bytes or blocks that a measure counts.
pub(crate) fn text(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "live at the peak",
        Measure::Leaked => "live at the end",
        Measure::Allocated => "allocated",
        Measure::Temporary => "freed by the next event",
        Measure::Short => "freed within 1 ms and 64 KiB of allocations",
        Measure::Copied => "copied by realloc",
        Measure::Slack => "beyond the requested size",
        Measure::Untouched => "never touched, in whole pages of blocks of 64 KiB and more",
        Measure::At => "live at the chosen time",
        Measure::Between => "allocated in the range and live at its end",
    }
}

/// A point in time or a range whose blocks are counted.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    /// Count blocks live at a point in time: a time such as 30s, mark:NAME for the first mark or phase with that name,
    /// the number of an event, peak (most bytes live), worst (most bytes wasted on held pages), sparsest (most held
    /// pages per live byte), or end.
    #[arg(long, value_name = "TIME")]
    at: Option<Point>,

    /// Count blocks allocated between two points in time and live at the second: 10s..60s, mark:ready..end.
    #[arg(long, value_name = "A..B", value_parser = range)]
    live_between: Option<(Point, Point)>,
}

impl Chosen {
    fn measures(&self) -> impl Iterator<Item = Measure> {
        let (at, between) = (self.at.as_ref(), self.live_between.as_ref());
        at.map(|_| Measure::At).into_iter().chain(between.map(|_| Measure::Between))
    }

    /// Returns the observers that count the blocks live at chosen points.
    fn observers(&self, source: &Source) -> Result<(Option<Kept>, Option<Kept>)> {
        let (from, to) = self.live_between.clone().unwrap_or((Point::Start, Point::End));
        let [at, from, to] = settled(source, [self.at.clone().unwrap_or(Point::End), from, to])?;
        let at = self.at.as_ref().map(|_| Kept::new(Point::Start, at));
        Ok((at, self.live_between.as_ref().map(|_| Kept::new(from, to))))
    }
}

/// The heap and the counts of a trace.
struct Counted {
    heap: Heap,
    counts: Vec<Counts>,
    at: Option<Found>,
    between: Option<Found>,
}

/// Reads a trace.
fn count(source: &Source, chosen: &Chosen, by: &[By]) -> Result<Counted> {
    let kept = chosen.observers(source)?;
    let has = |one: By| by.contains(&one);
    let growths = (has(By::Copied) || has(By::Slack)).then(Growths::new);
    let untouched = has(By::Untouched).then(Untouched::new);
    let mut tracker = HeapTracker::new((Counting::new(), (kept, (growths, untouched)))).with_sizes_only();
    source.read(&mut tracker)?;
    let (heap, (counting, ((at, between), (growths, untouched)))) = tracker.into_parts();
    if has(By::Slack) && growths.as_ref().is_some_and(|growths| !growths.has_usable()) {
        let trace = source.trace.display();
        return Err(Error::Usage(format!(
            "{trace}: the trace does not contain the actual sizes of blocks; record it with hatf record --usable"
        )));
    }
    if untouched.as_ref().is_some_and(|untouched| !untouched.is_known()) {
        let trace = source.trace.display();
        return Err(Error::Usage(format!(
            "{trace}: the trace does not contain the untouched pages of any block; hatf record --stacks records them for \
             blocks of 64 KiB and more"
        )));
    }
    if heap.has_sizes_only() && (at.is_some() || between.is_some()) {
        let trace = source.trace.display();
        return Err(Error::Usage(format!("{trace}: recorded with --sizes-only: {SIZES_ONLY}")));
    }
    let found = |kept: Option<Kept>| kept.map(|kept| kept.report()).transpose();
    let about = |error: hatf_lab::Error| Error::Usage(format!("{}: {error}", source.trace.display()));
    let (at, between) = (found(at).map_err(about)?, found(between).map_err(about)?);
    let mut counts = counting.report();
    untouched.iter().for_each(|untouched| untouched.fill(&mut counts));
    let of = |found: &Option<Found>, site: usize| -> Option<Amount> {
        found.as_ref().map(|found| found.sites.get(site).copied().unwrap_or_default())
    };
    for (site, counts) in counts.iter_mut().enumerate() {
        (counts.at, counts.between) = (of(&at, site), of(&between, site));
        let growth = growths.as_ref().map(|growths| growths.sites().get(site).copied().unwrap_or_default());
        counts.copied = growth.filter(|_| has(By::Copied)).map(|growth| growth.copied);
        counts.slack = growth.filter(|_| has(By::Slack)).map(|growth| growth.slack);
    }
    Ok(Counted { heap, counts, at, between })
}

/// Returns the stacks that the tables of these measures will show.
pub(super) fn shown(counts: &[Counts], measures: &[Measure], by_blocks: bool, tables: Tables) -> ShownStacks {
    let first = |measure: &Measure| ranked(counts, *measure, by_blocks).into_iter().take(tables.rows);
    Some((measures.iter().flat_map(first).map(|(site, _)| site as u64).collect(), tables.depth))
}

pub(crate) fn run(options: &Sites) -> Result<u8> {
    let format = match options.output.format {
        FormatOr::Report(Format::Svg) => return flame(options, false),
        FormatOr::Report(format) => format,
        FormatOr::Other(Other::Folded) => return flame(options, true),
    };
    let Counted { mut heap, counts, at, between } =
        count(&options.source, &options.chosen, options.by.as_deref().unwrap_or_default())?;
    let chosen: Vec<_> = options.chosen.measures().collect();
    let by = match &options.by {
        Some(by) => by.iter().map(|by| by.measure()).collect(),
        None if chosen.is_empty() => Measure::ALL.to_vec(),
        None => Vec::new(),
    };
    let measures: Vec<_> = chosen.into_iter().chain(by).filter(|measure| measure.is_known(&heap)).collect();
    let shown = shown(&counts, &measures, options.blocks, options.tables);
    options.symbols.name(&options.source.trace, &mut heap.stacks, shown, allocated(&counts))?;
    let title = options.source.trace.display().to_string();
    let places = options.group.by().map(|by| Places::new(&heap.stacks, &options.folded.folding(), by));
    let groups = places.as_ref().map(|places| Groups::new(places, &counts));
    let grouped = places.as_ref().zip(groups.as_ref());
    let grouped = grouped.map(|(places, groups)| Grouped { places, groups, inclusive: options.inclusive });
    let (around, tables) = (options.of.as_deref(), options.tables.by(options.blocks));
    if let Some((pattern, places)) = around.zip(places.as_ref()) {
        check_pattern("--of", pattern, places.keys()).map_err(|error| about(&options.source.trace, error))?;
    }
    places.iter().try_for_each(|places| options.folded.check(&[places], &options.source.trace))?;
    let all = SitesReport::all(title, &heap, &counts, grouped, tables);
    let at = at.map(|found| found.to);
    let between = between.map(|found| Between { from: found.from, to: found.to });
    show(&SitesReport { measures, tables, around, at, between, ..all }, &options.output.with(format))?;
    Ok(0)
}

/// Returns an error for a pattern that matches no function, file or module, suggesting up to three functions with
/// similar names.
fn check_pattern(option: &str, pattern: &str, places: &[Place]) -> Result<()> {
    if places.iter().any(|place| place.is(pattern)) {
        return Ok(());
    }
    let likeness = |place: &Place| {
        let short = short_name(&place.name);
        let last = short.rsplit("::").next().unwrap_or_default();
        strsim::normalized_damerau_levenshtein(pattern, &short)
            .max(strsim::normalized_damerau_levenshtein(pattern, last))
    };
    let mut similar: Vec<_> =
        places.iter().map(|place| (likeness(place), place)).filter(|(like, _)| *like >= 0.6).collect();
    similar.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let names: Vec<_> = similar.iter().take(3).map(|(_, place)| format!("`{}`", place.name)).collect();
    let help = if names.is_empty() { String::new() } else { format!("; similar: {}", names.join(", ")) };
    let text = format!(
        "{option} `{pattern}`: no function, file or module in any stack has a name that contains this text{help}"
    );
    Err(Error::Trace(text.into()))
}

/// Draws the flame graph of a measure, or prints its folded stacks.
fn flame(options: &Sites, is_folded: bool) -> Result<u8> {
    let chosen: Vec<_> = options.chosen.measures().collect();
    let by = options.by.as_deref().unwrap_or_default();
    if chosen.len() + by.len() > 1 || options.of.is_some() || options.inclusive || options.group != Group::Function {
        return Err(Error::Usage(
            "a flame graph shows one measure by function: use at most one of --by, --at and --live-between, and omit \
             --of, --inclusive and --group"
                .to_owned(),
        ));
    }
    let by = by.first().copied().unwrap_or(By::Peak);
    let Counted { mut heap, counts, .. } = count(&options.source, &options.chosen, &[by])?;
    options.symbols.name(&options.source.trace, &mut heap.stacks, None, allocated(&counts))?;
    let measure = chosen.first().copied().unwrap_or(by.measure());
    if !measure.is_known(&heap) && heap.has_sizes_only() {
        return Err(Error::Usage(format!(
            "{}: recorded with --sizes-only, so only --by allocated can be drawn",
            options.source.trace.display()
        )));
    }
    options.source.warn_of_contradictions(&heap.totals());
    let (trace, by_blocks) = (&options.source.trace, options.blocks);
    let mut graph = Graph::new("", if by_blocks { Unit::Count } else { Unit::Bytes });
    let places = Places::new(&heap.stacks, &options.folded.folding(), GroupBy::Function);
    options.folded.check(&[&places], trace)?;
    // Folded output contains full names for other tools.
    let name = |place: &Place| {
        let name = if is_folded { (&*place.name).into() } else { short_name(&place.name) };
        metatf_cli::shown(&name).into_owned()
    };
    let names: Vec<String> = places.keys().iter().map(name).collect();
    for (site, counts) in (0..).zip(&counts) {
        let amount = counts.get(measure);
        let stack = places.own(site).rev().filter_map(|place| names.get(places.group(place) as usize));
        graph.add(stack, if by_blocks { amount.blocks } else { amount.bytes });
    }
    let (total, unit) = (count_of(graph.root.total), if by_blocks { "blocks" } else { "bytes" });
    graph.title = format!("{}: {total} {unit} {}", trace.display(), text(measure));
    let written = || {
        let (file, mut out) = OutputFile::create(options.output.output.as_deref().unwrap_or(Path::new("-")))?;
        if is_folded {
            folded(&graph, &mut out)?;
        } else {
            render(&Page { figures: vec![graph.into()], ..Page::default() }, Printed::Svg, &mut out)?;
        }
        file.keep(out)
    };
    written().map_err(Error::system(options.output.with(Format::default()).place()))?;
    places.wrappers_sentence().into_iter().for_each(|folded| print_message(&folded.to_string()));
    Ok(0)
}
