//! `hatf model evaluate`: compares synthetic traces with their originals.

use std::path::{Path, PathBuf};

use hatf_lab::{HeapTracker, ObjectEvent, Observer, Totals, Until};
use hatf_research::model::evaluate::{
    Errors, Experiment, OfModel, Predicted, Predictions, Program, Rank, Summary, Tracking, Trial, chart, describe,
    predictions, trials,
};
use hatf_research::model::{Choice, Fitter, Kind, Running};
use hatf_trace::Result;
use hatf_trace::forms::Form;
use metatf_cli::{OutputArgs, Progress, number};
use metatf_page::units::count;
use metatf_page::{Intervals, Page};
use serde::Serialize;

use super::{Measure, file_bytes};
use crate::command::lab::{Source, draw};
use crate::command::output::show;
use crate::command::print_message;

/// Measure how closely synthetic traces match the trace their models were fitted to.
///
/// Each model generates several synthetic traces. Their bytes, their objects and the results of simulated allocators
/// are compared with those of the trace itself. This repeats the paper's experiment, including its Tables 9 to 16 and
/// Figures 3 to 6.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf model evaluate perl.mtf
  hatf model evaluate perl.mtf gawk.mtf gs.mtf --svg models.svg
  hatf model evaluate perl.mtf -m cdf,cdf-p2,mix:size=cdf,iat=time,ht=size --trials 30
  hatf model evaluate perl.mtf -m variants -a bsd,first:grow=4096 --format json")]
pub(crate) struct Evaluate {
    /// Traces, in any format that `hatf convert` reads. Each is read twice.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Format of the traces [default: detected from their first bytes or their names].
    #[arg(long, value_name = "FORMAT", value_parser = crate::command::form())]
    from: Option<&'static Form>,

    /// Comma-separated models. `all` means the paper's five models, and `variants` means its seven variants.
    #[arg(short, long, value_name = "MODEL,..", default_value = "all", value_parser = models)]
    models: Models,

    #[command(flatten)]
    measure: Measure,

    /// Number of synthetic traces per model.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = number(1..=1_000_000_u64))]
    trials: u64,

    /// Use only the first N events of each trace; trials have the same length.
    #[arg(long, value_name = "N", default_value_t = 5_000_000, allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    events: u64,

    /// Seed of the trials.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Simulated allocators, each followed by its settings after colons, as in `hatf simulate`. `all` means bsd, cache,
    /// first and best.
    #[arg(short, long, value_name = "NAME[:SETTING=N]..", value_delimiter = ',', default_value = "all")]
    allocators: Vec<String>,

    /// Stop a trial if its live objects need more memory than this, such as 512M or 4G.
    #[arg(long, value_name = "BYTES", default_value = "2G", value_parser = size)]
    memory_limit: u64,

    /// Number of trials to run in parallel; the result does not depend on it [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw the metrics of Figures 3 to 6 to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The paper's allocators, in the paper's order.
const PAPER: [&str; 4] = ["bsd", "cache", "first", "best"];

/// Models to evaluate.
#[derive(Clone)]
struct Models(Vec<Kind>);

/// Parses a comma-separated list of models. The parts of a mixture are also separated by commas.
fn models(text: &str) -> std::result::Result<Models, String> {
    let mut names: Vec<String> = Vec::new();
    for part in text.split(',') {
        match names.last_mut() {
            Some(last) if last.starts_with("mix:") && part.contains('=') && !part.starts_with("mix:") => {
                *last = format!("{last},{part}");
            }
            _ => names.push(part.to_owned()),
        }
    }
    let mut kinds = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => kinds.extend(Kind::FIVE),
            "variants" => {
                kinds.extend(
                    Choice::ALL
                        .iter()
                        .map(|choice| Kind::same(*choice))
                        .filter(|kind| !Kind::FIVE.contains(kind) && *kind != Kind::same(Choice::Outline)),
                );
            }
            name => kinds.push(name.parse().map_err(|error: hatf_lab::Error| error.to_string())?),
        }
    }
    Ok(Models(kinds))
}

/// Parses a number of bytes with an optional unit.
fn size(text: &str) -> std::result::Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected bytes, such as 512M or 4G".to_owned())
}

#[derive(Serialize)]
struct Report<'r> {
    trials: u64,
    seed: u64,
    programs: &'r [Program],
    ops: Metric<'r>,
    memory_efficiency: Metric<'r>,
    #[serde(skip)]
    predictions: &'r [Predictions; 2],
}

