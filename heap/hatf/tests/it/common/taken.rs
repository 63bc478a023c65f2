//! A sink that keeps its input.

use hatf_trace::event::{Event, EventSink, UserMetadata};
use hatf_trace::{OwnedEvent, Result};

/// Keeps all events and user metadata.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) events: Vec<OwnedEvent>,
    pub(crate) user_metadata: UserMetadata,
}

impl EventSink for Taken {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.events.push(OwnedEvent::of(event));
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.user_metadata.extend(user_metadata.clone());
        Ok(())
    }
}
