//! The `traces` table: one row per trace, with its metadata and totals.

use hatf_lab::{Heap, Observer, Result};
use hatf_trace::event::UserMetadata;
use hatf_trace::{Event, EventKind};

use super::processes::{ProcessRow, Processes, command};
use super::{AtEnd, Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// A trace.
#[derive(Default)]
pub(crate) struct TraceRow {
    user_metadata: UserMetadata,
    command: Option<String>,
    labels: Option<String>,
    /// The first program.
    first: Option<ProcessRow>,
    duration: u64,
    lost: u64,
    totals: hatf_lab::Totals,
    /// Whether the trace records when objects end.
    ends_are_known: bool,
    sampling: Option<u64>,
    stacks: u64,
}

impl TraceRow {
    fn of_end(&self, count: u64) -> Option<u64> {
        self.ends_are_known.then_some(count)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.user_metadata.get(key)?.as_str()
    }
}

fn nothing(_: &[ProcessRow]) -> Result<()> {
    Ok(())
}

/// A collector of the facts about a trace that are not part of its heap.
#[derive(Default)]
struct Facts {
    user_metadata: UserMetadata,
    duration: u64,
    lost: u64,
}

impl Observer for Facts {
    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
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
        Column { name: "host", unit: "", doc: "host on which it was recorded", of: Of::Text(|t| t.text("host")) },
        Column {
            name: "labels",
            unit: "",
            doc: "labels given to `hatf record --label`, as a JSON object of strings; null if there are none",
            of: Of::Text(|t| t.labels.as_deref()),
        },
        Column {
            name: "start",
            unit: "",
            doc: "start of the recording in RFC 3339 format",
            of: Of::Text(|t| t.text("start")),
        },
        Column {
            name: "program",
            unit: "",
            doc: "path of the first program",
            of: Of::Text(|t| t.first.as_ref().and_then(|first| first.image.as_deref()).or_else(|| t.text("program"))),
        },
        Column {
            name: "build_id",
            unit: "",
            doc: "build id of the first program in hexadecimal digits; null if it is not known",
            of: Of::Text(|t| t.first.as_ref()?.build_id.as_deref()),
        },
        Column { name: "command", unit: "", doc: "recorded command", of: Of::Text(|t| t.command.as_deref()) },
        Column { name: "duration_ns", unit: "ns", doc: "time of the last record", of: Of::Count(|t| t.duration) },
        Column {
            name: "sampling_bytes",
            unit: "byte",
            doc: "average number of bytes per sampled object; null if all objects were recorded",
            of: Of::MaybeCount(|t| t.sampling),
        },
        Column {
            name: "events",
            unit: "",
            doc: "number of allocations and ends of objects",
            of: Of::Count(|t| t.totals.events),
        },
        Column {
            name: "allocations",
            unit: "",
            doc: "number of allocated objects",
            of: Of::Count(|t| t.totals.objects),
        },
        Column { name: "allocated_bytes", unit: "byte", doc: "requested bytes", of: Of::Count(|t| t.totals.bytes) },
        Column {
            name: "peak_objects",
            unit: "",
            doc: "maximum number of live objects; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.totals.max_objects)),
        },
        Column {
            name: "peak_bytes",
            unit: "byte",
            doc: "maximum of the live bytes; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.totals.max_bytes)),
        },
        Column {
            name: "live_objects",
            unit: "",
            doc: "objects live at the end; null if the trace has only sizes",
            of: Of::MaybeCount(|t| t.of_end(t.totals.never_freed)),
        },
        Column { name: "stacks", unit: "", doc: "number of distinct stacks", of: Of::Count(|t| t.stacks) },
        Column { name: "lost", unit: "", doc: "number of events that were lost", of: Of::Count(|t| t.lost) },
    ];

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        // The rows of processes are discarded, because only the first process is needed.
        let processes = Processes::new(nothing);
        let finish = move |(facts, mut processes): (Facts, Processes<_>), heap: &Heap, _: &dyn Names| {
            processes.end_image()?;
            let Facts { user_metadata, duration, lost } = facts;
            take(&[Self {
                command: command(&user_metadata),
                labels: user_metadata.get("labels").filter(|labels| labels.is_object()).map(ToString::to_string),
                user_metadata,
                first: processes.first,
                duration,
                lost,
                totals: heap.totals(),
                ends_are_known: !heap.has_sizes_only(),
                sampling: heap.sampling,
                stacks: heap.stacks.count() - 1,
            }])
        };
        Box::new(AtEnd { observer: (Facts::default(), processes), finish })
    }
}
