//! The `processes` table: the programs that a process executed one after the other through `exec`.

use hatf_lab::blocks::ROWS;
use hatf_lab::{Change, Heap, ObjectEvent, Observer, Result};
use hatf_trace::event::UserMetadata;
use hatf_trace::stacks::Modules;
use hatf_trace::{Event, EventKind};

use super::{Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};

/// A program image.
#[derive(Clone, Default)]
pub(crate) struct ProcessRow {
    heap: u64,
    process: Option<u64>,
    pub(super) image: Option<String>,
    pub(super) build_id: Option<String>,
    command: Option<String>,
    start: u64,
    end: u64,
    status: Option<u64>,
    signal: Option<u64>,
    allocations: u64,
    allocated_bytes: u64,
    peak_bytes: u64,
    peak_ns: u64,
    /// Whether the trace does not show when objects end.
    has_sizes_only: bool,
}

impl ProcessRow {
    fn of_end(&self, count: u64) -> Option<u64> {
        (!self.has_sizes_only).then_some(count)
    }
}

/// A collector of the rows.
pub(super) struct Processes<F> {
    now: ProcessRow,
    /// Whether there was an image or object since the last row.
    any: bool,
    live: u64,
    modules: Modules,
    rows: Vec<ProcessRow>,
    /// The first image.
    pub(super) first: Option<ProcessRow>,
    take: F,
}

impl<F: FnMut(&[ProcessRow]) -> Result<()>> Processes<F> {
    pub(super) fn new(take: F) -> Self {
        let now = ProcessRow::default();
        Self { now, any: false, live: 0, modules: Modules::default(), rows: Vec::new(), first: None, take }
    }

    /// Completes the row of the current image.
    pub(super) fn end_image(&mut self) -> Result<()> {
        if std::mem::take(&mut self.any) {
            self.first.get_or_insert_with(|| self.now.clone());
            self.rows.push(self.now.clone());
        }
        if self.rows.len() < ROWS { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<()> {
        (self.take)(&self.rows)?;
        self.rows.clear();
        Ok(())
    }

    /// Emits the remaining rows.
    pub(super) fn finish(mut self) -> Result<()> {
        self.end_image()?;
        self.send()
    }
}

impl<F: FnMut(&[ProcessRow]) -> Result<()>> Observer for Processes<F> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let size = event.object.size;
        match event.change {
            Change::Allocated => {
                self.any = true;
                self.live = self.live.saturating_add(size);
                self.now.allocations += 1;
                self.now.allocated_bytes = self.now.allocated_bytes.saturating_add(size);
                if self.live > self.now.peak_bytes {
                    (self.now.peak_bytes, self.now.peak_ns) = (self.live, event.time);
                }
            }
            Change::Freed => self.live = self.live.saturating_sub(size),
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        match record.kind {
            EventKind::Call(_) | EventKind::Free { .. } => {}
            EventKind::Image { process, path } => {
                self.end_image()?;
                let image = String::from_utf8_lossy(path).into_owned();
                self.modules.note(&record.kind);
                self.any = true;
                self.now = ProcessRow {
                    heap: record.heap,
                    process: Some(process),
                    image: Some(image),
                    command: self.now.command.take(),
                    start: record.time,
                    ..ProcessRow::default()
                };
            }
            EventKind::ModuleLoad { .. } | EventKind::ModuleUnload { .. } => {
                let changed = self.modules.note(&record.kind);
                if let Some(module) = self.modules.last()
                    && changed
                    && module.is_program
                    && !module.build_id.is_empty()
                {
                    self.now.build_id = Some(module.build_id.clone());
                }
            }
            EventKind::Exit { status } => self.now.status = Some(status),
            EventKind::Killed { signal } => self.now.signal = Some(signal),
            _ => {}
        }
        self.now.end = self.now.end.max(record.time);
        self.now.has_sizes_only = heap.has_sizes_only();
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        if let Some(command) = command(user_metadata) {
            self.now.command = Some(command);
        }
    }
}

/// Returns the recorded command with its arguments separated by spaces.
pub(super) fn command(user_metadata: &UserMetadata) -> Option<String> {
    let arguments = user_metadata.get("command")?.as_array()?;
    Some(arguments.iter().filter_map(|argument| argument.as_str()).collect::<Vec<_>>().join(" "))
}

impl Row for ProcessRow {
    const NAME: &'static str = "processes";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "heap",
            unit: "",
            doc: "number of the program image in the process, from 1; 0 if the trace does not name images",
            of: Of::Count(|p| p.heap),
        },
        Column {
            name: "process",
            unit: "",
            doc: "process number; null if it is not known",
            of: Of::MaybeCount(|p| p.process),
        },
        Column { name: "image", unit: "", doc: "path of the program", of: Of::Text(|p| p.image.as_deref()) },
        Column {
            name: "build_id",
            unit: "",
            doc: "build id of the program in hexadecimal digits; null if it is not known",
            of: Of::Text(|p| p.build_id.as_deref()),
        },
        Column {
            name: "command",
            unit: "",
            doc: "recorded command; only for the first program",
            of: Of::Text(|p| p.command.as_deref()),
        },
        Column {
            name: "start_ns",
            unit: "ns",
            doc: "time when it was loaded, since the start of the recording",
            of: Of::Count(|p| p.start),
        },
        Column { name: "end_ns", unit: "ns", doc: "time of its last record", of: Of::Count(|p| p.end) },
        Column {
            name: "exit_status",
            unit: "",
            doc: "its exit status; null if it did not exit or the status is not known",
            of: Of::MaybeCount(|p| p.status),
        },
        Column {
            name: "signal",
            unit: "",
            doc: "signal that killed it; null if no signal did",
            of: Of::MaybeCount(|p| p.signal),
        },
        Column {
            name: "allocations",
            unit: "",
            doc: "number of objects it allocated",
            of: Of::Count(|p| p.allocations),
        },
        Column {
            name: "allocated_bytes",
            unit: "byte",
            doc: "bytes it requested",
            of: Of::Count(|p| p.allocated_bytes),
        },
        Column {
            name: "peak_bytes",
            unit: "byte",
            doc: "maximum of its live bytes; null if the trace has only sizes",
            of: Of::MaybeCount(|p| p.of_end(p.peak_bytes)),
        },
        Column {
            name: "peak_ns",
            unit: "ns",
            doc: "time when this maximum was first reached; null if the trace has only sizes",
            of: Of::MaybeCount(|p| p.of_end(p.peak_ns)),
        },
    ];

    fn collector(take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        Box::new(Processes::new(take))
    }
}

impl<F: FnMut(&[ProcessRow]) -> Result<()>> Collector for Processes<F> {
    fn finish(self: Box<Self>, _: &Heap, _: &dyn Names) -> Result<()> {
        Self::finish(*self)
    }
}
