//! `hatf regions infer`: finds calls that could use arenas.

mod encloses;

use std::path::PathBuf;

use hatf_lab::sites::Limit;
use hatf_lab::{HeapTracker, Totals};
use hatf_research::regions::infer::{
    Contexts, Costs, Enclosing, Peaks, RegionCandidate, ScopeObserver, ScopeTable, WithRegions,
};
use hatf_research::regions::{Inter, Intra, Outcome, Oversize, Settings, Simulation};
use hatf_research::scoped::{Names, RegionWriter, ScopeCoverage, ScopeEvents, ScopeKind, contexts};
use hatf_trace::{Error, Result};
use metatf::container::Sink;
use metatf_cli::{FormatArgs, OutputFile, number};
use metatf_page::units::{bytes, count};
use metatf_page::{Column, Facts, Note, Page, Table, Value};
use serde::Serialize;

use self::encloses::{Encloses, chosen};
use super::lab::Source;
use super::symbols::Symbols;
use crate::command::output::show;

/// Find calls that outlive all their allocations, where an arena could replace individual frees.
#[derive(clap::Args)]
#[command(after_help = "\
Some traces record when the scopes that enclose allocations begin and end. The
result is then exact:
  functions   the program was built with hatf cc --functions
  phases      the program names phases or marks (hatf.h); each applies to the
              thread that named it

These scopes are used if they enclose half of the objects. A single mark does not
count, because only marks that end enclose anything. The first output line states
which kind of scope was used.

Other traces must contain stacks (hatf record --stacks), which do not show when
functions return. A call is assumed to continue while it appears in the stacks of
its thread's allocations, with the same return address and the same function. Two
calls from one place may be mistaken for one call, so the result is a bound: check
the code before you apply it. Blocks that are not listed certainly outlive their
calls. The last output line states whether the result is exact.

Each site is assigned to the outermost call whose arena costs at most --most-cost
bytes. The cost is the memory that the program frees before the arena is freed.
If an arena with all its possible sites costs more, sites are added to it while
they fit, starting with those that save the most frees per byte.

Examples:
  hatf regions infer app.mtf
  hatf regions infer app.mtf --most-cost 64KiB --rows 5
  hatf regions infer app.mtf -o scoped.mtf && hatf regions simulate scoped.mtf")]
pub(crate) struct Infer {
    #[command(flatten)]
    source: Source,

    /// Kind of scope to use for arenas [default: functions or phases if they enclose half of the objects; otherwise,
    /// stacks].
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<Encloses>,

    /// Maximum cost of an arena: bytes such as 64KiB, or a percentage of the maximum number of live bytes.
    #[arg(long, value_name = "LIMIT", default_value = "1%", value_parser = super::diff::limit)]
    most_cost: Limit,

    /// Number of arenas to list; 0 lists all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// Number of callers to name for each function.
    #[arg(long, value_name = "N", default_value_t = 2)]
    depth: usize,

    /// Size in bytes of the blocks that simulated arenas consist of.
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = number(1..=1_u64 << 48))]
    block: u64,

    /// Also write a scoped.dtd trace of the program as if it used all inferred arenas, for `hatf regions simulate`.
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    format: FormatArgs,
}

/// The arenas found.
#[derive(Serialize)]
struct Report {
    #[serde(skip)]
    name: String,
    /// Number of arenas to list, and number of callers per arena.
    #[serde(skip)]
    listed: (usize, usize),
    #[serde(skip)]
    block: u64,
    trace: Totals,
    by: Encloses,
    /// Reason for the choice of scopes.
    because: String,
    exact: bool,
    /// Explanation of why the result is exact or a bound.
    reason: String,
    /// Number of objects whose stacks are known, or that were allocated in a function or phase.
    with_stacks: u64,
    limit: u64,
    arenas: Vec<Arena>,
    together: Together,
}

#[derive(Serialize)]
struct Arena {
    /// The function and its callers, innermost first.
    context: Vec<String>,
    sites: Vec<u64>,
    calls: u64,
    frees_saved: u64,
    bytes: u64,
    cost: u64,
}

/// Result with all arenas combined.
#[derive(Serialize)]
struct Together {
    frees_saved: u64,
    /// Maximum number of live bytes without arenas. `most_with_arenas` is the maximum with arenas, in which no bytes
    /// are freed before the arena itself.
    most_live: u64,
    most_with_arenas: u64,
    blocks: Outcome,
}

