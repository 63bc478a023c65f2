//! Parts whose columns are kept, so that callers can decompress only the columns that they need.

use super::chunk::{self, ChunkHeader};
use super::columns::ChunkColumns;
use super::content::KeptColumns;
use super::part::{Content, Part};
use super::read::{Body, Reader};
use crate::Result;

impl KeptColumns {
    /// Returns the header and the payload of the chunk.
    fn parts(&self) -> Option<(ChunkHeader, &[u8])> {
        Some((ChunkHeader::parse(&self.chunk)?, self.chunk.get(chunk::LEN..)?))
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
        if let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content)
            && let Some((header, payload)) = kept.parts()
        {
            part.content = Content::Owned(chunks.decoder.decode(&header, kept.start, payload, false)?);
        }
        Ok(())
    }

    /// Returns the kept columns of a part, or `None` if there are none or if they are invalid.
    #[doc(hidden)]
    pub fn columns(&mut self, part: &Part) -> Option<ChunkColumns> {
        let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content) else { return None };
        let (header, payload) = kept.parts()?;
        let mut unpack = |stored: &[u8], out: &mut [u8]| chunks.decoder.unpack(header.codec, stored, out);
        ChunkColumns::new(payload, header.raw_len as usize, &mut unpack).ok()
    }

    /// Decompresses the elements of some columns. Returns `None` if they are invalid.
    #[doc(hidden)]
    pub fn load_columns(&mut self, part: &Part, columns: &mut ChunkColumns, wanted: &[u16]) -> Option<()> {
        let (Body::Chunks(chunks), Content::Columns(kept)) = (&mut self.body, &part.content) else { return None };
        let (header, payload) = kept.parts()?;
        let mut unpack = |stored: &[u8], out: &mut [u8]| chunks.decoder.unpack(header.codec, stored, out);
        columns.load(payload, wanted, &mut unpack).ok()
    }
}
