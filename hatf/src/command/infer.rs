//! `hatf regions infer`

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use hatf::lab::Calls;
use hatf::scoped::{RegionWriter, context_names, contexts};
use hatf::stacks::Stacks;
use hatf::{Error, Result};
use hatf_lab::compare::Limit;
use hatf_lab::regions::infer::{Contexts, Costs, Enclosing, Peaks, RegionCandidate, WithRegions};
use hatf_lab::regions::{Inter, Intra, Outcome, Oversize, Settings, Simulation};
use hatf_lab::units::{bytes, bytes_change, count, percent, percent_change};
use hatf_lab::{Event, Totals};
use metatf::container::Sink;
use metatf_cli::{OutputFile, number};
use serde::Serialize;

use super::Format;
use super::lab::{Shown, Source, hint, readable_twice};

/// Find calls that outlive what is allocated in them: where a program could have an arena in place of single frees.
#[derive(clap::Args)]
#[command(after_help = "\
The trace needs stacks: hatf record --stacks, then hatf symbolize.

A trace does not say when functions return. A call is taken to go on as long as
the stacks of its thread's allocations have it: the same caller's address, the
same function. Two calls from one place may so be taken for one, and what is
found is a bound: look at the code before you follow it. What is not found is
certain: these blocks outlive the calls.

For each site the outermost call is chosen whose arena costs at most --most-cost
bytes: bytes that the program would have freed, and the arena not yet.

Examples:
  hatf regions infer app.sym.mtf
  hatf regions infer app.sym.mtf --most-cost 64KiB --rows 5
  hatf regions infer app.sym.mtf -o scoped.mtf && hatf regions simulate scoped.mtf")]
pub(crate) struct Infer {
    #[command(flatten)]
    source: Source,

    /// The most that an arena may cost: bytes such as 64KiB, or a percentage of the most bytes live at once.
    #[arg(long, value_name = "LIMIT", default_value = "1%", value_parser = super::diff::limit)]
    most_cost: Limit,

    /// How many arenas to list; 0 lists all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// How many callers of a function to name.
    #[arg(long, value_name = "N", default_value_t = 2)]
    depth: usize,

