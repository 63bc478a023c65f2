//! Predictions of which allocators and settings would save memory: simulations that follow a trace, and the trace's
//! information about its program.

use hatf_lab::simulate::Grid;
use hatf_lab::whatif::{KnownBy, NOW, Now, WhatIf, describe, of_module, simulations, without_model};
use hatf_lab::{Heap, ObjectEvent, Observer, Totals};
use metatf_page::{Page, Report};
use serde::Serialize;

use crate::analysis::PageFollower;
use hatf_trace::Result;
use hatf_trace::event::{Event, EventKind, UserMetadata};

/// The predictions, with the name of the trace.
#[derive(Serialize)]
pub struct Predicted {
    /// Name of the trace.
    #[serde(skip)]
    pub name: String,
    /// The predictions.
    #[serde(flatten)]
    pub whatif: WhatIf,
}

impl Report for Predicted {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.clone());
        self.whatif.trace.note(&mut page);
        describe(&self.whatif, &mut page);
        page
    }
}

/// Simulations that follow a trace.
pub struct Running(Grid, Program);

impl Running {
    /// Starts the simulations in this many threads.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be created.
    pub fn new(threads: usize) -> Result<Self> {
        Ok(Self(Grid::new(simulations()?, threads)?, Program::default()))
    }

    /// Ranks the predictions, if the trace could be `read`. `now` is the allocator in use, if it was given.
    ///
    /// # Errors
    /// Returns an error if a simulation failed, or the error in `read`.
    pub fn finish(self, totals: Totals, now: Option<String>, read: Result<()>) -> Result<WhatIf> {
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

/// The trace's information about its program.
#[derive(Default)]
struct Program {
    known_by: KnownBy,
    /// A function of the allocator linked into the first program, and the name of that allocator.
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
