//! The trace in a file, as a writer that continues it sees it.

use super::header::Header;
use super::index::ChunkInfo;
use super::times::GroupTimes;

/// A trace in a sink, which a writer continues.
#[doc(hidden)]
#[derive(Debug)]
pub struct ExistingTrace {
    pub(crate) header: Header,
    /// The text of the embedded DTD.
    pub dtd: Vec<u8>,
    pub(crate) chunks: Vec<ChunkInfo>,
    /// The times of the groups, if the trace contains them.
    pub(crate) times: Option<GroupTimes>,
    /// End of the last chunk that is kept.
    pub(crate) end: u64,
}
