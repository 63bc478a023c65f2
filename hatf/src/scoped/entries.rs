//! The functions or phases that a trace says the beginnings and ends of, for [`hatf_lab::regions::infer`].

use std::collections::HashMap;

use hatf_lab::Objects;
use hatf_lab::regions::infer::{MOST_DEPTH, Nobody, ScopeObserver, ScopeTable, Scoped};

use super::infer::Names;
use crate::Result;
use crate::event::{Event, EventKind, EventSink, UserMetadata};
use crate::lab::Calls;

/// What encloses allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Functions of a program that `hatf cc --functions` built.
    Functions,
    /// Phases, and what follows a mark up to the next or to the end of the phase that it is in; each for its own thread.
    Phases,
}

/// How much a trace says of what encloses allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Functions that were entered.
    pub functions: u64,
    /// Phases that began, and marks.
    pub phases: u64,
    /// Events that are missing.
    pub lost: u64,
}

impl Said {
    /// Learns from an event.
    pub fn note(&mut self, kind: &EventKind<'_>) {
        match *kind {
            EventKind::Enter { .. } => self.functions += 1,
            EventKind::PhaseBegin { .. } | EventKind::Mark { .. } => self.phases += 1,
            EventKind::Lost { events } => self.lost = self.lost.saturating_add(events),
            _ => {}
        }
    }
}

/// Gives an observer events of objects, and when the scopes that they are allocated in begin and end.
///
/// A function's scope is its address. A phase's is an even number, and a mark's an odd one.
pub struct Entries<O> {
    calls: Calls<Scoped<O>>,
    by: By,
    /// Numbers of names, and the other way.
    numbers: HashMap<Vec<u8>, u64>,
    names: Vec<String>,
    /// Phases that a thread is in.
    inside: HashMap<u64, Vec<u64>>,
}

impl Entries<Nobody> {
    /// Starts the first pass.
    #[must_use]
    pub fn learn(by: By) -> Self {
        Self::of(Scoped::learn(), by)
    }

    /// Ends the first pass.
    #[must_use]
    pub fn finish(self) -> Names {
        let Self { calls, by, names, .. } = self;
        let (_, mut stacks, scoped) = calls.into_parts();
        let table = scoped.finish();
        let mut name = |scope: u64| match by {
            By::Functions => {
                let number = stacks.number(&[scope]);
                stacks.get(number).filter_map(|location| location.names().last()).next().unwrap_or_default()
            }
            By::Phases => {
                let kind = if scope.is_multiple_of(2) { "phase" } else { "mark" };
                let name = usize::try_from(scope / 2).ok().and_then(|number| names.get(number));
                format!("{kind} {}", name.map_or("", String::as_str))
            }
        };
        let mut names = HashMap::new();
        for scope in table.all_scopes() {
            names.entry(scope).or_insert_with(|| name(scope));
        }
        Names::of_scopes(stacks, table, names)
    }
}

impl<O: ScopeObserver> Entries<O> {
    /// Starts a pass over the trace that the table was learnt from.
    pub fn new(table: ScopeTable, by: By, observer: O) -> Self {
        Self::of(Scoped::new(table, observer), by)
    }

    fn of(scoped: Scoped<O>, by: By) -> Self {
        Self { calls: Calls::new(scoped), by, numbers: HashMap::new(), names: Vec::new(), inside: HashMap::new() }
    }

    /// Returns the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        self.calls.observer_mut().observer_mut()
    }

    /// Ends the pass: returns the sites of live objects, and the observer.
    pub fn into_parts(self) -> (Vec<u64>, O) {
        let (objects, _, scoped): (Objects, _, Scoped<O>) = self.calls.into_parts();
        (objects.live().map(|object| scoped.site(object)).collect(), scoped.into_inner())
    }

    fn number(&mut self, name: &[u8]) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u64;
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.to_vec(), number);
        number
    }

    /// A phase begins, or a mark was passed.
    fn begin(&mut self, thread: u64, scope: u64) -> Result<()> {
        let inside = self.inside.entry(thread).or_default();
        if inside.len() < MOST_DEPTH {
            inside.push(scope);
            self.calls.observer_mut().enter(thread, scope)?;
        }
        Ok(())
    }

    /// A phase ends, and with it those that began in it.
    fn end(&mut self, thread: u64, scope: u64) -> Result<()> {
        let Some(inside) = self.inside.get_mut(&thread) else { return Ok(()) };
        let Some(place) = inside.iter().rposition(|inner| *inner == scope) else { return Ok(()) };
        for _ in inside.drain(place..) {
            self.calls.observer_mut().leave(thread)?;
        }
        Ok(())
    }

    fn scope(&mut self, thread: u64, kind: &EventKind<'_>) -> Result<()> {
        match (*kind, self.by) {
            (EventKind::Enter { function }, By::Functions) => self.calls.observer_mut().enter(thread, function)?,
            (EventKind::Leave, By::Functions) => drop(self.calls.observer_mut().leave(thread)?),
            (EventKind::PhaseBegin { name }, By::Phases) => {
                let scope = self.number(name) * 2;
                self.begin(thread, scope)?;
            }
            (EventKind::PhaseEnd { name }, By::Phases) => {
                let scope = self.number(name) * 2;
                self.end(thread, scope)?;
            }
            (EventKind::Mark { name }, By::Phases) => {
                let last = self.inside.get(&thread).and_then(|inside| inside.last()).copied();
                if let Some(mark) = last.filter(|scope| !scope.is_multiple_of(2)) {
                    self.end(thread, mark)?;
                }
                let scope = self.number(name) * 2 + 1;
                self.begin(thread, scope)?;
            }
            (EventKind::ThreadEnd, _) => {
                self.inside.remove(&thread);
                self.calls.observer_mut().end_thread(thread)?;
            }
            (EventKind::Image { .. } | EventKind::Recording { on: true }, _) => {
                self.inside.clear();
                self.calls.observer_mut().end_threads()?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl<O: ScopeObserver> EventSink for Entries<O> {
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
