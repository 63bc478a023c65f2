//! The functions or phases that a trace says the beginnings and ends of, for [`hatf_lab::regions::infer`].

use std::collections::HashMap;

use hatf_lab::regions::infer::{Nobody, ScopeObserver, ScopeTable, Scoped};

use super::infer::Names;
use super::phases::{Change, Phases};
use crate::Result;
use crate::event::{Event, EventKind, EventSink, UserMetadata};
use crate::lab::{Heap, HeapTracker, ObjectsOnly};

/// What encloses allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// Functions of a program that `hatf cc --functions` built.
    Functions,
    /// Phases, and what follows a mark up to the next or to the end of the phase that it is in; each for its own thread.
    Phases,
}

/// Gives an observer events of objects, and when the scopes that they are allocated in begin and end.
///
/// A function's scope is its address.
pub struct ScopeEvents<O> {
    calls: HeapTracker<ObjectsOnly<Scoped<O>>>,
    scopes: ScopeKind,
    phases: Phases,
}

impl ScopeEvents<Nobody> {
    /// Starts the first pass.
    #[must_use]
    pub fn learn(scopes: ScopeKind) -> Self {
        Self::of(Scoped::learn(), scopes)
    }

    /// Ends the first pass.
    #[must_use]
    pub fn finish(self) -> Names {
        let Self { calls, scopes, phases } = self;
        let (Heap { mut stacks, .. }, ObjectsOnly(scoped)) = calls.into_parts();
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
    /// Starts a pass over the trace that the table was learnt from.
    pub fn new(table: ScopeTable, scopes: ScopeKind, observer: O) -> Self {
        Self::of(Scoped::new(table, observer), scopes)
    }

    fn of(scoped: Scoped<O>, scopes: ScopeKind) -> Self {
        Self { calls: HeapTracker::of_objects(scoped), scopes, phases: Phases::default() }
    }

    /// Returns the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        self.scopes().observer_mut()
    }

    fn scopes(&mut self) -> &mut Scoped<O> {
        &mut self.calls.analysis_mut().0
    }

    /// Ends the pass: returns the sites of live objects, and the observer.
    pub fn into_parts(self) -> (Vec<u64>, O) {
        let (heap, ObjectsOnly(scoped)) = self.calls.into_parts();
        (heap.objects.live().map(|object| scoped.site(object)).collect(), scoped.into_inner())
    }

    fn scope(&mut self, thread: u64, kind: &EventKind<'_>) -> Result<()> {
        if self.scopes == ScopeKind::Phases {
            let Change { ended, begun } = self.phases.note(thread, kind);
            for _ in 0..ended {
                self.scopes().leave(thread)?;
            }
            begun.map_or(Ok(()), |scope| self.scopes().enter(thread, scope))?;
        }
        match (*kind, self.scopes) {
            (EventKind::Enter { function }, ScopeKind::Functions) => self.scopes().enter(thread, function)?,
            (EventKind::Leave, ScopeKind::Functions) => drop(self.scopes().leave(thread)?),
            (EventKind::ThreadEnd, _) => {
                self.scopes().end_thread(thread)?;
            }
            (EventKind::Image { .. } | EventKind::Recording { on: true }, _) => {
                self.scopes().end_threads()?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl<O: ScopeObserver> EventSink for ScopeEvents<O> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        // What ends with an image ends before its scopes do.
        self.calls.event(event)?;
        self.scope(event.thread, &event.kind)
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.calls.user_metadata(user_metadata)
    }
}
