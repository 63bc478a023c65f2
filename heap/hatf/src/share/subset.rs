//! Forwards a subset of the blocks in a trace. A block is forwarded from its allocation to its end.

use hatf_lab::AddressMap;

use hatf_trace::Result;
use hatf_trace::event::{Call, Event, EventKind, EventSink, UserMetadata};

/// A selection of events.
pub trait Wanted {
    /// Returns whether the block that this call allocates is selected.
    fn block(&mut self, event: &Event<'_>, call: &Call) -> bool;

    /// Returns whether a record that concerns no block is selected.
    fn other(&mut self, event: &Event<'_>) -> bool;

    /// Returns whether a failed call is selected. Called only for calls without a block, and for calls whose block is
    /// not selected.
    fn failed(&mut self, event: &Event<'_>) -> bool {
        self.other(event)
    }
}

/// A sink that forwards the events of selected blocks.
///
/// If only the new block of a realloc is selected, the realloc is forwarded without its old block. If only the old
/// block is selected, a free is forwarded. The recorder does the same when it samples.
pub struct Subset<'s, W> {
    wanted: W,
    /// Live blocks that were forwarded, with their sizes.
    live: AddressMap<u64>,
    sink: &'s mut dyn EventSink,
    /// The numbers of forwarded blocks and bytes. `all` contains the numbers of all blocks and bytes in the trace.
    passed: (u64, u64),
    all: (u64, u64),
}

impl<'s, W: Wanted> Subset<'s, W> {
    /// Creates a subset that forwards to this sink.
    pub fn new(wanted: W, sink: &'s mut dyn EventSink) -> Self {
        Self { wanted, live: AddressMap::default(), sink, passed: (0, 0), all: (0, 0) }
    }

    /// Returns the numbers of blocks and bytes forwarded, followed by the numbers of blocks and bytes in the trace.
    #[must_use]
    pub fn counts(&self) -> [(u64, u64); 2] {
        [self.passed, self.all]
    }

    /// Returns the selection.
    pub fn wanted(&self) -> &W {
        &self.wanted
    }

    /// Returns a mutable reference to the selection.
    pub fn wanted_mut(&mut self) -> &mut W {
        &mut self.wanted
    }

    /// Processes a call that returned a block.
    fn begin(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        let size = if call.size == hatf_trace::event::UNKNOWN_SIZE { 0 } else { call.size };
        let had = call.old != 0 && self.live.remove(&call.old).is_some();
        let wants = self.wanted.block(event, call);
        self.all = (self.all.0 + 1, self.all.1.saturating_add(size));
        // A block whose end is missing in the trace ends when another block begins at its address.
        let overlaid = call.address != call.old && self.live.remove(&call.address).is_some();
        if !wants {
            let ended = [(had, call.old), (overlaid, call.address)].into_iter().filter(|(was, _)| *was);
            for (_, address) in ended {
                self.sink.event(&Event { kind: EventKind::Free { address }, ..*event })?;
            }
            return Ok(());
        }
        self.live.insert(call.address, size);
        self.passed = (self.passed.0 + 1, self.passed.1.saturating_add(size));
        let call = Call { old: if had { call.old } else { 0 }, ..*call };
        let kind =
            if let EventKind::ReallocEnd(_) = event.kind { EventKind::ReallocEnd(call) } else { EventKind::Call(call) };
        self.sink.event(&Event { kind, ..*event })
    }
}

impl<W: Wanted> EventSink for Subset<'_, W> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let passes = match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) if call.address != 0 => {
                return self.begin(event, &call);
            }
            EventKind::Call(call) if call.old_is_gone() => self.live.remove(&call.old).is_some(),
            // The call has no block, because the trace contains only sizes or because the call failed.
            EventKind::Call(call) | EventKind::ReallocEnd(call) => {
                call.address == 0 && call.old == 0 && call.size > 0 && self.wanted.block(event, &call)
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                self.live.remove(&address).is_some()
            }
            EventKind::Failed(call) => self.live.contains_key(&call.old) || self.wanted.failed(event),
            EventKind::Accesses(accesses) => self.live.contains_key(&accesses.address),
            EventKind::LastAccess { address, .. } | EventKind::Untouched { address, .. } => {
                self.live.contains_key(&address)
            }
            EventKind::DestroyHeap => true,
            EventKind::Image { .. } | EventKind::Recording { on: true } => {
                self.live.clear();
                true
            }
            _ => self.wanted.other(event),
        };
        if passes { self.sink.event(event) } else { Ok(()) }
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sink.user_metadata(user_metadata)
    }
}
