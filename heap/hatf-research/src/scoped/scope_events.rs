//! Input for [`crate::regions::infer`] from the beginnings and ends of functions or phases in a trace.

use std::collections::HashMap;

use crate::regions::infer::{Nobody, ScopeObserver, ScopeTable, Scoped};
use hatf_lab::{Heap, ObjectEvent, Observer, Result};

use super::infer::Names;
use super::phases::{PhaseChange, Phases};
use hatf_trace::event::{Event, EventKind};
use hatf_trace::stacks::Stacks;

/// The kind of scope that encloses allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// Functions of a program built by `hatf cc --functions`.
    Functions,
    /// Phases, and the intervals from each mark to the next mark or to the end of the enclosing phase. They are tracked
    /// separately for each thread.
    Phases,
}

/// A pass that notifies an observer of object events, and of the beginnings and ends of the scopes in which objects are
/// allocated.
///
/// The scope of a function is its address.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_research::regions::infer::Enclosing;
/// use hatf_research::scoped::{ScopeEvents, ScopeKind};
/// use hatf_trace::{Event, EventKind, EventSink};
///
/// let (begin, end) = (EventKind::PhaseBegin { name: b"load" }, EventKind::PhaseEnd { name: b"load" });
/// let events = [Event::new(begin), Event::malloc(0x1000, 24), Event::free(0x1000), Event::new(end)];
/// let mut tracker = HeapTracker::new(ScopeEvents::learn(ScopeKind::Phases));
/// events.iter().try_for_each(|event| tracker.event(event))?;
/// let (heap, learn) = tracker.into_parts();
/// let names = learn.finish(heap.stacks);
///
/// let table = names.scopes().ok_or("no scopes")?.clone();
/// let enclosing = Enclosing::new(table.contexts()?);
/// let mut tracker = HeapTracker::new(ScopeEvents::new(table, ScopeKind::Phases, enclosing));
/// events.iter().try_for_each(|event| tracker.event(event))?;
/// let (heap, scopes) = tracker.into_parts();
/// let (live, enclosing) = scopes.into_parts(&heap);
/// let enclosed = enclosing.finish(live.into_iter());
/// // The block ends in the phase.
/// assert_eq!(enclosed.contexts.depth(enclosed.sites[1].context), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScopeEvents<O> {
    scoped: Scoped<O>,
    scopes: ScopeKind,
    phases: Phases,
}

impl ScopeEvents<Nobody> {
    /// Starts the first pass, which builds the table of scopes.
    #[must_use]
    pub fn learn(scopes: ScopeKind) -> Self {
        Self::of(Scoped::learn(), scopes)
    }

    /// Ends the first pass. `stacks` are the stacks of the trace.
    #[must_use]
    pub fn finish(self, mut stacks: Stacks) -> Names {
        let Self { scoped, scopes, phases } = self;
        let table = scoped.finish();
        let mut name = |scope: u64| match scopes {
            ScopeKind::Functions => {
                let number = stacks.number(&[scope]);
                stacks.get(number).filter_map(|location| location.names().last()).next().unwrap_or_default()
            }
            ScopeKind::Phases => phases.name(scope),
        };
        let mut names = HashMap::new();
        for scope in table.all_scopes() {
            names.entry(scope).or_insert_with(|| name(scope));
        }
        Names::of_scopes(stacks, table, names)
    }
}

impl<O: ScopeObserver> ScopeEvents<O> {
    /// Starts a pass over the trace from which the table was built.
    pub fn new(table: ScopeTable, scopes: ScopeKind, observer: O) -> Self {
        Self::of(Scoped::new(table, observer), scopes)
    }

    fn of(scoped: Scoped<O>, scopes: ScopeKind) -> Self {
        Self { scoped, scopes, phases: Phases::default() }
    }

    /// Returns the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        self.scoped.observer_mut()
    }

    /// Ends the pass. Returns the sites of live objects, and the observer.
    #[must_use]
    pub fn into_parts(self, heap: &Heap) -> (Vec<u64>, O) {
        (heap.objects.live().map(|object| self.scoped.site(&object)).collect(), self.scoped.into_inner())
    }
}

impl<O: ScopeObserver> Observer for ScopeEvents<O> {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.scoped.event(event)
    }

    /// Handles a record. Objects that end with an image end before the scopes of the image.
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
        let Event { thread, kind, .. } = record;
        let thread = *thread;
        if self.scopes == ScopeKind::Phases {
            let PhaseChange { ended, begun } = self.phases.note(thread, kind);
            for _ in 0..ended {
                self.scoped.leave(thread)?;
            }
            begun.map_or(Ok(()), |scope| self.scoped.enter(thread, scope))?;
        }
        match (*kind, self.scopes) {
            (EventKind::Enter { function }, ScopeKind::Functions) => self.scoped.enter(thread, function)?,
            (EventKind::Leave, ScopeKind::Functions) => drop(self.scoped.leave(thread)?),
            (EventKind::ThreadEnd, _) => {
                self.scoped.end_thread(thread)?;
            }
            (EventKind::Image { .. } | EventKind::Recording { on: true }, _) => {
                self.scoped.end_threads()?;
            }
            _ => {}
        }
        Ok(())
    }
}
