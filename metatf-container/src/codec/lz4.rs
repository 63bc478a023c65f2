//! LZ4. Each payload is a single block.

use super::{Compress, Decompress, Engine, Failure};
use crate::{Error, ErrorKind, Result};
use lz4_flex::block;

pub(super) const ENGINE: Engine = Engine { compress: Some(|| Box::new(Lz4)), decompress: || Ok(Box::new(Lz4)) };

struct Lz4;

impl Compress for Lz4 {
    fn compress(&mut self, _: i32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.resize(block::get_maximum_output_size(raw.len()), 0);
        let len = block::compress_into(raw, out).map_err(|_| Error::at(0, ErrorKind::Limit("LZ4")))?;
        out.truncate(len);
        Ok(true)
    }
}

impl Decompress for Lz4 {
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        match block::decompress_into(payload, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(_) | Err(block::DecompressError::OutputTooSmall { .. }) => Err(Failure::Length),
            Err(_) => Err(Failure::Payload("the payload is not a valid LZ4 block")),
        }
    }
}
