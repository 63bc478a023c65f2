//! The `sites` table: one row per allocating stack.

use std::collections::BTreeMap;

use hatf_lab::Heap;
use hatf_lab::sites::{Bounds, Counts, Measure, SiteBounds, Sites};
use hatf_trace::stack_hash::StackHashes;
use hatf_view::calls::Places;

use super::{AtEnd, Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// The allocations of a stack.
pub(crate) struct SiteRow {
    stack: u64,
    counts: Counts,
    bounds: Bounds,
    own_function: Option<String>,
    /// Whether the trace shows when objects end, and whether it contains lifetimes. Measures that require missing
    /// information are null.
    ends_are_known: bool,
    lives_are_known: bool,
}

impl SiteRow {
    fn of_end(&self, count: u64) -> Option<u64> {
        self.ends_are_known.then_some(count)
    }

    fn of_life(&self, count: u64) -> Option<u64> {
        self.lives_are_known.then_some(count)
    }
}

impl Row for SiteRow {
    const NAME: &'static str = "sites";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "stack_hash",
            unit: "",
            doc: "hash of the stack; 0 if it is not known",
            of: Of::Hash(|s| s.stack),
        },
        Column {
            name: "own_function",
            unit: "",
            doc: "the program's own function that called the allocator, directly or through a library; null if the trace does not name it",
            of: Of::Text(|s| s.own_function.as_deref()),
        },
        Column {
            name: "allocations",
            unit: "",
            doc: "number of objects it allocated; a realloc counts as one",
            of: Of::Count(|s| s.counts.allocated.blocks),
        },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes it requested; a realloc counts by its growth",
            of: Of::Count(|s| s.counts.allocated.bytes),
        },
        Column {
            name: "peak_allocations",
            unit: "",
            doc: "number of its objects live at the peak of the trace",
            of: Of::MaybeCount(|s| s.of_end(s.counts.peak.blocks)),
        },
        Column {
            name: "peak_bytes",
            unit: "byte",
            doc: "size of these objects",
            of: Of::MaybeCount(|s| s.of_end(s.counts.peak.bytes)),
        },
        Column {
            name: "leaked_allocations",
            unit: "",
            doc: "number of its objects live at the end",
            of: Of::MaybeCount(|s| s.of_end(s.counts.leaked.blocks)),
        },
        Column {
            name: "leaked_bytes",
            unit: "byte",
            doc: "size of these objects",
            of: Of::MaybeCount(|s| s.of_end(s.counts.leaked.bytes)),
        },
        Column {
            name: "temporary_allocations",
            unit: "",
            doc: "number of its objects freed by the event after their allocation",
            of: Of::MaybeCount(|s| s.of_life(s.counts.temporary.blocks)),
        },
        Column {
            name: "temporary_bytes",
            unit: "byte",
            doc: "size of these objects",
            of: Of::MaybeCount(|s| s.of_life(s.counts.temporary.bytes)),
        },
        Column {
            name: "short_allocations",
            unit: "",
            doc: "number of its objects freed within 1 ms and within 64 KiB of allocations",
            of: Of::MaybeCount(|s| s.of_life(s.counts.short.blocks)),
        },
        Column {
            name: "short_bytes",
            unit: "byte",
            doc: "size of these objects",
            of: Of::MaybeCount(|s| s.of_life(s.counts.short.bytes)),
        },
        Column {
            name: "max_size",
            unit: "byte",
            doc: "size of its largest object",
            of: Of::Count(|s| s.bounds.max_size),
        },
        Column {
            name: "first_ns",
            unit: "ns",
            doc: "time of its first allocation since the start of the recording",
            of: Of::Count(|s| s.bounds.first),
        },
        Column { name: "last_ns", unit: "ns", doc: "time of its last allocation", of: Of::Count(|s| s.bounds.last) },
    ];

    const NAMED: bool = true;

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        let finish = move |(sites, bounds): (Sites, SiteBounds), heap: &Heap, names: &dyn Names| {
            let ends_are_known = Measure::Leaked.is_known(heap);
            let lives_are_known = Measure::Short.is_known(heap);
            let own = Places::own_functions(&heap.stacks, &names.folding());
            let mut hashes = StackHashes::default();
            // After an exec, a program at another address has the same stacks under other numbers, so rows are keyed by
            // hash.
            let mut rows: BTreeMap<u64, Self> = BTreeMap::new();
            for (number, counts) in sites.report().into_iter().enumerate().filter(|(_, c)| c.allocated.blocks > 0) {
                let stack = hashes.of(&heap.stacks, number as u64);
                let row = rows.entry(stack).or_insert_with(|| Self {
                    stack,
                    counts: Counts::default(),
                    bounds: Bounds::NONE,
                    own_function: own.get(number).filter(|name| !name.is_empty()).cloned(),
                    ends_are_known,
                    lives_are_known,
                });
                row.counts.add(&counts);
                row.bounds.add(bounds.get(number));
            }
            let mut rows: Vec<_> = rows.into_values().collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.counts.allocated.bytes));
            take(&rows)
        };
        Box::new(AtEnd { observer: (Sites::new(), SiteBounds::default()), finish })
    }
}
