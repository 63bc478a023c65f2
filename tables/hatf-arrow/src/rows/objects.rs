//! The `objects` table: one row per object, in the order in which objects end.

use hatf_lab::blocks::{End, ObjectRow, ObjectRows};
use hatf_lab::{Cause, Heap, Result};
use hatf_trace::event::Function;
use hatf_trace::stack_hash::StackHashes;

use super::{Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// An object, and the hash of the stack that allocated it.
pub(crate) struct TableObject {
    row: ObjectRow,
    stack: u64,
    /// Whether the trace shows when objects end.
    ends_are_known: bool,
}

/// Returns the names of the allocation functions, in the order of their indices.
fn functions() -> Vec<&'static str> {
    Function::ALL.map(Function::name).to_vec()
}

/// Returns the words for the ends of objects.
fn ends() -> Vec<&'static str> {
    vec!["free", "realloc", "overlaid", "exit", "exec", "resumed", "live", "unknown"]
}

impl TableObject {
    fn new(row: &ObjectRow, hashes: &mut StackHashes, heap: &Heap) -> Self {
        Self { row: *row, stack: hashes.of(&heap.stacks, row.object.site), ends_are_known: !heap.has_sizes_only() }
    }

    fn end(&self) -> Option<&End> {
        self.row.end.as_ref().filter(|_| self.ends_are_known)
    }

    fn address(&self) -> u64 {
        if self.ends_are_known { self.row.object.address } else { 0 }
    }

    fn end_word(&self) -> usize {
        match self.end().map(|end| end.cause) {
            Some(Cause::Call) => 0,
            Some(Cause::Realloc) => 1,
            Some(Cause::Overlaid) => 2,
            Some(Cause::Left) => 3,
            Some(Cause::Exec) => 4,
            Some(Cause::Resumed) => 5,
            None if self.ends_are_known => 6,
            None => 7,
        }
    }

    /// Returns the end of the object if the program freed or reallocated it.
    fn freed(&self) -> Option<&End> {
        self.end().filter(|end| matches!(end.cause, Cause::Call | Cause::Realloc))
    }
}

impl Row for TableObject {
    const NAME: &'static str = "objects";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "object",
            unit: "",
            doc: "number of the object in allocation order, from 0",
            of: Of::Count(|o| o.row.object.number),
        },
        Column {
            name: "address",
            unit: "",
            doc: "its address; 0 if it was not recorded",
            of: Of::Address(Self::address),
        },
        Column { name: "size", unit: "byte", doc: "requested bytes", of: Of::Count(|o| o.row.object.size) },
        Column {
            name: "usable",
            unit: "byte",
            doc: "usable bytes; null if they were not recorded",
            of: Of::MaybeCount(|o| Some(o.row.usable).filter(|usable| *usable > 0)),
        },
        Column {
            name: "function",
            unit: "",
            doc: "function that allocated it",
            of: Of::Word(functions, |o| o.row.function as usize),
        },
        Column {
            name: "heap",
            unit: "",
            doc: "its heap: the number of the program image of the process, from 1; 0 if it was not recorded",
            of: Of::Count(|o| o.row.object.heap),
        },
        Column {
            name: "stack_hash",
            unit: "",
            doc: "hash of the allocating stack; 0 if it is not known",
            of: Of::Hash(|o| o.stack),
        },
        Column {
            name: "alloc_ns",
            unit: "ns",
            doc: "time of its allocation since the start of the recording",
            of: Of::Count(|o| o.row.object.time),
        },
        Column {
            name: "alloc_tick",
            unit: "",
            doc: "event number of its allocation; allocations and ends of objects are counted from 1",
            of: Of::Count(|o| o.row.object.tick),
        },
        Column {
            name: "alloc_thread",
            unit: "",
            doc: "thread that allocated it; the first thread is 1",
            of: Of::Count(|o| o.row.object.thread),
        },
        Column {
            name: "end_kind",
            unit: "",
            doc: "how it ended: free; realloc; overlaid, if another object begins at its address; exit, if its heap or program \
                  ended; exec, if another program replaced the process's program; resumed, if it ended while recording was off; \
                  live, if it is live at the end of the trace; unknown, if the trace has only sizes",
            of: Of::Word(ends, Self::end_word),
        },
        Column {
            name: "end_ns",
            unit: "ns",
            doc: "time of its end since the start of the recording; null if it is live at the end of the trace",
            of: Of::MaybeCount(|o| o.end().map(|end| end.time)),
        },
        Column {
            name: "end_tick",
            unit: "",
            doc: "event number of its end; null if it is live at the end of the trace",
            of: Of::MaybeCount(|o| o.end().map(|end| end.tick)),
        },
        Column {
            name: "free_thread",
            unit: "",
            doc: "thread that freed it; null if it was not freed",
            of: Of::MaybeCount(|o| o.freed().map(|end| end.thread)),
        },
        Column {
            name: "lifetime_ns",
            unit: "ns",
            doc: "time from its allocation to its free; null if it was not freed",
            of: Of::MaybeCount(|o| o.freed().map(|end| end.time.saturating_sub(o.row.object.time))),
        },
        Column {
            name: "lifetime_bytes",
            unit: "byte",
            doc: "bytes allocated between its allocation and its free; null if it was not freed",
            of: Of::MaybeCount(|o| o.freed().map(|end| end.allocated_meanwhile)),
        },
    ];

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        let mut hashes = StackHashes::default();
        let mut rows = Vec::new();
        let give = move |objects: &[ObjectRow], heap: &Heap| {
            rows.clear();
            rows.extend(objects.iter().map(|row| Self::new(row, &mut hashes, heap)));
            take(&rows)
        };
        Box::new(ObjectRows::new(give))
    }
}

impl<F: FnMut(&[ObjectRow], &Heap) -> Result<()>> Collector for ObjectRows<F> {
    fn finish(self: Box<Self>, heap: &Heap, _: &dyn Names) -> Result<()> {
        Self::finish(*self, heap)
    }
}
