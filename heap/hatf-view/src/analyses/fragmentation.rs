//! Pages held at the end of a trace.

use hatf_lab::fragmentation::{Held, Moment};
use hatf_trace::Result;
use metatf_page::Page;

use super::{Analysis, Answer, Options, Running, Traits, View};
use crate::report::{Fragmentation, ReadTrace, default_moments};

pub(super) const ROW: Analysis = Analysis::new::<AtEnd>(
    "fragmentation",
    "What keeps pages from being freed?",
    "Pages in use over time, and the blocks that hold them at the end",
    "fragmentation.md",
)
.with(Traits { own_command: true, stacks: true, ..Traits::NONE });

#[derive(clap::Args)]
struct AtEnd {}

impl Options for AtEnd {
    fn start(self, _: usize) -> Result<Box<dyn Running>> {
        Ok(Box::new(Held::new()))
    }
}

impl Running for Held {
    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        Ok(Box::new(Fragmentation::at_end(view.name.to_owned(), view.heap, self)))
    }

    fn moments(&self, view: &View<'_>, read: &mut ReadTrace<'_>) -> Result<Vec<(String, Moment)>> {
        let Some(grouped) = view.functions else { return Ok(Vec::new()) };
        default_moments(read, view.heap, grouped.places, self)
    }
}

impl Answer for Fragmentation {
    fn describe(&self, page: &mut Page) {
        Fragmentation::describe(self, page);
    }
}