impl metatf_page::Report for Report<'_> {
    fn page(&self) -> Page {
        let names = self.programs.iter().map(|program| program.name.as_str());
        let mut page = Page::new(names.collect::<Vec<_>>().join(", "));
        describe(self.programs, self.predictions, self.trials, &mut page);
        page.figure(figures(self.programs));
        page
    }
}

/// Builds the chart.
fn figures(programs: &[Program]) -> Intervals {
    chart("Synthetic traces relative to the original traces", programs)
}

#[derive(Serialize)]
struct Metric<'r> {
    #[serde(flatten)]
    predictions: &'r Predictions,
    errors: Vec<Errors>,
    ranks: Vec<Vec<Option<Rank>>>,
    summary: Summary,
}

impl<'r> Metric<'r> {
    fn new(predictions: &'r Predictions) -> Self {
        let programs = &predictions.programs;
        Self {
            predictions,
            errors: programs.iter().map(Predicted::errors).collect(),
            ranks: programs.iter().map(Predicted::ranks).collect(),
            summary: predictions.summary(),
        }
    }
}

pub(crate) fn run(options: &Evaluate) -> Result<u8> {
    let all = |name: &String| name == "all";
    let allocators = if options.allocators.iter().any(all) {
        PAPER.iter().map(ToString::to_string).collect()
    } else {
        options.allocators.clone()
    };
    let Evaluate { trials, seed, memory_limit, .. } = *options;
    let experiment = Experiment { allocators, trials, seed, memory_limit: Some(memory_limit) };
    experiment.grid(1)?;
    let programs = options.traces.iter().map(|path| program(options, &experiment, path));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let of_metrics = predictions(&programs, &experiment.allocators, &options.models.0);

    if let Some(path) = &options.svg {
        draw(path, figures(&programs))?;
    }
    let [ops, memory_efficiency] = [&of_metrics[0], &of_metrics[1]].map(Metric::new);
    show(
        &Report { trials, seed, programs: &programs, ops, memory_efficiency, predictions: &of_metrics },
        &options.output,
    )?;
    Ok(0)
}

/// Passes the first events of a trace to an observer. Returns whether the trace may contain more events.
fn first<O: Observer>(source: &Source, most: u64, observer: &mut O) -> Result<(Totals, bool)> {
    let mut until = Until::new(most);
    let mut calls = HeapTracker::new(|event: &ObjectEvent| {
        observer.event(event)?;
        until.event(event)
    });
    let read = source.observe(&mut calls);
    let totals = calls.heap().totals();
    drop(calls);
    // Ignore the error by which the reader reports an early stop.
    if !until.reached() {
        read?;
    }
    Ok((totals, until.reached()))
}

/// Runs the experiment on one trace.
fn program(options: &Evaluate, experiment: &Experiment, path: &Path) -> Result<Program> {
    let source = Source::new(path.to_owned(), options.from, options.threads);
    source.reread()?;
    let settings = options.measure.settings(options.models.0.clone());
    // The first pass runs the original trace through the allocators and finds its end.
    let mut tracking = Tracking::default();
    let (mut grid, mut clock) = (experiment.grid(source.threads())?, Running::new(settings.clock));
    let read = first(&source, options.events, &mut |event: &ObjectEvent| {
        clock.at(event);
        tracking.event(event)?;
        grid.event(event)
    });
    let outcomes = grid.finish()?;
    let (totals, cut) = read?;
    if cut {
        print_message(&format!(
            "{}: using only the first {} events; to use more, add --events N",
            path.display(),
            count(totals.events)
        ));
    }
    source.warn_of_contradictions(&totals);
    let actual = Trial::new(&totals, &tracking, &outcomes);

    let mut fitter = Fitter::new(settings, Some(clock.end()?))?;
    let (totals, _) = first(&source, options.events, &mut fitter)?;
    let fitted = fitter.finish(&totals, file_bytes(path))?;
    let models = fitted.models();

    let mut progress = Progress::new("trials").of(experiment.jobs(&models).len() as u64);
    let ended = trials(experiment, &models, source.threads(), || progress.add(1))?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    // Use the name up to the first dot, without file extensions.
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or(&name).to_owned();
    let models =
        options.models.0.iter().zip(ended).map(|(kind, trials)| OfModel::new(*kind, &actual, trials)).collect();
    Ok(Program { name, actual, models })
}
