//! Owned copies of events.

use crate::event::{Event, EventKind, Stack};

/// An event that owns its stack, name and attributes.
///
/// # Examples
///
/// The copy remains valid after the source has reused its buffers:
///
/// ```
/// use hatf_trace::{Event, EventKind, OwnedEvent};
///
/// let name = b"ready".to_vec();
/// let owned = OwnedEvent::of(&Event::new(EventKind::Mark { name: &name }));
/// drop(name);
/// assert_eq!(owned.get().kind, EventKind::Mark { name: b"ready" });
/// ```
#[derive(Clone, Debug)]
pub struct OwnedEvent {
    event: Event<'static>,
    name: Vec<u8>,
    stack: Vec<u64>,
    attributes: Vec<u8>,
}

impl Default for OwnedEvent {
    fn default() -> Self {
        Self { event: Event::new(EventKind::CreateHeap), name: Vec::new(), stack: Vec::new(), attributes: Vec::new() }
    }
}

impl OwnedEvent {
    /// Copies an event.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Self {
        let mut owned = Self::default();
        owned.set(event);
        owned
    }

    /// Replaces the event with a copy of another event, reusing the memory.
    pub fn set(&mut self, event: &Event<'_>) {
        let Event { kind, time, thread, heap, stack, attributes } = *event;
        let (kind, name) = kind.nameless();
        self.event = Event { kind, time, thread, heap, stack: Stack::NONE, attributes: &[] };
        replace(&mut self.name, name);
        replace(&mut self.stack, &stack);
        replace(&mut self.attributes, attributes);
    }

    /// Returns the event.
    #[must_use]
    pub fn get(&self) -> Event<'_> {
        let kind = self.event.kind.named(&self.name);
        Event { kind, stack: Stack::from(&self.stack), attributes: &self.attributes, ..self.event }
    }
}

fn replace<T: Copy>(kept: &mut Vec<T>, by: &[T]) {
    kept.clear();
    kept.extend_from_slice(by);
}
