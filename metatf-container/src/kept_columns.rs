//! Parts whose columns are kept, so that callers can decompress only the columns that they need.

use super::chunk::{self, ChunkHeader};
use super::columns::ChunkColumns;
use super::decode::Decoder;
use super::part::{Content, Part};
use super::read::{Body, Reader};
use super::read_v1;
use crate::Result;

/// A chunk whose columns are kept.
struct Kept<'k> {
    decoder: &'k mut Decoder,
    header: ChunkHeader,
    payload: &'k [u8],
    mapped: bool,
}

impl Reader<'_> {
    /// Sets whether the columns of later chunks are kept. Otherwise, they are turned into content. Has no effect on
    /// salvaging or on traces that are neither mapped nor in memory.
    #[doc(hidden)]
    pub fn keep_columns(&mut self, on: bool) {
        if let Body::Chunks(chunks) = &mut self.body {
            chunks.keeps_columns = on && self.salvage.is_none();
        }
    }

    /// Turns the kept columns of a part, if any, into content.
    ///
    /// # Errors
    /// As for [`next_part`](Self::next_part).
    #[doc(hidden)]
    pub fn assemble(&mut self, part: &mut Part) -> Result<()> {
        if let Content::Columns(start) = part.content
            && let Some(Kept { decoder, header, payload, mapped }) = self.kept(part)?
        {
            part.content = Content::Owned(decoder.decode(&header, start, payload, mapped)?);
        }
        Ok(())
    }

    /// Returns the kept columns of a part, or `None` if there are none or if they are invalid.
    ///
    /// # Errors
    /// Returns an error if reading fails.
    #[doc(hidden)]
    pub fn columns(&mut self, part: &Part) -> Result<Option<ChunkColumns>> {
        let kept = self.kept(part)?;
        Ok(kept.and_then(|Kept { decoder, header, payload, mapped }| {
            let mut unpack = |stored: &[u8], out: &mut [u8]| decoder.unpack(header.codec, stored, out, mapped);
            ChunkColumns::new(payload, header.raw_len as usize, &mut unpack).ok()
        }))
    }

    /// Decompresses the elements of some columns. Returns false if they are invalid.
    ///
    /// # Errors
    /// Returns an error if reading fails.
    #[doc(hidden)]
    pub fn load_columns(&mut self, part: &Part, columns: &mut ChunkColumns, wanted: &[u16]) -> Result<bool> {
        let kept = self.kept(part)?;
        Ok(kept.is_some_and(|Kept { decoder, header, payload, mapped }| {
            let mut unpack = |stored: &[u8], out: &mut [u8]| decoder.unpack(header.codec, stored, out, mapped);
            columns.load(payload, wanted, &mut unpack).is_ok()
        }))
    }

    fn kept(&mut self, part: &Part) -> Result<Option<Kept<'_>>> {
        let (Body::Chunks(chunks), Content::Columns(start)) = (&mut self.body, &part.content) else { return Ok(None) };
        let Some(header) = ChunkHeader::parse(self.source.view(*start, chunk::LEN)?) else { return Ok(None) };
        let mapped = self.source.is_mapped();
        let payload = read_v1::payload(&mut self.source, &header, *start)?;
        Ok(Some(Kept { decoder: &mut chunks.decoder, header, payload, mapped }))
    }
}
