//! `hatf profile TRACE`: creates a profile from a trace.

use std::path::{Path, PathBuf};

use hatf_lab::profile::{
    InfoSink, Lookups, Merged, Profiled, Profiler, ProfilerSettings, Replacement, SizeOutcome, Sizes, TICK,
    TableSettings, describe_sizes,
};
use hatf_lab::{Heap, HeapTracker, Totals};
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::{Module, Stacks};
use hatf_trace::{Error, Result};
use hatf_view::analyses::{context, in_memory};
use hatf_view::profile::{Collect, HeapProfile, ProfileWriter};
use metatf_cli::{FormatArgs, OutputFile, number};
use metatf_page::{Note, Page, Value};
use serde::Serialize;

use super::super::lab::Source;
use super::super::symbols::Symbols;
use super::super::{clock, print_message};
use crate::command::output::show;

/// Options for creating a profile from a trace.
#[derive(clap::Args)]
pub(crate) struct Make {
    /// Profile to write [default: TRACE with the extension .prof.mtf].
    #[arg(short, long, value_name = "PROFILE")]
    output: Option<PathBuf>,

    /// Number of sets in the table. Use a prime: a context's set is the context number modulo this number.
    #[arg(long, value_name = "N", default_value_t = TableSettings::default().sets, value_parser = number(1..=1_usize << 24))]
    sets: usize,

    /// Number of entries per set.
    #[arg(long, value_name = "N", default_value_t = TableSettings::default().ways, value_parser = number(1..=1024_usize))]
    ways: usize,

    /// Entry to evict from a full set.
    #[arg(long, value_enum, default_value_t = Evict::Min)]
    evict: Evict,

    /// Clock resolution of the profile's timestamps and lifetimes, from 1ns to 1ms.
    #[arg(long, value_name = "TICK", default_value = "1ms", value_parser = tick)]
    tick: u64,

    /// Sizes of other tables for which to count lookups.
    #[arg(
        long,
        value_name = "SETSxWAYS",
        value_delimiter = ',',
        default_value = "61x4,251x4,1021x4,4093x4,16381x1,16381x2,16381x4,16381x8"
    )]
    tables: Vec<TableSettings>,

    #[command(flatten)]
    symbols: Symbols,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Evict {
    /// The entry with the fewest blocks
    Min,
    /// The least recently used entry
    Lru,
    /// The oldest entry
    Fifo,
}

fn tick(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "expected a duration from 1ns to 1ms, such as 1us".to_owned();
    clock(text).ok().filter(|tick| (1..=TICK).contains(tick)).ok_or_else(wrong)
}

#[derive(Serialize)]
struct Report {
    #[serde(skip)]
    name: String,
    trace: Totals,
    profile: String,
    contexts: usize,
    table: TableSettings,
    lookups: Lookups,
    tables: Vec<SizeOutcome>,
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.trace.note(&mut page);
        let Lookups { first_fills, evictions, .. } = self.lookups;
        let numbers = [first_fills + evictions, self.contexts as u64, evictions].map(Value::Count);
        let of = [Value::text(self.profile.clone())].into_iter().chain(numbers);
        page.heading(Note::new("{}: {} heap info blocks of {} contexts, {} of them evicted").with(of));
        describe_sizes(&self.tables, &mut page);
        page
    }
}

