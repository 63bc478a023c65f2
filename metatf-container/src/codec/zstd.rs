//! zstd (RFC 8878), using the C library. Each payload is a single frame.

use super::{Compress, Decompress, Engine, Failure};
use crate::{Result, memory};
use zstd::bulk::Compressor;
use zstd::zstd_safe::{self, DCtx, zstd_sys::ZSTD_ErrorCode};

pub(super) const ENGINE: Engine = Engine {
    compress: Some(|| Box::new(ZstdEncoder(None))),
    decompress: || match DCtx::try_create() {
        Some(context) => Ok(Box::new(context)),
        None => Err(Failure::Payload("out of memory for zstd")),
    },
};

/// The level and the compressor for this level.
struct ZstdEncoder(Option<(i32, Compressor<'static>)>);

impl Compress for ZstdEncoder {
    fn compress(&mut self, level: i32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let (now, zstd) = match &mut self.0 {
            Some(made) => made,
            none => none.insert((level, Compressor::new(level)?)),
        };
        if *now != level {
            zstd.set_compression_level(level)?;
            *now = level;
        }
        memory::reserve(out, zstd_safe::compress_bound(raw.len()));
        zstd.compress_to_buffer(raw, out)?;
        Ok(true)
    }
}

impl Decompress for DCtx<'static> {
    fn decompress(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        match zstd_safe::find_frame_compressed_size(payload) {
            Ok(n) if n == payload.len() => {}
            Ok(_) => return Err(Failure::Payload("excess bytes follow the zstd frame")),
            Err(_) => return Err(Failure::Payload("the payload is not a zstd frame")),
        }
        let announced = zstd_safe::get_frame_content_size(payload).ok().flatten();
        if announced.is_some_and(|n| n != out.len() as u64) {
            return Err(Failure::Length);
        }
        // The C library returns its error codes as negative numbers.
        const TOO_SMALL: usize = (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg();
        match DCtx::decompress(self, out, payload) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(_) | Err(TOO_SMALL) => Err(Failure::Length),
            Err(_) => Err(Failure::Payload("the zstd frame is corrupt")),
        }
    }
}
