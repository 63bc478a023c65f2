//! `hatf whatif`

use clap::builder::PossibleValuesParser;
use hatf::Result;
use hatf::analysis::PageFollower;
use hatf::event::{Event, EventKind, UserMetadata};
use hatf_lab::simulate::Grid;
use hatf_lab::whatif::{KnownBy, NOW, Now, WhatIf, describe, of_module, simulations, without_model};
use hatf_lab::{Heap, HeapTracker, ObjectEvent, Observer, Totals};
use metatf_cli::OutputArgs;
use metatf_page::{Page, Report};
use serde::Serialize;

use super::lab::Source;
use crate::command::output::show;

/// Which allocator, and which settings, would save memory: a grid of simulations, ranked.
///
/// The trace's calls run through simulations of glibc's allocator, jemalloc, mimalloc and tcmalloc, each by itself and with some
/// settings, and through four models without a library. They are ranked by the most bytes of pages that they would hold. Beside
/// each stands what to set in practice, what it would save, and how far its simulator was off from measured replays.
///
/// A page is held if it has memory in it, or had some and was not given back to the system. Blocks are taken to be touched as a
/// whole. ops counts what an allocator does for an object; it is not time. `hatf replay` measures both.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf whatif perl.mtf                     against the allocator that it ran on
  hatf whatif server.mtf --now jemalloc    against jemalloc
  hatf whatif perl.mtf --format json | jq '.predictions[0]'
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=16,jemalloc:tcache_max=4096   another grid
  hatf replay perl.mtf --with system,mimalloc                                         measured")]
pub(crate) struct Whatif {
    #[command(flatten)]
    source: Source,

    /// The allocator that the program has now; what others save is compared with it [default: what the trace says of modules and of
    /// what the program has linked in; glibc if it says nothing].
    #[arg(long, value_name = "ALLOCATOR", value_parser = PossibleValuesParser::new(NOW))]
    now: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

/// The predictions, with the name of the trace.
#[derive(Serialize)]
struct Predicted {
    #[serde(skip)]
    name: String,
    #[serde(flatten)]
    whatif: WhatIf,
}

impl Report for Predicted {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.whatif.trace.note(&mut page);
        describe(&self.whatif, &mut page);
        page
    }
}

pub(crate) fn run(options: &Whatif) -> Result<u8> {
    let mut tracker = HeapTracker::new(Running::new(options.source.threads())?);
    let read = options.source.observe(&mut tracker);
    let (heap, running) = tracker.into_parts();
    let whatif = running.finish(heap.totals(), options.now.clone(), read)?;
    show(&Predicted { name: options.source.trace.display().to_string(), whatif }, &options.output)?;
    Ok(0)
}

/// Simulations that follow a trace.
pub(super) struct Running(Grid, Program);

impl Running {
    /// Starts them in this many threads.
    pub(super) fn new(threads: usize) -> Result<Self> {
        Ok(Self(Grid::new(simulations()?, threads)?, Program::default()))
    }

    /// Ranks what they predict, if the trace could be `read`. `now` is the allocator in use, where it was given.
    pub(super) fn finish(self, totals: Totals, now: Option<String>, read: Result<()>) -> Result<WhatIf> {
        let Self(grid, program) = self;
        let outcomes = grid.finish()?;
        read?;
        let pages = program.pages.report();
        let private = pages.as_ref().filter(|pages| pages.samples > 0).map(|pages| pages.private.peak);
        let mapped = pages.map(|pages| pages.held.peak).filter(|held| *held > 0);
        let now = match now {
            Some(now) => Now { allocator: now, known_by: KnownBy::Given, ..Now::default() },
            None => program.now(),
        };
        Ok(WhatIf::new(totals, now, [private, mapped], &outcomes))
    }
}

impl Observer for Running {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.0.event(event)
    }

    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.1.record(record, heap)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.1.user_metadata(user_metadata);
    }
}

/// What a trace says of its program.
#[derive(Default)]
struct Program {
    known_by: KnownBy,
    /// What it has linked in: a function of it, and which allocator that is. Of the first program alone.
    linked_in: Option<(String, Option<String>)>,
    images: u64,
    libc: Option<String>,
    pages: PageFollower,
}

impl Program {
    /// Returns the allocator in use.
    fn now(self) -> Now {
        let Self { known_by, linked_in, libc, .. } = self;
        let glibc = || "glibc".to_owned();
        if let Some((function, allocator)) = linked_in {
            let model = allocator.clone().filter(|name| NOW.contains(&name.as_str()));
            let in_truth = model.is_none().then(|| allocator.unwrap_or_else(|| "an allocator of its own".to_owned()));
            let allocator = model.unwrap_or_else(glibc);
            return Now { allocator, in_truth, libc, known_by: KnownBy::LinkedIn(function) };
        }
        let (model, in_truth) = match &known_by {
            KnownBy::Module(file) => (of_module(file), without_model(file)),
            _ => (None, None),
        };
        let allocator = model.map_or_else(glibc, str::to_owned);
        Now { allocator, in_truth: in_truth.map(str::to_owned), libc, known_by }
    }
}

impl Observer for Program {
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        match &record.kind {
            EventKind::ModuleLoad { name, .. } => {
                let file =
                    String::from_utf8_lossy(name.rsplit(|byte| *byte == b'/').next().unwrap_or(name)).into_owned();
                let is_loaded = matches!(&self.known_by, KnownBy::Module(before) if of_module(before).is_some());
                if of_module(&file).is_some() || without_model(&file).is_some() && !is_loaded {
                    self.known_by = KnownBy::Module(file);
                } else if self.known_by == KnownBy::Assumed {
                    self.known_by = KnownBy::NoOther;
                }
            }
            // Another program may have another allocator.
            EventKind::Image { .. } => {
                self.images += 1;
                self.known_by = KnownBy::Assumed;
                if self.images > 1 {
                    self.linked_in = None;
                }
                self.pages.image();
            }
            EventKind::Pages(pages) => self.pages.call(pages, record.time),
            EventKind::Resident(resident) => self.pages.resident(resident, record.time),
            _ => {}
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        self.libc = user_metadata.get("libc").and_then(text).or_else(|| self.libc.take());
        let linked = user_metadata.get("linked_in").filter(|linked| linked.is_object());
        if let Some(linked) = linked {
            self.linked_in = text(&linked["function"]).map(|function| (function, text(&linked["allocator"])));
        }
    }
}
