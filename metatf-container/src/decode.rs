//! Reverses the codec and the filter of chunks (spec 5.2), with engines that are created once and used for every chunk.

use super::chunk::{self, ChunkHeader};
use super::codec::{self, Decompress, Failure, STORED};
use super::content::{Contents, Owned};
use super::{columns, filter, record_dictionary_read};
use crate::{Error, ErrorKind, Result, memory};

/// A decoder, which reverses codecs and filters. Engines are created on first use.
#[derive(Default)]
pub struct Decoder {
    engines: [Option<Box<dyn Decompress>>; codec::COUNT],
    /// Decompressed bytes whose filter has not been reversed yet.
    scratch: Vec<u8>,
    contents: Contents,
    /// A copy of a payload from a mapped file, for a C library that must see the same bytes on every access. Copying
    /// takes 1% to 2% of the time for reading such chunks, excluding the decoding of records.
    copy: Vec<u8>,
}

/// Reverses the filter of a chunk.
fn unfilter(header: &ChunkHeader, filtered: &[u8], out: &mut [u8]) -> Result<(), Failure> {
    if header.has_filtered_len() {
        return record_dictionary_read::restore(filtered, header.filter == chunk::SPLIT_SUFFIX, out)
            .map_err(Failure::Payload);
    }
    filter::restore(filtered, header.width.into(), out);
    Ok(())
}

impl Decoder {
    /// Returns the content of the chunk at `start`, exactly `raw_len` bytes. Allocates at most twice as much memory,
    /// and none if the payload is too short to contain that much data. If `mapped` is set, the payload may change
    /// concurrently.
    pub(crate) fn decode(&mut self, header: &ChunkHeader, start: u64, payload: &[u8], mapped: bool) -> Result<Owned> {
        let wrong_len = |found: u64| {
            let expected = "the number of bytes the payload decompresses to";
            Error::at(start + chunk::at::RAW_LEN, ErrorKind::Invalid { what: "the chunk's raw_len", found, expected })
        };
        let raw_len = header.raw_len as usize;
        let filtered_len = if header.has_filtered_len() { header.filtered_len } else { header.raw_len };
        let has_columns = header.filter == chunk::COLUMNS;
        let built_in = codec::built_in(header.codec);
        let codec = built_in.map_err(|kind| Error::at(start + chunk::at::CODEC, kind))?;
        if !has_columns && u64::from(filtered_len) > (codec.most)(payload.len() as u64) {
            return Err(wrong_len(header.raw_len.into()));
        }
        let mut copy = std::mem::take(&mut self.copy);
        let payload = if mapped && codec.foreign {
            memory::copy(&mut copy, payload);
            &copy
        } else {
            payload
        };
        let mut memory = self.contents.take(raw_len);
        let Some(out) = memory.bytes() else {
            return Err(Error::at(start, ErrorKind::Limit("memory"))); // Unreachable: nobody else holds it.
        };
        let filled = self.fill(header, filtered_len as usize, payload, out);
        self.copy = copy;
        match filled {
            Ok(()) => Ok(self.contents.give(memory)),
            Err(failure) => {
                self.contents.put_back(memory);
                Err(match failure {
                    Failure::Length => wrong_len(header.raw_len.into()),
                    Failure::Payload(why) => Error::at(start + chunk::LEN as u64, ErrorKind::Decompress(why)),
                })
            }
        }
    }

    /// Reverses the codec and the filter. `filtered` is the number of bytes between the two steps.
    fn fill(&mut self, header: &ChunkHeader, filtered: usize, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        if header.filter == 0 {
            return self.unpack(header.codec, payload, out);
        }
        if header.filter == chunk::COLUMNS {
            let mut scratch = std::mem::take(&mut self.scratch);
            let mut unpack = |stored: &[u8], stream: &mut [u8]| self.unpack(header.codec, stored, stream);
            let restored = columns::restore(payload, &mut unpack, &mut scratch, out);
            self.scratch = scratch;
            return restored;
        }
        if header.codec == STORED {
            return unfilter(header, payload, out);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        // The current contents of the buffer are overwritten.
        if scratch.len() < filtered {
            scratch.resize(filtered, 0);
        }
        let part = scratch.get_mut(..filtered).unwrap_or_default();
        let unpacked = self.unpack(header.codec, payload, part).and_then(|()| unfilter(header, part, out));
        self.scratch = scratch;
        unpacked
    }

    /// Decompresses into `out`, filling it exactly.
    pub(crate) fn unpack(&mut self, codec: u8, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let engine = codec::entry(codec).and_then(|entry| entry.engine.as_ref());
        let (Some(engine), Some(made)) = (engine, self.engines.get_mut(usize::from(codec))) else {
            if payload.len() != out.len() {
                return Err(Failure::Length);
            }
            out.copy_from_slice(payload);
            return Ok(());
        };
        let engine = match made {
            Some(made) => made,
            none => none.insert((engine.decompress)()?),
        };
        engine.decompress(payload, out)
    }
}
