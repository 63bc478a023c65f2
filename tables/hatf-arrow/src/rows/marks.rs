//! The `marks` table: positions that the program marked, and the program's phases.

use hatf_lab::blocks::ROWS;
use hatf_lab::sites::Amount;
use hatf_lab::{Heap, Observer, Result};
use hatf_trace::{Event, EventKind};

use super::{Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// A mark, or the beginning or end of a phase.
pub(crate) struct MarkRow {
    time: u64,
    tick: u64,
    thread: u64,
    /// Index in [`kinds`].
    kind: usize,
    name: String,
    /// The live heap, or `None` if the trace does not show when objects end.
    live: Option<Amount>,
    allocated_objects: u64,
    allocated_bytes: u64,
}

fn kinds() -> Vec<&'static str> {
    vec!["mark", "phase_begin", "phase_end"]
}

/// A collector of the rows.
struct Marks<'t> {
    rows: Vec<MarkRow>,
    take: Take<'t, MarkRow>,
}

impl Marks<'_> {
    fn send(&mut self) -> Result<()> {
        (self.take)(&self.rows)?;
        self.rows.clear();
        Ok(())
    }
}

impl Collector for Marks<'_> {
    fn finish(mut self: Box<Self>, _: &Heap, _: &dyn Names) -> Result<()> {
        self.send()
    }
}

impl Observer for Marks<'_> {
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
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
            live: (!heap.has_sizes_only())
                .then(|| Amount { blocks: heap.objects.live_count(), bytes: heap.objects.live_bytes() }),
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
        Column { name: "time_ns", unit: "ns", doc: "time since the start of the recording", of: Of::Count(|m| m.time) },
        Column { name: "tick", unit: "", doc: "the last event before the mark", of: Of::Count(|m| m.tick) },
        Column { name: "thread", unit: "", doc: "thread that reached the mark", of: Of::Count(|m| m.thread) },
        Column {
            name: "kind",
            unit: "",
            doc: "mark, or the beginning or end of a phase",
            of: Of::Word(kinds, |m| m.kind),
        },
        Column { name: "name", unit: "", doc: "name of the mark or phase", of: Of::Text(|m| Some(&m.name)) },
        Column {
            name: "live_bytes",
            unit: "byte",
            doc: "live bytes at the mark; null if the trace has only sizes",
            of: Of::MaybeCount(|m| m.live.map(|live| live.bytes)),
        },
        Column {
            name: "live_objects",
            unit: "",
            doc: "live objects at the mark; null if the trace has only sizes",
            of: Of::MaybeCount(|m| m.live.map(|live| live.blocks)),
        },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes allocated before the mark",
            of: Of::Count(|m| m.allocated_bytes),
        },
        Column {
            name: "allocated_objects",
            unit: "",
            doc: "objects allocated before the mark",
            of: Of::Count(|m| m.allocated_objects),
        },
    ];

    fn collector(take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        Box::new(Marks { rows: Vec::new(), take })
    }
}