pub(crate) fn run(options: &Infer) -> Result<u8> {
    let (source, path) = (&options.source, &options.source.trace);
    source.reread()?;
    let mut first = HeapTracker::new(ScopeCoverage::default());
    source.observe(&mut first)?;
    let (heap, coverage) = first.into_parts();
    let (trace, mut stacks) = (heap.totals(), heap.stacks);
    let (by, because) = chosen(options.by, path, &coverage)?;
    let pass = Pass { source, by: by.scopes() };
    let (names, contexts) = match pass.by {
        Some(by) => {
            let mut learns = HeapTracker::new(ScopeEvents::learn(by));
            source.read(&mut learns)?;
            let (heap, learns) = learns.into_parts();
            let names = learns.finish(heap.stacks);
            let contexts = names.scopes().map(ScopeTable::contexts).transpose()?;
            (names, contexts.unwrap_or(Contexts::new([])?))
        }
        None => {
            options.symbols.name(path, &mut stacks, None, |_| 1)?;
            if stacks.count() == 1 {
                return Err(Error::Trace(
                    format!("{}: the trace has no stacks, so calls are unknown", path.display()).into(),
                ));
            }
            let contexts = contexts(&stacks)?;
            (Names::of_stacks(stacks), contexts)
        }
    };

    let (live, enclosing) = pass.over(&names, Enclosing::new(contexts))?;
    let enclosed = enclosing.finish(live.into_iter());
    let with_stacks = enclosed.objects_in_contexts();
    let contradicted = names.contradictions().map(|site| enclosed.objects(site)).sum();
    let (exact, reason) = reason(by, &coverage, contradicted);

    let limit = options.most_cost.of(trace.max_bytes);
    let (enclosed, found) = pass.over(&names, Costs::new(enclosed))?.1.finish(limit);

    let (peaks, blocks) = simulate(options, &pass, &names, &enclosed.contexts, &found)?;
    let frees_saved = found.iter().map(|candidate| candidate.objects).sum();
    let together = Together { frees_saved, most_live: peaks.before, most_with_arenas: peaks.after, blocks };
    let arena = |candidate: RegionCandidate| Arena {
        context: names.context(&enclosed.contexts, &candidate),
        calls: candidate.calls,
        frees_saved: candidate.objects,
        bytes: candidate.bytes,
        cost: candidate.cost,
        sites: candidate.sites,
    };
    let arenas = found.into_iter().map(arena).collect();
    let name = format!("{}, by {}: {because}", path.display(), by.name());
    let listed = (if options.rows == 0 { usize::MAX } else { options.rows }, options.depth + 1);
    let block = options.block;
    let report =
        Report { name, listed, block, trace, by, because, exact, reason, with_stacks, limit, arenas, together };
    show(&report, &(&options.format).into())?;
    Ok(0)
}

/// Returns whether the result is exact, and an explanation.
fn reason(by: Encloses, coverage: &ScopeCoverage, contradicted: u64) -> (bool, String) {
    match by {
        Encloses::Stacks => {
            let bound = "This is only a bound: calls are inferred from the stacks of allocations, so successive calls from one \
                         place can look like a single call. The arena of such a call keeps the allocations of all of \
                         them, so it may cost too much. For an exact result, build the program with hatf cc \
                         --functions and record it again.";
            (false, bound.to_owned())
        }
        _ if coverage.lost > 0 => (
            false,
            format!(
                "This is only a bound: {} events were lost, possibly including function exits.",
                count(coverage.lost)
            ),
        ),
        Encloses::Functions if contradicted > 0 => (
            false,
            format!(
                "This is only a bound: the stacks of {} objects lack functions that were entered but never left, possibly because of longjmp.",
                count(contradicted)
            ),
        ),
        Encloses::Functions => (true, "Exact: the trace records function entries and exits.".to_owned()),
        Encloses::Phases => (true, "Exact: the trace records when phases begin and end.".to_owned()),
    }
}

/// Settings for further passes over the trace.
struct Pass<'a> {
    source: &'a Source,
    by: Option<ScopeKind>,
}

impl Pass<'_> {
    /// Passes the complete trace to an observer. Returns the sites of live objects.
    fn over<O: ScopeObserver>(&self, names: &Names, observer: O) -> Result<(Vec<u64>, O)> {
        let (sites, observer, read) = self.try_over(names, observer);
        read.map(|()| (sites, observer))
    }

    /// Works like [`over`](Self::over), but also returns the observer if reading fails.
    fn try_over<O: ScopeObserver>(&self, names: &Names, observer: O) -> (Vec<u64>, O, Result<()>) {
        if let (Some(by), Some(table)) = (self.by, names.scopes()) {
            let mut entries = HeapTracker::new(ScopeEvents::new(table.clone(), by, observer));
            let read = self.source.read(&mut entries);
            let (heap, entries) = entries.into_parts();
            let (sites, observer) = entries.into_parts(&heap);
            return (sites, observer, read);
        }
        let mut calls = HeapTracker::new(observer);
        let read = self.source.read(&mut calls);
        let (heap, observer) = calls.into_parts();
        (heap.objects.live().map(|object| object.site).collect(), observer, read)
    }
}

