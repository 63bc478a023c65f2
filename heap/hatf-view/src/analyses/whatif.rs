//! Finds allocators and settings that would save memory, by running simulations on a trace.

use clap::builder::PossibleValuesParser;
use hatf_lab::simulate::Grid;
use hatf_lab::whatif::{KnownBy, NOW, Now, WhatIf, bars, describe, of_module, simulations, without_model};
use hatf_lab::{Heap, ObjectEvent, Observer};
use hatf_trace::event::{Event, EventKind, UserMetadata};
use hatf_trace::{Error, Result};
use metatf_page::Page;

use super::{Analysis, Answer, Options, Running, View};
use crate::analysis::PageFollower;

pub(super) const ROW: Analysis = Analysis::new::<Whatif>(
    "whatif",
    "Which allocator and which settings would save memory?",
    "Memory needed by other allocators and settings; takes several times as long",
    "whatif.md",
);

/// Rank the allocators and settings that would save memory, using a grid of simulations.
///
/// The trace's calls are run through simulations of glibc's allocator, jemalloc, mimalloc and tcmalloc, with default
/// and other settings, and through four models that match no library. Results are ranked by the maximum number of bytes
/// in held pages. Each row shows the setting to apply, the memory it would save, and how far its simulator deviated
/// from measured replays.
///
/// A page is held from its first use until it is returned to the system. Blocks are assumed to be touched completely.
/// ops counts an allocator's operations per object, not time. `hatf replay` measures both.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf whatif perl.mtf                     compared with the allocator it ran on
  hatf whatif server.mtf --now jemalloc    compared with jemalloc
  hatf whatif perl.mtf --format json | jq '.predictions[0]'
  hatf simulate perl.mtf --allocator glibc,glibc:tcache=16,jemalloc:tcache_max=4096   another grid
  hatf replay perl.mtf --with system,mimalloc                                         measured")]
struct Whatif {
    /// Allocator that the program uses now, as the baseline for savings [default: detected from the modules and
    /// statically linked allocators in the trace, or glibc].
    #[arg(long, value_name = "ALLOCATOR", value_parser = PossibleValuesParser::new(NOW))]
    now: Option<String>,
}

impl Options for Whatif {
    fn start(self, threads: usize) -> Result<Box<dyn Running>> {
        let grid = Grid::new(simulations()?, threads)?;
        Ok(Box::new(Simulated { grid: Some(grid), program: Program::default(), now: self.now, whatif: None }))
    }
}

/// Simulations that observe a trace.
struct Simulated {
    /// The simulations; `None` after the trace has ended.
    grid: Option<Grid>,
    program: Program,
    /// The allocator in use, if the user specified it.
    now: Option<String>,
    whatif: Option<WhatIf>,
}

impl Running for Simulated {
    fn end(&mut self, heap: &Heap) -> Result<()> {
        let Some(grid) = self.grid.take() else { return Ok(()) };
        let (outcomes, program) = (grid.finish()?, std::mem::take(&mut self.program));
        let pages = program.pages.report();
        let private = pages.as_ref().filter(|pages| pages.samples > 0).map(|pages| pages.private.peak);
        let mapped = pages.map(|pages| pages.held.peak).filter(|held| *held > 0);
        let now = match self.now.take() {
            Some(now) => Now { allocator: now, known_by: KnownBy::Given, ..Now::default() },
            None => program.now(),
        };
        self.whatif = Some(WhatIf::new(heap.totals(), now, [private, mapped], &outcomes));
        Ok(())
    }

    fn answer<'v>(&'v self, _: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        let whatif = self.whatif.as_ref().ok_or_else(|| Error::Usage("the analysis has not ended".to_owned()))?;
        Ok(Box::new(whatif))
    }

    /// Returns the error of the simulation whose failure stopped the pass.
    fn cause(self: Box<Self>, error: Error) -> Error {
        self.grid.and_then(|grid| grid.finish().err()).map_or(error, Error::from)
    }
}

impl Answer for &WhatIf {
    fn describe(&self, page: &mut Page) {
        describe(self, page);
    }

    fn describe_in_html(&self, page: &mut Page) {
        bars(self, page);
    }
}

impl Observer for Simulated {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.grid.event(event)
    }

    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.program.record(record, heap)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.program.user_metadata(user_metadata);
    }
}

/// The information that a trace contains about its program.
#[derive(Default)]
struct Program {
    known_by: KnownBy,
    /// A function of the allocator that is statically linked into a program image, and the allocator's name, if known.
    linked_in: Option<(String, Option<String>)>,
    /// The 1-based number of the program image that contains it.
    linked_image: u64,
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
            let in_truth = model.is_none().then(|| allocator.unwrap_or_else(|| "a custom allocator".to_owned()));
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
            // A different program may use a different allocator.
            EventKind::Image { .. } => {
                self.images += 1;
                self.known_by = KnownBy::Assumed;
                if self.images > self.linked_image {
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
            self.linked_image = linked["image"].as_u64().unwrap_or(1);
        }
    }
}
