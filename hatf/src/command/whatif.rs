//! `hatf whatif`

use clap::builder::PossibleValuesParser;
use hatf::Result;
use hatf::event::{Event, EventKind};
use hatf_lab::simulate::Grid;
use hatf_lab::whatif::{KnownBy, NOW, Now, WhatIf, describe, of_module, simulations};
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

    /// The allocator that the program has now; what others save is compared with it [default: by the modules in the trace; glibc if it
    /// has none].
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
        Ok(Self(Grid::new(simulations()?, threads)?, Program { known_by: KnownBy::Assumed, private: None }))
    }

    /// Ranks what they predict, if the trace could be `read`. `now` is the allocator in use, where it was given.
    pub(super) fn finish(self, totals: Totals, now: Option<String>, read: Result<()>) -> Result<WhatIf> {
        let Self(grid, Program { known_by, private }) = self;
        let outcomes = grid.finish()?;
        read?;
        let now = match (now, known_by) {
            (Some(now), _) => Now { allocator: now, known_by: KnownBy::Given },
            (None, KnownBy::Module(file)) => {
                let allocator = of_module(&file).unwrap_or("glibc").to_owned();
                Now { allocator, known_by: KnownBy::Module(file) }
            }
            (None, known_by) => Now { allocator: "glibc".to_owned(), known_by },
        };
        Ok(WhatIf::new(totals, now, private, &outcomes))
    }
}

impl Observer for Running {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.0.event(event)
    }

    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.1.record(record, heap)
    }
}

/// What a trace says of its program.
struct Program {
    known_by: KnownBy,
    private: Option<u64>,
}

impl Observer for Program {
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        match &record.kind {
            EventKind::ModuleLoad { name, .. } => {
                let file =
                    String::from_utf8_lossy(name.rsplit(|byte| *byte == b'/').next().unwrap_or(name)).into_owned();
                if of_module(&file).is_some() {
                    self.known_by = KnownBy::Module(file);
                } else if self.known_by == KnownBy::Assumed {
                    self.known_by = KnownBy::NoOther;
                }
            }
            // Another program may have another allocator.
            EventKind::Image { .. } => self.known_by = KnownBy::Assumed,
            EventKind::Resident(resident) => self.private = self.private.max(Some(resident.private())),
            _ => {}
        }
        Ok(())
    }
}
