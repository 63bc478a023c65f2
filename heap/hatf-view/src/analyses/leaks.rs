//! Blocks live at the end of a trace.

use hatf_lab::leaks::{Leaked, Leaks as Collecting};
use hatf_lab::{Heap, ObjectEvent, Observer};
use hatf_trace::event::{Event, UserMetadata};
use hatf_trace::{Error, Result};
use metatf_page::Page;

use super::{Analysis, Answer, Options, Running, Traits, View};
use crate::analysis::EndObserver;
use crate::report::{Leaks, LeaksOf, Startup};
use crate::suppress::Suppressions;

pub(super) const ROW: Analysis = Analysis::new::<AtEnd>(
    "leaks",
    "What leaks, since when, and is it growing?",
    "Blocks live at the end, their age, and whether they grow",
    "leaks.md",
)
.with(Traits { own_command: true, stacks: true, functions: true, ..Traits::NONE });

#[derive(clap::Args)]
struct AtEnd {}

impl Options for AtEnd {
    fn start(self, _: usize) -> Result<Box<dyn Running>> {
        let (known, none) = (Suppressions::known(), Suppressions::default());
        let end = EndObserver::new();
        Ok(Box::new(Collected { leaks: Collecting::new(), end, leaked: None, known, none }))
    }
}

struct Collected {
    leaks: Collecting,
    end: EndObserver,
    /// The blocks that were live at the end; `None` until the trace has ended.
    leaked: Option<Leaked>,
    known: Suppressions,
    none: Suppressions,
}

impl Observer for Collected {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.leaks.event(event)
    }

    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.end.record(record, heap)?;
        self.leaks.record(record, heap)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.end.user_metadata(user_metadata);
    }

    fn sampled(&mut self, mean: u64) {
        self.leaks.sampled(mean);
    }
}

impl Running for Collected {
    fn end(&mut self, heap: &Heap) -> Result<()> {
        self.leaked = Some(std::mem::take(&mut self.leaks).report(heap));
        Ok(())
    }

    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        let ended = self.leaked.as_ref().zip(view.functions);
        let (leaked, grouped) = ended.ok_or_else(|| Error::Usage("the analysis has not ended".to_owned()))?;
        let View { name, heap, tables, .. } = *view;
        let (places, startup, is_end) = (grouped.places, Startup::guess(leaked), true);
        let (suppressions, known) = (&self.none, &self.known);
        let ending = self.end.ending();
        let of = LeaksOf { name, heap, leaked, is_end, ending, places, startup, suppressions, known };
        Ok(Box::new(Leaks::new(of, tables)))
    }
}

impl Answer for Leaks<'_> {
    fn describe(&self, page: &mut Page) {
        page.heading("LEAKS");
        Leaks::describe(self, page);
    }
}
