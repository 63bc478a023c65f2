//! The table `traces`: one row per trace, with its metadata and totals.

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
    /// Whether the trace tells when objects end.
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

/// Collects the facts about a trace that the heap does not contain.
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
        Column { name: "host", unit: "", doc: "the host that it was recorded on", of: Of::Text(|t| t.text("host")) },
        Column {
            name: "labels",
            unit: "",
            doc: "what `hatf record --label` was given, a JSON object of texts; null: nothing",
            of: Of::Text(|t| t.labels.as_deref()),
        },
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
            doc: "the most objects live at once; null: the trace has sizes only",
            of: Of::MaybeCount(|t| t.of_end(t.totals.max_objects)),
        },
        Column {
            name: "peak_bytes",
            unit: "byte",
            doc: "the most bytes live at once; null: the trace has sizes only",
            of: Of::MaybeCount(|t| t.of_end(t.totals.max_bytes)),
        },
        Column {
            name: "live_objects",
            unit: "",
            doc: "objects live at the end; null: the trace has sizes only",
            of: Of::MaybeCount(|t| t.of_end(t.totals.never_freed)),
        },
        Column { name: "stacks", unit: "", doc: "stacks that differ", of: Of::Count(|t| t.stacks) },
        Column { name: "lost", unit: "", doc: "events that were not recorded", of: Of::Count(|t| t.lost) },
    ];

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        // Only the first process is needed.
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
