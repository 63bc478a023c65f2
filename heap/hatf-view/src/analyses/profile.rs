//! Heap profiles in memory.

use hatf_lab::profile::{Column, ContextKey, Merged, Profiled, Profiler, ProfilerSettings, Sizes, TICK, Thresholds};
use hatf_lab::{Heap, ObjectEvent, Observer};
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::{Module, Stacks};
use hatf_trace::{Error, Result};
use metatf_page::Page;

use super::{Analysis, Answer, Options, Running, Traits, View};
use crate::profile::{HeapProfile, ProfileContext};
use crate::report::{ProfileReport, ProfileTable, Shows, SiteTables};

pub(super) const ROW: Analysis = Analysis::new::<InMemory>(
    "profile",
    "What are the sizes, lifetimes and overlaps in each calling context?",
    "Calling contexts of the heap profile",
    "profile.md",
)
.with(Traits { own_command: true, stacks: true, ..Traits::NONE });

#[derive(clap::Args)]
struct InMemory {}

impl Options for InMemory {
    fn start(self, _: usize) -> Result<Box<dyn Running>> {
        let profiler = Profiler::new(ProfilerSettings::default(), Sizes::default(), Merged::new())?;
        Ok(Box::new(Profiling { profiler: Some(profiler), profile: None }))
    }
}

struct Profiling {
    /// The profiler; `None` after the trace has ended.
    profiler: Option<Profiler<Merged>>,
    profile: Option<HeapProfile>,
}

impl Observer for Profiling {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.profiler.event(event)
    }

    fn record(&mut self, record: &hatf_trace::Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        self.profiler.record(record, heap)
    }
}

impl Running for Profiling {
    fn end(&mut self, heap: &Heap) -> Result<()> {
        let profiled = self.profiler.take().map(|profiler| profiler.finish(heap.objects.live())).transpose()?;
        let sampling = heap.sampling.map(|mean| ("sampling".to_owned(), mean.into()));
        let about = sampling.into_iter().collect();
        self.profile = profiled.map(|profiled| in_memory(profiled, &heap.stacks, Vec::new(), about));
        Ok(())
    }

    fn answer<'v>(&'v self, view: &View<'v>) -> Result<Box<dyn Answer + 'v>> {
        let profile = self.profile.as_ref().ok_or_else(|| Error::Usage("the analysis has not ended".to_owned()))?;
        Ok(Box::new(whole(view.name.to_owned(), profile, view.tables)))
    }
}

impl Answer for ProfileReport<'_> {
    fn describe(&self, page: &mut Page) {
        ProfileReport::describe(self, page);
    }
}

/// Returns the stack or the size class of a context.
#[must_use]
pub fn context(key: ContextKey, stacks: &Stacks) -> ProfileContext {
    match key {
        ContextKey::Stack(site) => ProfileContext::Stack(stacks.frames(site).to_vec()),
        ContextKey::Size { class, thread } => ProfileContext::Size { exponent: class.into(), thread },
    }
}

/// Builds a profile in memory from a profiler with the default tick length.
#[must_use]
pub fn in_memory(
    profiled: Profiled<Merged>,
    stacks: &Stacks,
    modules: Vec<Module>,
    about: UserMetadata,
) -> HeapProfile {
    let contexts = (1..).zip(&profiled.contexts).map(|(number, key)| (number, context(*key, stacks))).collect();
    let (locations, infos) = (stacks.locations().to_vec(), profiled.sink.finish());
    HeapProfile { modules, locations, contexts, infos, tick: TICK, about }
}

/// Returns the report of a merged profile, with all contexts sorted by bytes in descending order.
fn whole(title: String, profile: &HeapProfile, SiteTables { rows, depth, .. }: SiteTables) -> ProfileReport<'_> {
    let table = ProfileTable { by: Column::default(), reverse: false, columns: Vec::new(), rows, depth };
    let thresholds = Thresholds::default();
    ProfileReport { title, entries: profile.infos.len(), profile, thresholds, shows: Shows::All, table }
}
