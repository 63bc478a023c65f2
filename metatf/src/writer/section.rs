//! One section of a trace that is written: its state, and its records that are not in a chunk yet.

use super::carry_over::{Log, LoggedAddress};
use crate::buffer::Buffer;
use crate::format::Format;
use crate::state::{Change, State};

/// One section of a trace being written.
pub(crate) struct SectionWriter {
    pub(crate) state: State,
    /// Encoded records that are not in a chunk yet. While it is open, see `RecordWriter::open`, a record's tier alone decides how it
    /// is written.
    pub(crate) out: Buffer,
    /// Ends of the records in `out`, metadata records and comments counted, where a filter wants them.
    pub(crate) ends: Vec<u32>,
    /// Whether a filter wants to know where records end.
    pub(super) wants_ends: bool,
    /// Data records in `out`.
    pub(crate) records: u32,
    /// The inputs of a heap's model in this group, while live objects may yet be carried into it.
    pub(crate) log: Option<Box<Log>>,
    /// Memory for the next log.
    pub(crate) log_memory: Vec<LoggedAddress>,
    /// Chunks of this group that are closed.
    pub(crate) closed: u32,
    /// The next chunk resets the state.
    pub(crate) reset: bool,
    /// Changes to make again after every reset: record, leaf, whether it is for all leaves of the name, change.
    pub(super) sticky: Vec<(u16, u8, bool, Change)>,
    /// The sticky changes are due.
    pub(super) fresh: bool,
    /// Jumps of values since the last reset: their cell, the chunks closed then, and the records in the open one.
    jumps: Vec<(u32, u32, u32)>,
}

/// Gives the end of a record as filters take it: a chunk has at most 64 MiB.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn record_end(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl SectionWriter {
    pub(super) fn new(state: State, wants_ends: bool) -> Self {
        Self {
            state,
            out: Buffer::default(),
            ends: Vec::new(),
            wants_ends,
            records: 0,
            log: None,
            log_memory: Vec::new(),
            closed: 0,
            reset: true,
            sticky: Vec::new(),
            fresh: false,
            jumps: Vec::new(),
        }
    }

    /// Notes a jump of the value in a cell. Gives the records of the chunk since its last one, or `u32::MAX` if that was in another
    /// chunk, or there was none since the last reset.
    pub(super) fn note_jump(&mut self, cell: u32) -> u32 {
        let now = (cell, self.closed, self.records);
        let Some(last) = self.jumps.iter_mut().find(|(of, ..)| *of == cell) else {
            self.jumps.push(now);
            return u32::MAX;
        };
        let (_, closed, records) = std::mem::replace(last, now);
        if closed == self.closed { self.records.saturating_sub(records) } else { u32::MAX }
    }

    /// Notes the end of a record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note_end(&mut self) {
        if self.wants_ends {
            self.ends.push(record_end(self.out.end()));
        }
    }

    /// Starts the next chunk from the DTD's state.
    pub(crate) fn restart(&mut self, format: &Format) {
        self.state.reset(format);
        self.out.close();
        self.log = None;
        self.reset = true;
        self.fresh = true;
        self.jumps.clear();
    }

    /// Starts a group, and a log where objects are live that its heap's model may have to know.
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
        if live.iter().any(|(_, objects)| !objects.is_empty()) {
            self.log = Some(Box::new(Log::new(live, std::mem::take(&mut self.log_memory))));
        }
    }
}
