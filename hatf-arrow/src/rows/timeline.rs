//! `timeline`: the heap over time, and its exact peak.

use hatf_lab::HeapTracker;
use hatf_lab::timeline::{Snapshot, Timeline};

use super::{Opened, Row, trace_column};
use crate::column::{Column, Of};

/// A moment.
pub(crate) struct TimelineRow(Snapshot);

impl Row for TimelineRow {
    const NAME: &'static str = "timeline";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column { name: "time_ns", unit: "ns", doc: "since the start of the recording", of: Of::Count(|t| t.0.time) },
        Column { name: "tick", unit: "", doc: "the last event until then", of: Of::Count(|t| t.0.tick) },
        Column {
            name: "is_peak",
            unit: "",
            doc: "whether most bytes were live then, for the first time: one row of a trace",
            of: Of::Flag(|t| t.0.is_peak),
        },
        Column { name: "live_bytes", unit: "byte", doc: "bytes that were live", of: Of::Count(|t| t.0.live.bytes) },
        Column { name: "live_objects", unit: "", doc: "objects that were live", of: Of::Count(|t| t.0.live.blocks) },
        Column {
            name: "max_live_bytes",
            unit: "byte",
            doc: "the most bytes that were live at once since the row before",
            of: Of::Count(|t| t.0.most),
        },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes that were allocated until then",
            of: Of::Count(|t| t.0.allocated.bytes),
        },
        Column {
            name: "allocated_objects",
            unit: "",
            doc: "objects that were allocated until then",
            of: Of::Count(|t| t.0.allocated.blocks),
        },
        Column {
            name: "ended_bytes",
            unit: "byte",
            doc: "bytes of objects that had ended",
            of: Of::Count(|t| t.0.ended.bytes),
        },
        Column { name: "ended_objects", unit: "", doc: "objects that had ended", of: Of::Count(|t| t.0.ended.blocks) },
        Column {
            name: "resident_bytes",
            unit: "byte",
            doc: "pages of the process that had memory, when the kernel was asked last; null: it was not",
            of: Of::MaybeCount(|t| t.0.resident.map(|resident| resident.resident)),
        },
        Column {
            name: "private_bytes",
            unit: "byte",
            doc: "of these, those that were the process's own",
            of: Of::MaybeCount(|t| t.0.resident.map(|resident| resident.private())),
        },
    ];

    fn read(trace: &Opened<'_>, take: &mut dyn FnMut(&[Self]) -> hatf_lab::Result<()>) -> hatf_trace::Result<()> {
        let tracker = trace.follow(HeapTracker::new(Timeline::new()))?;
        let rows: Vec<_> = tracker.observer().rows().into_iter().map(Self).collect();
        Ok(take(&rows)?)
    }
}
