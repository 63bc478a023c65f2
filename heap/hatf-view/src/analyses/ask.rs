//! Runs one analysis on one trace.

use clap::ArgMatches;
use hatf_lab::sites::Sites;
use hatf_lab::{Heap, HeapTracker};
use hatf_trace::Result;

use super::{Alone, Analysis, Together, View};
use crate::calls::{Folding, GroupBy, Groups, Places};
use crate::report::{Grouped, ReadTrace, SiteTables};

/// An analysis and its options, applied to a trace.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The analysis.
    pub analysis: &'q Analysis,
    /// The [`options`](Analysis::options) of the analysis.
    pub options: &'q ArgMatches,
    /// The maximum number of threads.
    pub threads: usize,
    /// The name of the trace.
    pub name: &'q str,
    /// The size limits of tables.
    pub tables: SiteTables,
}

impl Question<'_> {
    /// Reads a trace with `read`, symbolizes the stacks that the answer shows (or all stacks) with `look_up`, and
    /// passes the answer to `show`.
    ///
    /// # Errors
    /// Returns an error of the analysis, `read`, `look_up` or `show`.
    pub fn ask<T>(
        &self,
        read: &mut ReadTrace<'_>,
        look_up: impl FnOnce(&mut Heap, Option<Vec<u64>>) -> Result<()>,
        show: impl FnOnce(&Alone<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { analysis, options, threads, name, tables } = *self;
        let together = Together(vec![analysis.start(options, threads)?]);
        let mut tracker = HeapTracker::new((together, analysis.traits.functions.then(Sites::new)));
        if analysis.traits.sizes_only {
            tracker = tracker.with_sizes_only();
        }
        let read = read(&mut tracker);
        let (mut heap, (Together(mut running), sites)) = tracker.into_parts();
        let mut running = running.remove(0);
        if let Err(error) = read {
            return Err(running.cause(error));
        }
        let counts = sites.map(|sites| sites.report()).unwrap_or_default();
        let shown = running.shown(&View { tables, counts: &counts, ..View::new(name, &heap) });
        look_up(&mut heap, shown)?;
        running.end(&heap)?;
        let by_function = || Places::new(&heap.stacks, &Folding::default(), GroupBy::Function);
        let places = analysis.traits.functions.then(by_function);
        let groups = places.as_ref().map(|places| Groups::new(places, &counts));
        let functions = places.as_ref().zip(groups.as_ref());
        let functions = functions.map(|(places, groups)| Grouped { places, groups, inclusive: false });
        let answer = running.answer(&View { tables, counts: &counts, functions, ..View::new(name, &heap) })?;
        show(&Alone { name, heap: &heap, answer })
    }
}
