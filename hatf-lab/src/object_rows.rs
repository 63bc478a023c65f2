//! One row an object, as tables have them.
//!
//! Rows come in the order in which objects end, so memory is bounded by the objects live at once; those that are live at the end of the
//! trace come last, in the order of their allocation.

use hatf_trace::event::{Call, Function};
use hatf_trace::{Event, EventKind};

use crate::Result;
use crate::heap::Heap;
use crate::objects::{Cause, Change, Object, ObjectEvent};
use crate::observer::Observer;

/// Rows that are given at once.
pub const ROWS: usize = 8192;

/// An object with all that a trace says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// The object.
    pub object: Object,
    /// Bytes that it really had; 0: not known.
    pub usable: u64,
    /// The function that allocated it.
    pub function: Function,
    /// Its end; `None`: it is live at the end of the trace.
    pub end: Option<End>,
}

/// The end of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its tick.
    pub tick: u64,
    /// When, in nanoseconds.
    pub time: u64,
    /// The thread that freed it; where it was not freed, that which allocated it.
    pub thread: u64,
    /// Why it ended.
    pub cause: Cause,
    /// Bytes that were allocated after it, while it was live.
    pub allocated_meanwhile: u64,
}

/// What is known of an allocation beside its [`Object`].
#[derive(Clone, Copy, Debug)]
struct Allocation {
    usable: u64,
    function: Function,
}

const UNKNOWN: Allocation = Allocation { usable: 0, function: Function::Malloc };

/// An [`Observer`] that makes a row of each object and gives them in batches, with the heap as it is then.
#[derive(Debug)]
pub struct ObjectRows<F> {
    rows: Vec<ObjectRow>,
    /// By slot.
    allocations: Vec<Allocation>,
    /// The slot of the object that was allocated last.
    last: u32,
    allocated: u64,
    give: F,
}

impl<F: FnMut(&[ObjectRow], &Heap) -> Result<()>> ObjectRows<F> {
    /// Starts with nothing.
    pub fn new(give: F) -> Self {
        Self { rows: Vec::with_capacity(ROWS), allocations: Vec::new(), last: 0, allocated: 0, give }
    }

    /// Gives the rows that are left, and those of the objects that are live.
    ///
    /// # Errors
    /// Those of what takes them.
    pub fn finish(mut self, heap: &Heap) -> Result<()> {
        self.send(heap)?;
        let mut live: Vec<Object> = heap.objects.live().collect();
        live.sort_unstable_by_key(|object| object.number);
        for objects in live.chunks(ROWS) {
            let rows = objects.iter().map(|object| self.row(*object, None));
            let rows: Vec<_> = rows.collect();
            (self.give)(&rows, heap)?;
        }
        Ok(())
    }

    #[inline]
    fn row(&self, object: Object, end: Option<End>) -> ObjectRow {
        let Allocation { usable, function } = self.allocations.get(object.slot as usize).copied().unwrap_or(UNKNOWN);
        ObjectRow { object, usable, function, end }
    }

    /// Gives the rows so far. Few records end more objects than are given at once.
    #[cold]
    fn send(&mut self, heap: &Heap) -> Result<()> {
        let Self { rows, give, .. } = self;
        rows.chunks(ROWS).try_for_each(|rows| give(rows, heap))?;
        rows.clear();
        rows.shrink_to(ROWS);
        Ok(())
    }

    /// Notes what the record says of the object that it allocated.
    #[inline]
    fn note(&mut self, call: &Call) {
        let allocation = Allocation { usable: call.usable, function: call.function };
        let slot = self.last as usize;
        match self.allocations.get_mut(slot) {
            Some(place) => *place = allocation,
            None => {
                self.allocations.resize(slot, UNKNOWN);
                self.allocations.push(allocation);
            }
        }
    }
}

impl<F: FnMut(&[ObjectRow], &Heap) -> Result<()>> Observer for ObjectRows<F> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let ObjectEvent { tick, time, thread, change, cause, ref object } = *event;
        match change {
            Change::Allocated => (self.last, self.allocated) = (object.slot, object.allocated),
            Change::Freed => {
                let allocated_meanwhile = self.allocated.saturating_sub(object.allocated);
                let row = self.row(*object, Some(End { tick, time, thread, cause, allocated_meanwhile }));
                self.rows.push(row);
            }
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        if let EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) = record.kind
            && call.address != 0
        {
            self.note(call);
        }
        if self.rows.len() < ROWS { Ok(()) } else { self.send(heap) }
    }
}