/// Simulates the program with these arenas and writes the resulting trace.
fn simulate(
    options: &Infer,
    pass: &Pass<'_>,
    names: &Names,
    contexts: &Contexts,
    found: &[RegionCandidate],
) -> Result<(Peaks, Outcome)> {
    let settings =
        Settings { block: options.block, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
    let simulation = Simulation::new([settings])?;
    let name = options.output.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let failed = || Error::system(name.clone());
    let (file, mut sink) = options.output.as_deref().map(OutputFile::create).transpose().map_err(failed())?.unzip();
    // If the output failed, report its error with the name of the output.
    let cause = |error| file.as_ref().and_then(OutputFile::error).map_or(error, failed());
    let scopes = RegionWriter::new(simulation, sink.as_mut().map(|sink| sink as &mut dyn Sink), names, contexts, found);
    let with = WithRegions::new(contexts.clone(), found.to_vec(), scopes.map_err(cause)?);
    let (_, mut with, given) = pass.try_over(names, with);
    if let Some(error) = with.scopes_mut().error() {
        return Err(cause(error));
    }
    given?;
    let (peaks, scopes) = with.finish()?;
    let mut outcomes = scopes.finish().map_err(cause)?.finish(&[]).outcomes;
    if let (Some(file), Some(sink)) = (file, sink) {
        file.keep(sink).map_err(failed())?;
    }
    let blocks = outcomes.pop().ok_or_else(|| Error::Usage("no simulation".to_owned()))?;
    Ok((peaks, blocks))
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.trace.note(&mut page);
        let (lacks, what, name) = match self.by {
            Encloses::Functions => ("were not allocated in any recorded function", "CALLS", "function"),
            Encloses::Phases => ("were not allocated in any phase", "PHASES", "phase"),
            Encloses::Stacks => ("have no stack", "CALLS", "function"),
        };
        if self.with_stacks < self.trace.objects {
            let without = Value::Count(self.trace.objects - self.with_stacks);
            page.push(Note::new(format!("{{}} objects {lacks}")).with([without]));
        }
        page.heading(format!(
            "{what} that outlive their allocations, each with an arena that costs at most {}",
            bytes(self.limit)
        ));
        page.push(self.arenas(name));
        page.heading("TOGETHER");
        page.push(self.together());
        page.heading(self.reason.clone());
        page
    }
}

impl Report {
    /// Returns a table with one row per arena.
    fn arenas(&self, name: &'static str) -> Table {
        let columns = ["frees saved", "of all", "calls", "cost", "sites"].map(Column::new);
        let mut table = Table::new(columns.into_iter().chain([Column::new(name)]));
        let (rows, depth) = self.listed;
        for Arena { context, sites, calls, frees_saved, cost, .. } in self.arenas.iter().take(rows) {
            let mut names: Vec<&str> = context.iter().map(String::as_str).take(depth).collect();
            if context.len() > names.len() {
                names.push("..");
            }
            table.row([
                Value::Count(*frees_saved),
                Value::Part(*frees_saved, self.trace.objects),
                Value::Count(*calls),
                Value::Bytes(*cost),
                Value::Count(sites.len() as u64),
                Value::text(names.join(" <- ")),
            ]);
        }
        if self.arenas.len() > rows {
            table.rest(format!("and {} more: --rows 0 lists all", count((self.arenas.len() - rows) as u64)));
        }
        table
    }

    /// Returns the facts about all arenas combined.
    fn together(&self) -> Facts {
        let Together { frees_saved, most_live, most_with_arenas, blocks } = &self.together;
        let part = Note::new("{} of all objects").with([Value::Part(*frees_saved, self.trace.objects)]);
        let change = i128::from(*most_with_arenas) - i128::from(*most_live);
        let parts = Value::PartChange { before: *most_live, after: *most_with_arenas };
        let grown = [self.block, blocks.blocks_added].map(Value::Count);
        Facts::new()
            .and_said("frees saved", Value::Count(*frees_saved), part)
            .and("most bytes live", Value::Count(*most_live))
            .and_said(
                "with arenas",
                Value::Count(*most_with_arenas),
                Note::new("{}, {}").with([Value::BytesChange(change), parts]),
            )
            .and_said(
                "blocks of arenas",
                Value::Count(blocks.most_bytes),
                Note::new("maximum, in blocks of {} bytes; {} blocks were added").with(grown),
            )
    }
}
