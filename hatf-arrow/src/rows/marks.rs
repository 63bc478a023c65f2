//! `marks`: where the program said that it is, and its phases.

use hatf_lab::object_rows::ROWS;
use hatf_lab::{Heap, HeapTracker, Observer};
use hatf_trace::{Event, EventKind};

use super::{Opened, Row, trace_column};
use crate::column::{Column, Of};

/// A mark, or the begin or end of a phase.
pub(crate) struct MarkRow {
    time: u64,
    tick: u64,
    thread: u64,
    /// Its place in [`kinds`].
    kind: usize,
    name: String,
    live_bytes: u64,
    live_objects: u64,
    allocated_objects: u64,
    allocated_bytes: u64,
}

fn kinds() -> Vec<&'static str> {
    vec!["mark", "phase_begin", "phase_end"]
}

/// Makes the rows.
struct Marks<F> {
    rows: Vec<MarkRow>,
    take: F,
}

impl<F: FnMut(&[MarkRow]) -> hatf_lab::Result<()>> Marks<F> {
    fn send(&mut self) -> hatf_lab::Result<()> {
        (self.take)(&self.rows)?;
        self.rows.clear();
        Ok(())
    }
}

impl<F: FnMut(&[MarkRow]) -> hatf_lab::Result<()>> Observer for Marks<F> {
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        let (kind, name) = match record.kind {
            EventKind::Mark { name } => (0, name),
            EventKind::PhaseBegin { name } => (1, name),
            EventKind::PhaseEnd { name } => (2, name),
            _ => return Ok(()),
        };
        let (allocated_objects, allocated_bytes) = heap.objects.allocated();
        self.rows.push(MarkRow {
            time: record.time,
            tick: heap.objects.tick(),
            thread: record.thread,
            kind,
            name: String::from_utf8_lossy(name).into_owned(),
            live_bytes: heap.objects.live_bytes(),
            live_objects: heap.objects.live_count(),
            allocated_objects,
            allocated_bytes,
        });
        if self.rows.len() < ROWS { Ok(()) } else { self.send() }
    }
}

impl Row for MarkRow {
    const NAME: &'static str = "marks";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column { name: "time_ns", unit: "ns", doc: "since the start of the recording", of: Of::Count(|m| m.time) },
        Column { name: "tick", unit: "", doc: "the last event before it", of: Of::Count(|m| m.tick) },
        Column { name: "thread", unit: "", doc: "the thread that passed it", of: Of::Count(|m| m.thread) },
        Column { name: "kind", unit: "", doc: "mark, or the begin or end of a phase", of: Of::Word(kinds, |m| m.kind) },
        Column { name: "name", unit: "", doc: "its name", of: Of::Text(|m| Some(&m.name)) },
        Column { name: "live_bytes", unit: "byte", doc: "bytes live then", of: Of::Count(|m| m.live_bytes) },
        Column { name: "live_objects", unit: "", doc: "objects live then", of: Of::Count(|m| m.live_objects) },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes that were allocated until then",
            of: Of::Count(|m| m.allocated_bytes),
        },
        Column {
            name: "allocated_objects",
            unit: "",
            doc: "objects that were allocated until then",
            of: Of::Count(|m| m.allocated_objects),
        },
    ];

    fn read(trace: &Opened<'_>, take: &mut dyn FnMut(&[Self]) -> hatf_lab::Result<()>) -> hatf_trace::Result<()> {
        let marks = Marks { rows: Vec::new(), take };
        let (_, mut marks) = trace.follow(HeapTracker::new(marks).with_sizes_only())?.into_parts();
        Ok(marks.send()?)
    }
}
