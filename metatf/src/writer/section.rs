//! One section of a trace that is written: its state, and its records that are not in a chunk yet.

use super::carry_over::{Log, Room};
use crate::buffer::Buffer;
use crate::format::Format;
use crate::state::{Change, State};

/// One section of a trace being written.
pub(crate) struct SectionWriter {
    pub(crate) state: State,
    /// Encoded records that are not in a chunk yet. Where it is open, see `RecordWriter::open`, nothing has to be asked of a
    /// record but its tier.
    pub(crate) out: Buffer,
    /// Where the records in `out` end, metadata records and comments counted; if that is to be noted.
    pub(crate) ends: Vec<u32>,
    /// Whether a filter wants to know where records end.
    pub(super) notes: bool,
    /// Data records in `out`.
    pub(crate) records: u32,
    /// What a heap's model was given in this group, while it may turn out that it should have known more.
    pub(crate) log: Option<Box<Log>>,
    /// For the next log.
    pub(crate) room: Room,
    /// Chunks of this group that are closed.
    pub(crate) closed: u32,
    /// The next chunk resets the state.
    pub(crate) reset: bool,
    /// Changes to make again after every reset: record, leaf, whether it is for all leaves of the name, change.
    pub(super) sticky: Vec<(u16, u8, bool, Change)>,
    /// The sticky changes are due.
    pub(super) fresh: bool,
}

/// Where a record ends: a chunk has at most 64 MiB.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn end(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl SectionWriter {
    pub(super) fn new(state: State, notes: bool) -> Self {
        Self {
            state,
            out: Buffer::default(),
            ends: Vec::new(),
            notes,
            records: 0,
            log: None,
            room: Room::default(),
            closed: 0,
            reset: true,
            sticky: Vec::new(),
            fresh: false,
        }
    }

    /// A record ends here.
    #[inline]
    pub(super) fn note_end(&mut self) {
        if self.notes {
            self.ends.push(end(self.out.end()));
        }
    }

    /// The next chunk starts from the DTD's state.
    pub(crate) fn restart(&mut self, format: &Format) {
        self.state.reset(format);
        self.out.shut();
        self.log = None;
        self.reset = true;
        self.fresh = true;
    }

    /// A group starts: it may turn out that its heap's model should know what is live.
    pub(crate) fn restart_group(&mut self, format: &Format) {
        let new = self.state.models.live();
        let live = match self.log.take() {
            Some(log) => {
                let live = log.after(&self.state.model_cells, new);
                self.room = log.into_room();
                live
            }
            None => new,
        };
        self.restart(format);
        self.closed = 0;
        if live.iter().any(|(_, objects)| !objects.is_empty()) {
            self.log = Some(Box::new(Log::new(live, std::mem::take(&mut self.room))));
        }
    }
}
