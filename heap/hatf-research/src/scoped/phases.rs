//! The current phases and marks of a program's threads.

use std::collections::HashMap;

use crate::regions::infer::MOST_DEPTH;

use hatf_trace::event::EventKind;

/// A tracker of phases and marks. The scope of a phase is an even number, and the scope of a mark is an odd number.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    /// The number of each name. `names` is the reverse mapping.
    numbers: HashMap<Vec<u8>, u64>,
    names: Vec<String>,
    /// The current scopes of each thread.
    inside: HashMap<u64, Vec<u64>>,
}

/// The effect of an event on the scopes of its thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PhaseChange {
    /// The number of scopes that end, innermost first.
    pub(super) ended: usize,
    /// The scope that begins afterwards, if any.
    pub(super) begun: Option<u64>,
}

impl Phases {
    /// Processes an event of a thread.
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

    /// Returns the name of a scope.
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

    /// Ends a phase and the scopes that began during the phase. Returns the number of ended scopes.
    fn end(&mut self, thread: u64, scope: u64) -> usize {
        let Some(inside) = self.inside.get_mut(&thread) else { return 0 };
        let place = inside.iter().rposition(|inner| *inner == scope);
        place.map_or(0, |place| inside.drain(place..).count())
    }
}
