//! The `lifetimes` table: histograms of object lifetimes per stack. Buckets are powers of two, so histograms of several
//! traces can be added.

use std::collections::{BTreeMap, HashMap};

use hatf_lab::blocks::ROWS;
use hatf_lab::{Cause, Change, Heap, Object, ObjectEvent, Observer, Result};
use hatf_trace::stack_hash::StackHashes;

use super::{Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// The objects of a stack whose lifetimes are in the same class.
pub(crate) struct LifetimeRow {
    stack: u64,
    /// Upper bound of the lifetimes, or `None` if the objects were not freed.
    below: Option<u64>,
    objects: u64,
    bytes: u64,
}

/// Returns the smallest power of two greater than the lifetime of a freed object, or `None` if it was not freed.
#[inline]
fn below(event: &ObjectEvent) -> Option<u64> {
    if !matches!(event.cause, Cause::Call | Cause::Realloc) {
        return None;
    }
    let lifetime = event.time.saturating_sub(event.object.time);
    Some(1 << lifetime.checked_ilog2().map_or(0, |log| (log + 1).min(63)))
}

impl Row for LifetimeRow {
    const NAME: &'static str = "lifetimes";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "stack_hash",
            unit: "",
            doc: "hash of the allocating stack; 0 if it is not known",
            of: Of::Hash(|l| l.stack),
        },
        Column {
            name: "below_ns",
            unit: "ns",
            doc: "a power of two: the lifetime until the free is less than this and at least half of it; null if the objects were not freed or the trace has only sizes",
            of: Of::MaybeCount(|l| l.below),
        },
        Column { name: "objects", unit: "", doc: "number of objects", of: Of::Count(|l| l.objects) },
        Column { name: "bytes", unit: "byte", doc: "size of these objects", of: Of::Count(|l| l.bytes) },
    ];

    fn collector(take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        Box::new(Lifetimes { classes: HashMap::new(), take })
    }
}

/// A collector that counts objects by stack and lifetime.
struct Lifetimes<'t> {
    /// Object count and bytes by stack number and upper bound of the lifetime.
    classes: HashMap<(u64, Option<u64>), (u64, u64)>,
    take: Take<'t, LifetimeRow>,
}

impl Lifetimes<'_> {
    #[inline]
    fn add(&mut self, object: &Object, below: Option<u64>) {
        let (objects, bytes) = self.classes.entry((object.site, below)).or_default();
        *objects += 1;
        *bytes = bytes.saturating_add(object.size);
    }
}

impl Observer for Lifetimes<'_> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        if event.change == Change::Freed {
            self.add(&event.object, below(event));
        }
        Ok(())
    }
}

impl Collector for Lifetimes<'_> {
    fn finish(mut self: Box<Self>, heap: &Heap, _: &dyn Names) -> Result<()> {
        heap.objects.live().for_each(|object| self.add(&object, None));
        let mut hashes = StackHashes::default();
        // Stacks with the same hash are merged into one row. If the trace does not contain lifetimes, all lifetimes of
        // a stack are merged as well.
        let mut classes: BTreeMap<(u64, Option<u64>), (u64, u64)> = BTreeMap::new();
        for ((site, below), (objects, bytes)) in self.classes {
            let below = below.filter(|_| !heap.has_sizes_only());
            let class = classes.entry((hashes.of(&heap.stacks, site), below)).or_default();
            class.0 += objects;
            class.1 = class.1.saturating_add(bytes);
        }
        let row = |((stack, below), (objects, bytes))| LifetimeRow { stack, below, objects, bytes };
        let rows: Vec<_> = classes.into_iter().map(row).collect();
        rows.chunks(ROWS).try_for_each(self.take)
    }
}