pub(super) fn run(source: &Source, options: &Make) -> Result<u8> {
    let path = &source.trace;
    let output = options.output.clone().map_or_else(|| source.sibling("prof.mtf"), Ok)?;
    let replacement = match options.evict {
        Evict::Min => Replacement::Min,
        Evict::Lru => Replacement::Lru,
        Evict::Fifo => Replacement::Fifo,
    };
    let table = TableSettings { sets: options.sets, ways: options.ways, replacement };
    let tables = options.tables.iter().map(|size| TableSettings { replacement, ..*size });
    let sizes = Sizes::new(tables)?;
    table.checked()?;

    let problem = || Error::system(output.display().to_string());
    let (file, mut sink) = OutputFile::create(&output).map_err(problem())?;
    let writer = ProfileWriter::new(&mut *sink, options.tick);
    let mut writer = writer.map_err(|error| file.error().map_or(error, problem()))?;
    let settings = ProfilerSettings { table, tick: options.tick };
    let made = make(source, &options.symbols, settings, sizes, &mut writer);
    // If the writer failed, report its error, because it stopped the profiler. If the output failed, report the
    // output's error instead, because it caused the writer's error.
    let made = match (writer.take_error(), made) {
        (None, Ok(made)) => writer.finish().map(|()| made),
        (error, made) => {
            writer.abandon();
            error.map_or(made, Err)
        }
    };
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    let made = made?;
    file.keep(sink).map_err(problem())?;
    if output == Path::new("-") {
        return Ok(0);
    }
    let Made { totals, lookups, sizes, contexts } = made;
    let (name, profile, tables) = (path.display().to_string(), output.display().to_string(), sizes.outcomes());
    let report = Report { name, trace: totals, profile, contexts, table, lookups, tables };
    show(&report, &(&options.format).into())?;
    Ok(0)
}

/// Results that are known after the profile has been written.
struct Made {
    totals: Totals,
    lookups: Lookups,
    sizes: Sizes,
    contexts: usize,
}

fn make(
    source: &Source,
    symbols: &Symbols,
    settings: ProfilerSettings,
    sizes: Sizes,
    writer: &mut ProfileWriter<'_>,
) -> Result<Made> {
    let Observed { totals, profiled, modules, about, stacks } = observe(source, symbols, settings, sizes, writer)?;
    let writer = profiled.sink;
    modules.iter().try_for_each(|module| writer.module(module))?;
    for (number, key) in (1..).zip(&profiled.contexts) {
        writer.context(number, &context(*key, &stacks), stacks.locations())?;
    }
    writer.about(&about, profiled.lookups.evictions == 0)?;
    let contexts = profiled.contexts.len();
    Ok(Made { totals, lookups: profiled.lookups, sizes: profiled.sizes, contexts })
}

/// Makes a profile of a trace in memory, with default settings.
pub(crate) fn made_of(source: &Source, symbols: &Symbols) -> Result<HeapProfile> {
    let (settings, sizes) = (ProfilerSettings::default(), Sizes::default());
    let Observed { profiled, modules, about, stacks, .. } = observe(source, symbols, settings, sizes, Merged::new())?;
    Ok(in_memory(profiled, &stacks, modules, about))
}

/// A profiled trace.
struct Observed<S> {
    totals: Totals,
    profiled: Profiled<S>,
    modules: Vec<Module>,
    about: UserMetadata,
    stacks: Stacks,
}

/// Reads a trace, passes its heap info blocks to a sink, and names the frames of its stacks.
fn observe<S: InfoSink>(
    source: &Source,
    symbols: &Symbols,
    settings: ProfilerSettings,
    sizes: Sizes,
    sink: S,
) -> Result<Observed<S>> {
    let profiler = Profiler::new(settings, sizes, sink)?;
    let mut tracker = HeapTracker::new((profiler, Collect::new()));
    source.read(&mut tracker)?;
    let (heap, (profiler, collect)) = tracker.into_parts();
    let (modules, about) = collect.into_parts();
    if heap.sampling.is_some() {
        print_message(&format!(
            "{}: the trace is a sample; the profile covers the sampled blocks only",
            source.trace.display()
        ));
    }
    let totals = heap.totals();
    let Heap { objects, mut stacks, .. } = heap;
    if stacks.have_places() {
        symbols.name(&source.trace, &mut stacks, None, |_| 1)?;
    }
    let profiled = profiler.finish(objects.live())?;
    Ok(Observed { totals, profiled, modules, about, stacks })
}
