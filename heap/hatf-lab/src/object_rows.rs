//! Rows of a table with one row per object.
//!
//! Rows are produced in the order in which objects end, so memory is bounded by the number of simultaneously live
//! objects. Objects that are live at the end of the trace come last, in allocation order.

use hatf_trace::event::{Call, Function};
use hatf_trace::{Event, EventKind};

use crate::Result;
use crate::heap::Heap;
use crate::objects::{Cause, Change, Object, ObjectEvent};
use crate::observer::Observer;

/// Maximum number of rows per batch.
pub const ROWS: usize = 8192;

/// An object with all of its data from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectRow {
    /// The object.
    pub object: Object,
    /// The usable size in bytes; 0 if unknown.
    pub usable: u64,
    /// The function that allocated the object.
    pub function: Function,
    /// The end of the object, or `None` if it is live at the end of the trace.
    pub end: Option<End>,
}

/// The end of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// The tick of the event.
    pub tick: u64,
    /// The time in nanoseconds.
    pub time: u64,
    /// The thread that freed the object, or the allocating thread if nothing freed it.
    pub thread: u64,
    /// The cause of the end.
    pub cause: Cause,
    /// The number of bytes allocated after the object while it was live.
    pub allocated_meanwhile: u64,
}

/// The data of an allocation that [`Object`] does not contain.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    usable: u64,
    function: Function,
}

const UNKNOWN: Allocation = Allocation { usable: 0, function: Function::Malloc };

/// An [`Observer`] that produces a row per object. The rows are delivered in batches, each along with the current heap.
///
/// The [module's example](crate::blocks#examples) collects the rows of a trace.
#[derive(Debug)]
pub struct ObjectRows<F> {
    rows: Vec<ObjectRow>,
    /// Allocations by slot.
    allocations: Vec<Allocation>,
    /// The slot of the last allocated object.
    last: u32,
    allocated: u64,
    give: F,
}

impl<F: FnMut(&[ObjectRow], &Heap) -> Result<()>> ObjectRows<F> {
    /// Creates an observer that delivers rows to `give`.
    pub fn new(give: F) -> Self {
        Self { rows: Vec::with_capacity(ROWS), allocations: Vec::new(), last: 0, allocated: 0, give }
    }

    /// Delivers the remaining rows, including those of live objects.
    ///
    /// # Errors
    /// Returns the errors of the receiver.
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

    /// Delivers the rows collected so far. A record seldom ends more objects than fit in a batch.
    #[cold]
    fn send(&mut self, heap: &Heap) -> Result<()> {
        let Self { rows, give, .. } = self;
        rows.chunks(ROWS).try_for_each(|rows| give(rows, heap))?;
        rows.clear();
        rows.shrink_to(ROWS);
        Ok(())
    }

    /// Stores the data of a call about the object that the call allocated.
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