    /// Bytes of the blocks that arenas grow by, in the simulation.
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = number(1..=1_u64 << 48))]
    block: u64,

    /// Also write what the program would do with all arenas found, as a trace of scoped.dtd.
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    /// How to print the outcome.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What was found.
#[derive(Serialize)]
struct Report {
    trace: Totals,
    /// Objects whose stacks are known.
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

/// With all arenas.
#[derive(Serialize)]
struct Together {
    frees_saved: u64,
    /// The most bytes: live, and live outside of arenas with all bytes in them.
    most_live: u64,
    most_with_arenas: u64,
    blocks: Outcome,
}

pub(crate) fn run(options: &Infer) -> Result<u8> {
    let (source, path) = (&options.source, &options.source.trace);
    readable_twice(path, "the trace is read four times")?;
    let ignore = |_: &Event| Ok(());
    let mut calls = Calls::new(Shown::new(ignore));
    source.observe(&mut calls)?;
    let trace = calls.totals();
    let (_, stacks, _) = calls.into_parts();
    hint(path, &stacks);
    if stacks.count() == 1 {
        return Err(Error::Trace(format!("{}: without stacks no calls are known", path.display()).into()));
    }

    let mut calls = Calls::new(Shown::new(Enclosing::new(contexts(&stacks)?)));
    source.give(&mut calls)?;
    let (objects, _, enclosing) = calls.into_parts();
    let enclosed = enclosing.into_inner().finish(objects.live());
    let with_stacks = enclosed.sites.iter().map(|site| site.objects).sum();

    let mut calls = Calls::new(Shown::new(Costs::new(enclosed)));
    source.give(&mut calls)?;
    let limit = options.most_cost.of(trace.max_bytes);
    let (enclosed, found) = calls.into_parts().2.into_inner().finish(limit);

    let (peaks, blocks) = simulate(options, &stacks, &enclosed.contexts, &found)?;
    let frees_saved = found.iter().map(|candidate| candidate.objects).sum();
    let together = Together { frees_saved, most_live: peaks.before, most_with_arenas: peaks.after, blocks };
    let arena = |candidate: RegionCandidate| Arena {
        context: context_names(&stacks, &enclosed.contexts, &candidate),
        calls: candidate.calls,
        frees_saved: candidate.objects,
        bytes: candidate.bytes,
        cost: candidate.cost,
        sites: candidate.sites,
    };
    let report = Report { trace, with_stacks, limit, arenas: found.into_iter().map(arena).collect(), together };
    let mut out = BufWriter::new(io::stdout().lock());
    match options.format {
        Format::Text => {
            writeln!(out, "{}", path.display())?;
            text(&report, options, &mut out)?;
        }
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(0)
}

/// Runs the program with these arenas, and writes what it does.
fn simulate(
    options: &Infer,
    stacks: &Stacks,
    contexts: &Contexts,
    found: &[RegionCandidate],
) -> Result<(Peaks, Outcome)> {
    let settings =
        Settings { block: options.block, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
    let simulation = Simulation::new([settings])?;
    let name = options.output.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let failed = || Error::system(name.clone());
    let (file, mut sink) = options.output.as_deref().map(OutputFile::create).transpose().map_err(failed())?.unzip();
    let scopes =
        RegionWriter::new(simulation, sink.as_mut().map(|sink| sink as &mut dyn Sink), stacks, contexts, found)?;
    let with = WithRegions::new(contexts.clone(), found.to_vec(), scopes);
    let mut calls = Calls::new(Shown::new(with));
    let given = options.source.give(&mut calls);
    let mut with = calls.into_parts().2.into_inner();
    if let Some(error) = with.scopes_mut().error() {
        return Err(error);
    }
    given?;
    let (peaks, scopes) = with.finish()?;
    let (_, mut outcomes) = scopes.finish()?.finish();
    if let (Some(file), Some(sink)) = (file, sink) {
        file.keep(sink).map_err(failed())?;
    }
    let blocks = outcomes.pop().ok_or_else(|| Error::Usage("no simulation".to_owned()))?;
    Ok((peaks, blocks))
}

fn text(report: &Report, options: &Infer, out: &mut dyn Write) -> io::Result<()> {
    let Report { trace, with_stacks, limit, arenas, together } = report;
    trace.text(out)?;
    if *with_stacks < trace.objects {
        writeln!(out, "  {} objects have no stack", count(trace.objects - with_stacks))?;
    }
    writeln!(out, "\nCALLS that outlive what is allocated in them, each with an arena of at most {}", bytes(*limit))?;
    writeln!(out, "  {:>12} {:>7} {:>11} {:>10} {:>7}  function", "frees saved", "of all", "calls", "cost", "sites")?;
    let rows = if options.rows == 0 { usize::MAX } else { options.rows };
    for Arena { context, sites, calls, frees_saved, cost, .. } in arenas.iter().take(rows) {
        let mut names: Vec<&str> = context.iter().map(String::as_str).take(options.depth + 1).collect();
        if context.len() > names.len() {
            names.push("..");
        }
        writeln!(
            out,
            "  {:>12} {:>7} {:>11} {:>10} {:>7}  {}",
            count(*frees_saved),
            percent(*frees_saved, trace.objects),
            count(*calls),
            bytes(*cost),
            count(sites.len() as u64),
            names.join(" <- ")
        )?;
    }
    if arenas.len() > rows {
        writeln!(out, "  and {} more: --rows 0 lists all", count((arenas.len() - rows) as u64))?;
    }
    let Together { frees_saved, most_live, most_with_arenas, blocks } = together;
    writeln!(out, "\nTOGETHER")?;
    let share = percent(*frees_saved, trace.objects);
    writeln!(out, "  frees saved       {:>16}  {share} of all objects", count(*frees_saved))?;
    writeln!(out, "  most bytes live   {:>16}", count(*most_live))?;
    writeln!(
        out,
        "  with arenas       {:>16}  {}, {}",
        count(*most_with_arenas),
        bytes_change(i128::from(*most_with_arenas) - i128::from(*most_live)),
        percent_change(*most_live, *most_with_arenas)
    )?;
    writeln!(
        out,
        "  blocks of arenas  {:>16}  at most at once, each of {} bytes; {} blocks were added",
        count(blocks.most_bytes),
        count(options.block),
        count(blocks.blocks_added)
    )?;
    writeln!(out, "\nCalls are those that allocations show, and a bound: see hatf regions infer --help.")
}
