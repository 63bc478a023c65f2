//! zlib (RFC 1950). Each payload is a single stream.

use super::{Compress, Decompress, Engine, Failure};
use crate::{Error, ErrorKind, Result, memory};
use flate2::{Compression, FlushCompress, FlushDecompress, Status};

pub(super) const ENGINE: Engine = Engine {
    compress: Some(|| Box::new(ZlibEncoder(None))),
    decompress: || Ok(Box::new(flate2::Decompress::new(true))),
};

/// The level and the compressor for this level.
struct ZlibEncoder(Option<(i32, flate2::Compress)>);

impl Compress for ZlibEncoder {
    fn compress(&mut self, level: i32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let made = self.0.take().filter(|(now, _)| *now == level);
        let new = || (level, flate2::Compress::new(Compression::new(level.unsigned_abs().min(9)), true));
        let zlib = &mut self.0.insert(made.unwrap_or_else(new)).1;
        memory::reserve(out, raw.len()); // A longer result would be discarded.
        zlib.reset();
        let status = zlib.compress_vec(raw, out, FlushCompress::Finish);
        let status = status.map_err(|_| Error::at(0, ErrorKind::Limit("zlib")))?;
        Ok(status == Status::StreamEnd)
    }
}

impl Decompress for flate2::Decompress {
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        self.reset(true);
        let damaged = Failure::Payload("the zlib stream is corrupt");
        let status = flate2::Decompress::decompress(self, payload, out, FlushDecompress::Finish);
        let status = status.map_err(|_| damaged)?;
        let filled = self.total_out() == out.len() as u64;
        let mut used = self.total_in();
        if status != Status::StreamEnd {
            if !filled {
                return Err(Failure::Payload("the zlib stream is truncated"));
            }
            // All expected bytes have been produced, but the checksum must still be read. A one-byte output buffer
            // detects whether the stream contains more data instead.
            let rest = usize::try_from(used).ok().and_then(|n| payload.get(n..)).unwrap_or(&[]);
            let status = flate2::Decompress::decompress(self, rest, &mut [0], FlushDecompress::Finish);
            let ended = status.is_ok_and(|status| status == Status::StreamEnd);
            if !ended || self.total_out() != out.len() as u64 {
                return Err(Failure::Length);
            }
            used = self.total_in();
        } else if !filled {
            return Err(Failure::Length);
        }
        if used != payload.len() as u64 {
            return Err(Failure::Payload("excess bytes follow the zlib stream"));
        }
        Ok(())
    }
}
