//! Parts whose columns are kept, so that callers can decompress only the columns that they need.

use super::chunk::ChunkHeader;
use super::columns::ChunkColumns;
use super::part::{Content, Part};
use super::read::{Body, Reader};
use crate::Result;
use std::fmt;
use std::sync::Arc;

/// The compressed columns of a chunk.
#[derive(Clone)]
pub struct KeptColumns {
    header: ChunkHeader,
    start: u64,
    /// A copy, because another process may change the bytes of a mapped file.
    payload: Arc<[u8]>,
}

impl KeptColumns {
    pub(super) fn new(header: &ChunkHeader, start: u64, payload: &[u8]) -> Self {
        Self { header: *header, start, payload: payload.into() }
    }
}

impl fmt::Debug for KeptColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptColumns").field("start", &self.start).finish_non_exhaustive()
    }
}

impl Reader<'_> {
    /// Sets whether the columns of later chunks are kept. Otherwise, they are turned into content. Has no effect on
    /// salvaging.
    #[doc(hidden)]
    pub fn keep_columns(&mut self, on: bool) {
        if let Body::Chunks(chunks) = &mut self.body {
            chunks.keeps_columns = on && self.salvage.is_none();
        }
    }

    /// Turns the kept columns of a part, if any, into content.
    ///
    /// # Errors
    /// Returns an error if the chunk is invalid.
    #[doc(hidden)]
    pub fn assemble(&mut self, part: &mut Part) -> Result<()> {
        if let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content) {
            let KeptColumns { header, start, payload } = kept;
            part.content = Content::Owned(chunks.decoder.decode(header, *start, payload, false)?);
        }
        Ok(())
    }

    /// Returns the kept columns of a part, or `None` if there are none or if they are invalid.
    #[doc(hidden)]
    pub fn columns(&mut self, part: &Part) -> Option<ChunkColumns> {
        let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content) else { return None };
        let mut unpack = |stored: &[u8], out: &mut [u8]| chunks.decoder.unpack(kept.header.codec, stored, out);
        ChunkColumns::new(&kept.payload, kept.header.raw_len as usize, &mut unpack).ok()
    }

    /// Decompresses the elements of some columns. Returns `None` if they are invalid.
    #[doc(hidden)]
    pub fn load_columns(&mut self, part: &Part, columns: &mut ChunkColumns, wanted: &[u16]) -> Option<()> {
        let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content) else { return None };
        let mut unpack = |stored: &[u8], out: &mut [u8]| chunks.decoder.unpack(kept.header.codec, stored, out);
        columns.load(&kept.payload, wanted, &mut unpack).ok()
    }
}
