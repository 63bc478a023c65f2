//! A section of a trace being written, with its state and the records that are not in a chunk yet.

use super::carry_over::{Log, LoggedAddress};
use super::rows::RowSplitter;
use crate::buffer::Buffer;
use crate::format::Format;
use crate::state::{Change, State};
use metatf_container::Order;
use metatf_container::columns::Rows;

/// A section of a trace being written.
pub(crate) struct SectionWriter {
    pub(crate) state: State,
    /// Encoded records that are not in a chunk yet. While the buffer is open (see `RecordWriter::open`), a record's
    /// tier alone determines how it is written.
    pub(crate) out: Buffer,
    /// The ends of the records in `out`, including metadata records and comments, if a filter needs them.
    pub(crate) ends: Vec<u32>,
    /// Whether a filter needs the ends of records.
    pub(super) wants_ends: bool,
    /// The division of `out` into rows, if a filter needs it.
    rows: Option<Box<RowSplitter>>,
    /// Number of data records in `out`.
    pub(crate) records: u32,
    /// The inputs of a heap model in this group, as long as live objects may still be carried into the group.
    pub(crate) log: Option<Box<Log>>,
    /// Memory for the next log.
    pub(crate) log_memory: Vec<LoggedAddress>,
    /// Number of closed chunks in this group.
    pub(crate) closed: u32,
    /// Whether data that is still buffered was already there when the flush alarm last rang.
    pub(super) aged: bool,
    /// Whether the next chunk resets the state.
    pub(crate) reset: bool,
    /// The changes to repeat after every reset: the record, the leaf, whether the change applies to all leaves with
    /// that name, and the change itself.
    pub(super) sticky: Vec<(u16, u8, bool, Change)>,
    /// Whether the sticky changes must be written before the next record.
    pub(super) fresh: bool,
    /// The previous values before the last reset, by cell.
    pub(super) before_reset: Vec<u64>,
    /// The jumps of values since the last reset. Each entry contains a cell, the number of closed chunks at its last
    /// jump, and the number of records in the open chunk at that time.
    jumps: Vec<(u32, u32, u32)>,
}

/// Returns the end of a record in the type that filters use. A chunk is at most 64 MiB long.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn record_end(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl SectionWriter {
    pub(super) fn new(state: State, wants_ends: bool, wants_rows: bool) -> Self {
        Self {
            state,
            out: Buffer::default(),
            ends: Vec::new(),
            wants_ends,
            rows: wants_rows.then(Box::default),
            records: 0,
            log: None,
            log_memory: Vec::new(),
            closed: 0,
            aged: false,
            reset: true,
            sticky: Vec::new(),
            fresh: false,
            before_reset: Vec::new(),
            jumps: Vec::new(),
        }
    }

    /// Records a jump of the value in a cell. Returns the number of records in the chunk since its previous jump, or
    /// `u32::MAX` if that jump was in another chunk or before the last reset.
    pub(super) fn note_jump(&mut self, cell: u32) -> u32 {
        let now = (cell, self.closed, self.records);
        let Some(last) = self.jumps.iter_mut().find(|(of, ..)| *of == cell) else {
            self.jumps.push(now);
            return u32::MAX;
        };
        let (_, closed, records) = std::mem::replace(last, now);
        if closed == self.closed { self.records.saturating_sub(records) } else { u32::MAX }
    }

    /// Stores the end of the last record, if a filter needs the ends.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_end(&mut self) {
        if self.wants_ends {
            self.ends.push(record_end(self.out.end()));
        }
    }

    /// Divides the records written since the last call into rows. Must be called before their encoding changes.
    pub(super) fn divide(&mut self, format: &Format, order: Order) {
        if let Some(rows) = &mut self.rows {
            rows.divide(format, &self.state.encoding, order, self.out.in_use(), &self.ends);
        }
    }

    /// Returns the rows of the chunk, if a filter needs them.
    pub(super) fn take_rows(&mut self, format: &Format, order: Order) -> Option<Rows> {
        self.divide(format, order);
        self.rows.as_mut()?.finish()
    }

    /// Starts the next chunk with the DTD's initial state.
    pub(crate) fn restart(&mut self, format: &Format) {
        self.before_reset.clone_from(&self.state.history.cells);
        self.state.reset(format);
        self.out.close();
        self.log = None;
        self.reset = true;
        self.fresh = true;
        self.jumps.clear();
    }

    /// Starts a group. Also starts a log if there are live objects that the heap model may need.
    pub(crate) fn restart_group(&mut self, format: &Format) {
        let new = self.state.history.models.live();
        let live = match self.log.take() {
            Some(log) => {
                let live = log.live_after(&self.state.encoding.model_cells, new);
                self.log_memory = log.into_memory();
                live
            }
            None => new,
        };
        self.restart(format);
        self.closed = 0;
        self.aged = false;
        if live.iter().any(|(_, objects)| !objects.is_empty()) {
            self.log = Some(Box::new(Log::new(live, std::mem::take(&mut self.log_memory))));
        }
    }
}
