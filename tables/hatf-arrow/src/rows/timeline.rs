//! The `timeline` table: the heap over time, including its exact peak.

use hatf_lab::Heap;
use hatf_lab::history::{Snapshot, Timeline};

use super::{AtEnd, Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// The heap at a point in time.
pub(crate) struct TimelineRow {
    now: Snapshot,
    /// Whether the trace shows when objects end.
    ends_are_known: bool,
}

impl TimelineRow {
    fn of_end(&self, count: u64) -> Option<u64> {
        self.ends_are_known.then_some(count)
    }
}

impl Row for TimelineRow {
    const NAME: &'static str = "timeline";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "time_ns",
            unit: "ns",
            doc: "time since the start of the recording",
            of: Of::Count(|t| t.now.time),
        },
        Column { name: "tick", unit: "", doc: "the last event up to this time", of: Of::Count(|t| t.now.tick) },
        Column {
            name: "is_peak",
            unit: "",
            doc: "whether live bytes first reached their maximum here; true in one row per trace",
            of: Of::Flag(|t| t.now.is_peak),
        },
        Column {
            name: "live_bytes",
            unit: "byte",
            doc: "live bytes, including those that a program had not freed when it ended; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.now.live.bytes)),
        },
        Column {
            name: "live_objects",
            unit: "",
            doc: "live objects; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.now.live.blocks)),
        },
        Column {
            name: "max_live_bytes",
            unit: "byte",
            doc: "maximum of the live bytes since the previous row; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.now.most)),
        },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes allocated up to this time",
            of: Of::Count(|t| t.now.allocated.bytes),
        },
        Column {
            name: "allocated_objects",
            unit: "",
            doc: "objects allocated up to this time",
            of: Of::Count(|t| t.now.allocated.blocks),
        },
        Column {
            name: "ended_bytes",
            unit: "byte",
            doc: "size of the objects that have ended; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.now.ended.bytes)),
        },
        Column {
            name: "ended_objects",
            unit: "",
            doc: "number of objects that have ended; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.now.ended.blocks)),
        },
        Column {
            name: "resident_bytes",
            unit: "byte",
            doc: "resident memory of the process when it was last measured; null if it was not measured",
            of: Of::MaybeCount(|t| t.now.resident.map(|resident| resident.resident)),
        },
        Column {
            name: "private_bytes",
            unit: "byte",
            doc: "the part of the resident memory that is private to the process",
            of: Of::MaybeCount(|t| t.now.resident.map(|resident| resident.private())),
        },
    ];

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        let finish = move |timeline: Timeline, heap: &Heap, _: &dyn Names| {
            let ends_are_known = !heap.has_sizes_only();
            let rows = timeline.rows().into_iter();
            let rows: Vec<_> = rows
                .map(|now| Snapshot { is_peak: now.is_peak && ends_are_known, ..now })
                .map(|now| Self { now, ends_are_known })
                .collect();
            take(&rows)
        };
        Box::new(AtEnd { observer: Timeline::new(), finish })
    }
}
