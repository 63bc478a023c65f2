//! `traces`: one row a trace, with what it says of itself and its totals.

use hatf_lab::{Heap, HeapTracker, Observer};
use hatf_trace::event::UserMetadata;
use hatf_trace::{Event, EventKind};

use super::processes::{ProcessRow, Processes, command};
use super::{Opened, Row, trace_column};
use crate::column::{Column, Of};

/// A trace.
#[derive(Default)]
pub(crate) struct TraceRow {
    user_metadata: UserMetadata,
    command: Option<String>,
    /// Its first program.
    first: Option<ProcessRow>,
    duration: u64,
    lost: u64,
    totals: hatf_lab::Totals,
    sampling: Option<u64>,
    stacks: u64,
}

impl TraceRow {
    fn text(&self, key: &str) -> Option<&str> {
        self.user_metadata.get(key)?.as_str()
    }
}

/// Notes what rows of a trace need beside the heap.
#[derive(Default)]
struct Facts {
    user_metadata: UserMetadata,
    duration: u64,
    lost: u64,
}

impl Observer for Facts {
    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        self.duration = self.duration.max(record.time);
        if let EventKind::Lost { events } = record.kind {
            self.lost = self.lost.saturating_add(events);
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.user_metadata.extend(user_metadata.clone());
    }
}

impl Row for TraceRow {
    const NAME: &'static str = "traces";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column { name: "host", unit: "", doc: "the host that it was recorded on", of: Of::Text(|t| t.text("host")) },
        Column { name: "start", unit: "", doc: "when recording began, as RFC 3339", of: Of::Text(|t| t.text("start")) },
        Column {
            name: "program",
            unit: "",
            doc: "the path of its first program",
            of: Of::Text(|t| t.first.as_ref().and_then(|first| first.image.as_deref()).or_else(|| t.text("program"))),
        },
        Column {
            name: "build_id",
            unit: "",
            doc: "the build id of its first program in hexadecimal digits; null: not known",
            of: Of::Text(|t| t.first.as_ref()?.build_id.as_deref()),
        },
        Column {
            name: "command",
            unit: "",
            doc: "the command that was recorded",
            of: Of::Text(|t| t.command.as_deref()),
        },
        Column { name: "duration_ns", unit: "ns", doc: "the time of its last record", of: Of::Count(|t| t.duration) },
        Column {
            name: "sampling_bytes",
            unit: "byte",
            doc: "bytes for which one object is in the trace, on average; null: all objects are",
            of: Of::MaybeCount(|t| t.sampling),
        },
        Column { name: "events", unit: "", doc: "allocations and ends of objects", of: Of::Count(|t| t.totals.events) },
        Column { name: "allocations", unit: "", doc: "objects allocated", of: Of::Count(|t| t.totals.objects) },
        Column { name: "allocated_bytes", unit: "byte", doc: "bytes asked for", of: Of::Count(|t| t.totals.bytes) },
        Column {
            name: "peak_objects",
            unit: "",
            doc: "the most objects live at once",
            of: Of::Count(|t| t.totals.max_objects),
        },
        Column {
            name: "peak_bytes",
            unit: "byte",
            doc: "the most bytes live at once",
            of: Of::Count(|t| t.totals.max_bytes),
        },
        Column {
            name: "live_objects",
            unit: "",
            doc: "objects live at the end",
            of: Of::Count(|t| t.totals.never_freed),
        },
        Column { name: "stacks", unit: "", doc: "stacks that differ", of: Of::Count(|t| t.stacks) },
        Column { name: "lost", unit: "", doc: "events that were not recorded", of: Of::Count(|t| t.lost) },
    ];

    fn read(trace: &Opened<'_>, take: &mut dyn FnMut(&[Self]) -> hatf_lab::Result<()>) -> hatf_trace::Result<()> {
        let mut first = None;
        let note = |rows: &[ProcessRow]| {
            if first.is_none() {
                first = rows.first().cloned();
            }
            Ok(())
        };
        let observers = (Facts::default(), Processes::new(note));
        let (heap, (facts, processes)) = trace.follow(HeapTracker::new(observers).with_sizes_only())?.into_parts();
        processes.finish()?;
        let Facts { user_metadata, duration, lost } = facts;
        let command = command(&user_metadata);
        let (totals, sampling, stacks) = (heap.totals(), heap.sampling, heap.stacks.count() - 1);
        Ok(take(&[Self { user_metadata, command, first, duration, lost, totals, sampling, stacks }])?)
    }
}
