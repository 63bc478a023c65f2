//! The blocks that are live at a position in a trace, represented by the calls that allocated them.

use hatf_lab::{Change, Heap, Object, ObjectEvent, Observer};

use super::context::Context;
use hatf_trace::OwnedEvent;
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function};

/// Data about the call that allocated a block, other than the data in [`Object`].
#[derive(Clone, Copy, Debug)]
struct Made {
    record: u64,
    function: Function,
    detail: u64,
    usable: u64,
}

/// An [`Observer`] that tracks the call that allocated each live block, and the rest of the current state.
#[derive(Debug, Default)]
pub(super) struct Carried {
    context: Context,
    /// Calls by slot.
    made: Vec<Option<Made>>,
    /// The slot of the block that the current record allocates.
    begun: Option<u32>,
    records: u64,
}

/// The amount of carried-over state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// The number of heaps that belonged to programs that ended earlier. This number is subtracted from the numbers of
    /// later heaps.
    pub(super) heaps: u64,
}

/// The records that restore a state.
pub(super) struct Restored {
    heap: Heap,
    blocks: Vec<(Made, Object)>,
    holding: Vec<(u64, OwnedEvent)>,
    amount: Amount,
}

impl Carried {
    /// Returns the records that restore the current state.
    pub(super) fn restored(self, heap: Heap) -> Restored {
        let Self { context, made, .. } = self;
        let made = |object: &Object| made.get(object.slot as usize).copied().flatten();
        let mut blocks: Vec<(Made, Object)> =
            heap.objects.live().filter_map(|object| Some((made(&object)?, object))).collect();
        blocks.sort_unstable_by_key(|(made, object)| (made.record, object.number));
        let heaps = context.heaps_before().unwrap_or(0);
        let holding = context.records();
        let amount = Amount {
            blocks: blocks.len() as u64,
            bytes: blocks.iter().fold(0, |bytes, (_, object)| bytes.saturating_add(object.size)),
            records: (blocks.len() + holding.len()) as u64,
            heaps,
        };
        Restored { heap, blocks, holding, amount }
    }
}

impl Restored {
    /// Returns the amount of state.
    pub(super) fn amount(&self) -> Amount {
        self.amount
    }

    /// Passes the records to a sink, in order and with their original times.
    pub(super) fn give(&self, sink: &mut dyn EventSink) -> hatf_trace::Result<()> {
        let Self { heap, blocks, holding, amount } = self;
        let mut put =
            |event: &Event<'_>| sink.event(&Event { heap: event.heap.saturating_sub(amount.heaps), ..*event });
        let mut holding = holding.iter().peekable();
        let mut stack = Vec::new();
        for (Made { record, function, detail, usable }, object) in blocks {
            while let Some((_, event)) = holding.next_if(|(number, _)| number < record) {
                put(&event.get())?;
            }
            stack.clear();
            stack.extend(heap.stacks.get(object.site).map(|location| location.address));
            let Object { address, size, time, thread, heap, .. } = *object;
            let (function, detail, usable) = (*function, *detail, *usable);
            let kind = EventKind::Call(Call { function, detail, size, usable, old: 0, address });
            put(&Event { kind, time, thread, heap, stack: (&stack).into(), attributes: &[] })?;
        }
        holding.try_for_each(|(_, event)| put(&event.get()))
    }
}

impl Observer for Carried {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        self.context.object(event);
        let slot = event.object.slot;
        self.begun = (event.change == Change::Allocated).then_some(slot);
        if let Some(made) = self.made.get_mut(slot as usize) {
            *made = None;
        }
        Ok(())
    }

    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        self.records += 1;
        if let (Some(slot), EventKind::Call(call) | EventKind::ReallocEnd(call)) = (self.begun.take(), record.kind) {
            let slot = slot as usize;
            if slot >= self.made.len() {
                self.made.resize(slot + 1, None);
            }
            let Call { function, detail, usable, .. } = call;
            if let Some(made) = self.made.get_mut(slot) {
                *made = Some(Made { record: self.records, function, detail, usable });
            }
        }
        self.context.note(self.records, record);
        Ok(())
    }
}
