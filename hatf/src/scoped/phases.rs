//! The phases and marks that the threads of a program are in.

use std::collections::HashMap;

use hatf_lab::regions::infer::MOST_DEPTH;

use crate::event::EventKind;

/// Follows phases and marks. A phase's scope is an even number, and a mark's an odd one.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    /// Numbers of names, and the other way.
    numbers: HashMap<Vec<u8>, u64>,
    names: Vec<String>,
    /// Scopes that a thread is in.
    inside: HashMap<u64, Vec<u64>>,
}

/// What an event does to the scopes of its thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseChange {
    /// How many end: the innermost ones.
    pub(super) ended: usize,
    /// Then this one begins.
    pub(super) begun: Option<u64>,
}

impl Phases {
    /// Learns from an event of a thread.
    pub(super) fn note(&mut self, thread: u64, kind: &EventKind<'_>) -> PhaseChange {
        match *kind {
            EventKind::PhaseBegin { name } => {
                let scope = self.number(name) * 2;
                PhaseChange { ended: 0, begun: self.begin(thread, scope) }
            }
            EventKind::PhaseEnd { name } => {
                let scope = self.number(name) * 2;
                PhaseChange { ended: self.end(thread, scope), begun: None }
            }
            EventKind::Mark { name } => {
                let last = self.inside.get(&thread).and_then(|inside| inside.last()).copied();
                let before = last.filter(|scope| !scope.is_multiple_of(2));
                let ended = before.map_or(0, |mark| self.end(thread, mark));
                let scope = self.number(name) * 2 + 1;
                PhaseChange { ended, begun: self.begin(thread, scope) }
            }
            EventKind::ThreadEnd => {
                self.inside.remove(&thread);
                PhaseChange::default()
            }
            EventKind::Image { .. } | EventKind::Recording { on: true } => {
                self.inside.clear();
                PhaseChange::default()
            }
            _ => PhaseChange::default(),
        }
    }

    /// Returns what a scope is called.
    pub(super) fn name(&self, scope: u64) -> String {
        let kind = if scope.is_multiple_of(2) { "phase" } else { "mark" };
        let name = usize::try_from(scope / 2).ok().and_then(|number| self.names.get(number));
        format!("{kind} {}", name.map_or("", String::as_str))
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

    fn begin(&mut self, thread: u64, scope: u64) -> Option<u64> {
        let inside = self.inside.entry(thread).or_default();
        (inside.len() < MOST_DEPTH).then(|| {
            inside.push(scope);
            scope
        })
    }

    /// A phase ends, and with it those that began in it.
    fn end(&mut self, thread: u64, scope: u64) -> usize {
        let Some(inside) = self.inside.get_mut(&thread) else { return 0 };
        let place = inside.iter().rposition(|inner| *inner == scope);
        place.map_or(0, |place| inside.drain(place..).count())
    }
}
