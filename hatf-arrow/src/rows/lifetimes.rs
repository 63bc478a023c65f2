//! `lifetimes`: how long the objects of each stack lived, by powers of two, so that the lifetimes of many traces add up.

use std::collections::BTreeMap;

use hatf_lab::object_rows::{ObjectRow, ObjectRows, ROWS};
use hatf_lab::{Cause, HeapTracker};
use hatf_trace::stack_hash::StackHashes;

use super::{Opened, Row, trace_column};
use crate::column::{Column, Of};

/// The objects of a stack that lived about as long.
pub(crate) struct LifetimeRow {
    stack: u64,
    /// `None`: they were not freed.
    below: Option<u64>,
    objects: u64,
    bytes: u64,
}

/// Returns the smallest power of two above the lifetime; `None`: it was not freed.
fn below(row: &ObjectRow) -> Option<u64> {
    let end = row.end.filter(|end| matches!(end.cause, Cause::Call | Cause::Realloc))?;
    let lifetime = end.time.saturating_sub(row.object.time);
    Some(1 << lifetime.checked_ilog2().map_or(0, |log| (log + 1).min(63)))
}

impl Row for LifetimeRow {
    const NAME: &'static str = "lifetimes";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "stack_hash",
            unit: "",
            doc: "the hash of the stack that allocated them; 0: not known",
            of: Of::Hash(|l| l.stack),
        },
        Column {
            name: "below_ns",
            unit: "ns",
            doc: "a power of two: they lived less until they were freed, and half of it or longer; null: they were not freed",
            of: Of::MaybeCount(|l| l.below),
        },
        Column { name: "objects", unit: "", doc: "how many they are", of: Of::Count(|l| l.objects) },
        Column { name: "bytes", unit: "byte", doc: "bytes of these", of: Of::Count(|l| l.bytes) },
    ];

    fn read(trace: &Opened<'_>, take: &mut dyn FnMut(&[Self]) -> hatf_lab::Result<()>) -> hatf_trace::Result<()> {
        let mut hashes = StackHashes::default();
        let mut classes: BTreeMap<(u64, Option<u64>), (u64, u64)> = BTreeMap::new();
        let count = |rows: &[ObjectRow], heap: &hatf_lab::Heap| {
            for row in rows {
                let key = (hashes.of(&heap.stacks, row.object.site), below(row));
                let (objects, bytes) = classes.entry(key).or_default();
                *objects += 1;
                *bytes = bytes.saturating_add(row.object.size);
            }
            Ok(())
        };
        let (heap, objects) = trace.follow(HeapTracker::new(ObjectRows::new(count)))?.into_parts();
        objects.finish(&heap)?;
        let row = |((stack, below), (objects, bytes))| Self { stack, below, objects, bytes };
        let rows: Vec<_> = classes.into_iter().map(row).collect();
        Ok(rows.chunks(ROWS).try_for_each(take)?)
    }
}
