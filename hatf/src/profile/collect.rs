//! What a profile has of a trace beside its blocks: the memory map, and what program it is of.

use std::collections::HashSet;

use hatf_lab::Observer;

use crate::Result;
use crate::event::{Event, EventKind, EventSink, UserMetadata};
use crate::lab::{HeapTracker, ObjectsOnly};
use crate::stacks::{Module, Modules};

/// Passes events on, and keeps each module that was loaded.
pub struct Collect<O> {
    calls: HeapTracker<ObjectsOnly<O>>,
    modules: Modules,
    seen: HashSet<(u64, u64, u64, String)>,
    loaded: Vec<Module>,
    about: UserMetadata,
}

/// The user metadata of a trace that its profile has, too.
const ABOUT: [&str; 3] = ["program", "command", "sampling"];

impl<O: Observer> Collect<O> {
    /// Gives calls to an experiment.
    #[must_use]
    pub fn new(calls: HeapTracker<ObjectsOnly<O>>) -> Self {
        let (modules, seen, loaded) = (Modules::default(), HashSet::new(), Vec::new());
        Self { calls, modules, seen, loaded, about: UserMetadata::new() }
    }

    /// Returns the calls, the modules in the order in which they were first loaded, and the user metadata.
    #[must_use]
    pub fn into_parts(self) -> (HeapTracker<ObjectsOnly<O>>, Vec<Module>, UserMetadata) {
        (self.calls, self.loaded, self.about)
    }
}

impl<O: Observer> EventSink for Collect<O> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.modules.note(&event.kind);
        if let EventKind::ModuleLoad { .. } = event.kind
            && let Some(module) = self.modules.last()
        {
            let number = self.loaded.len();
            if self.seen.insert((module.start, module.end, module.bias, module.path.clone())) {
                self.loaded.push(Module { number, ..module.clone() });
            }
        }
        self.calls.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.calls.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let about = user_metadata.iter().filter(|(key, value)| ABOUT.contains(&key.as_str()) && !value.is_null());
        self.about.extend(about.map(|(key, value)| (key.clone(), value.clone())));
        self.calls.user_metadata(user_metadata)
    }
}
