//! Allocations by call stack. The report counts allocations, so this analysis observes nothing.

use hatf_lab::Observer;
use hatf_lab::sites::{Measure, ranked};
use hatf_trace::Result;
use metatf_page::Page;

use super::{Analysis, Answer, Options, Running, Traits, View};
use crate::report::Sites;

pub(super) const ROW: Analysis =
    Analysis::new::<Counted>("sites", "Which code allocates the memory?", "Allocations by call stack", "stacks.md")
        .with(Traits { own_command: true, stacks: true, functions: true, sizes_only: true });

#[derive(clap::Args)]
struct Counted {}

impl Options for Counted {
    fn start(self, _: usize) -> Result<Box<dyn Running>> {
        Ok(Box::new(self))
    }
}

impl Observer for Counted {}

impl Running for Counted {
    fn shown(&self, view: &View<'_>) -> Option<Vec<u64>> {
        let first = |measure| ranked(view.counts, measure, false).into_iter().take(view.tables.rows);
        Some(Measure::ALL.into_iter().flat_map(first).map(|(site, _)| site as u64).collect())
    }

    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        let View { name, heap, tables, counts, functions } = *view;
        Ok(Box::new(Sites::all(name.to_owned(), heap, counts, functions, tables)))
    }
}

impl Answer for Sites<'_> {
    fn describe(&self, page: &mut Page) {
        Sites::describe(self, page);
    }
}
