//! The trace in a file, as a writer that continues it sees it.

use super::header::Header;
use super::index::ChunkInfo;

/// A trace in a sink, which a writer continues.
#[doc(hidden)]
#[derive(Debug)]
pub struct ExistingTrace {
    pub(crate) header: Header,
    /// The text of the embedded DTD.
    pub dtd: Vec<u8>,
    pub(crate) chunks: Vec<ChunkInfo>,
    /// End of the last chunk that is kept.
    pub(crate) end: u64,
}
