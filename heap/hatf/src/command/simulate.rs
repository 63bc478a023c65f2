//! `hatf simulate`: runs traces through simulated allocators.

use std::path::PathBuf;

use hatf_lab::allocator::{Act, Acts, PAPER, by_name};
use hatf_lab::history::{Curves, Line};
use hatf_lab::simulate::{Grid, Outcome, Simulation, describe};
use hatf_lab::{HeapTracker, Totals};
use hatf_trace::Result;
use metatf_cli::OutputArgs;
use metatf_page::{Chart, Page, Unit};
use serde::Serialize;

use super::lab::{Source, draw};
use crate::command::output::show;

/// Run a trace through simulated allocators, and show the heap each would need and the work it would do.
///
/// Append settings to an allocator's name, as in first:grow=4096; all other settings keep their defaults. bsd, first,
/// best and cache are the allocators of Zorn and Grunwald's paper (CU-CS-603-92, Table 6); glibc, jemalloc, mimalloc
/// and tcmalloc model the libraries of the same names; tlsf, buddy and bump are from the literature. Sizes and
/// operation counts are exact for these models; time is not measured.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf simulate perl.mtf
  hatf simulate perl.mtf --allocator bsd,bsd:header=4:least=8,first:grow=4096
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=0,jemalloc,tlsf
  hatf simulate perl.mtf --allocator jemalloc,mimalloc --touches
  hatf simulate perl.mtf --svg heap.svg --format json > heap.json

Settings (in bytes; entries, threads, calls and steps are counts, and decay is in nanoseconds;
switches are 0 or 1):
  bsd       header=8 least=16 refill=2048
  first     word=8 least=32 grow=8192
  best      word=8 least=32 grow=8192
  cache     entries=5 round=32, and the settings of first
  glibc     tcache=7 tcache_max=1032 fast=128 arenas=64 mmap=131072 trim=131072 pad=131072 rise=1
  jemalloc  arenas=8 tcache=1 tcache_max=32768 decay=10000000000 steps=4 slab=4096 oversize=8388608
  mimalloc  purge=1000000 page=65536 steps=4 extend=4096
  tcmalloc  caches=33554432 batch=32 release=1 aggressive=0 page=8192
  tlsf      steps=32 header=8 grow=65536
  buddy     least=16 region=4194304
  bump      arena=1048576 align=16")]
pub(crate) struct Simulate {
    #[command(flatten)]
    source: Source,

    /// Allocators to simulate, separated by commas, each with optional settings.
    #[arg(short, long = "allocator", value_name = "NAME[:SETTING=N]..", value_delimiter = ',', default_values = PAPER)]
    allocators: Vec<String>,

    /// Weight of an operation in the ops total, such as examined=3 [default: 1 each].
    #[arg(long = "weight", value_name = "ACT=N", value_parser = weight)]
    weights: Vec<(Act, u64)>,

    /// Check each allocator's invariants: the touched parts after every event, and the complete heap every N events.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "4096")]
    invariants: Option<u64>,

    /// Also count the cache lines and pages that events touch, and the resulting TLB misses. An allocation touches all
    /// bytes of its block, a free only the first byte.
    #[arg(long)]
    touches: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Also draw live bytes and heap sizes over events to this SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    #[serde(skip)]
    name: String,
    trace: Totals,
    allocators: Vec<Outcome>,
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.trace.note(&mut page);
        describe(&self.allocators, &mut page);
        page.figure(self.curves());
        page
    }
}

impl Report {
    /// Returns a chart of all heaps, with a single curve for live bytes.
    fn curves(&self) -> Chart {
        let heap = |outcome: &Outcome| {
            let heap = outcome.curves.lines.get(1)?;
            Some(Line { name: outcome.name.clone(), most: heap.most.clone() })
        };
        let first = self.allocators.first();
        let live = first.and_then(|outcome| outcome.curves.lines.first().cloned());
        let lines = live.into_iter().chain(self.allocators.iter().filter_map(heap)).collect();
        let curves = Curves { step: first.map_or(1, |outcome| outcome.curves.step), lines };
        curves.chart(format!("{}: live bytes and the heaps they need", self.name), Unit::Bytes)
    }
}

pub(crate) fn run(options: &Simulate) -> Result<u8> {
    let simulations = options.allocators.iter().map(|name| {
        let simulation = Simulation::new(name, by_name(name)?);
        let simulation = if options.touches { simulation.with_touches() } else { simulation };
        Ok(match options.invariants {
            Some(every) => simulation.with_invariants(every),
            None => simulation,
        })
    });
    let grid = Grid::new(simulations.collect::<Result<_>>()?, options.source.threads())?;
    let mut calls = HeapTracker::new(grid);
    let read = options.source.observe(&mut calls);
    let (heap, grid) = calls.into_parts();
    let totals = heap.totals();
    // A failed simulation stops the reader, so report the error of the simulation first.
    let mut outcomes = grid.finish()?;
    read?;
    let mut weights = Acts::weights();
    options.weights.iter().for_each(|(act, weight)| weights.set(*act, *weight));
    outcomes.iter_mut().for_each(|outcome| outcome.weigh(weights));

    let report = Report { name: options.source.trace.display().to_string(), trace: totals, allocators: outcomes };
    if let Some(path) = &options.svg {
        draw(path, report.curves())?;
    }
    show(&report, &options.output)?;
    Ok(0)
}

/// Parses an operation and its weight.
fn weight(text: &str) -> std::result::Result<(Act, u64), String> {
    let names = || Act::ALL.iter().map(|act| act.name()).collect::<Vec<_>>().join(", ");
    let (name, number) = text.split_once('=').ok_or("expected ACT=N, such as examined=3")?;
    let act = Act::ALL.iter().find(|act| act.name() == name).ok_or_else(|| format!("expected one of {}", names()))?;
    let number = number.parse::<u32>().map_err(|_| format!("`{number}` is not an integer below 2^32"))?;
    Ok((*act, number.into()))
}
