//! Compressing and filtering chunks as they are written (spec 5.2). The mirror of the codecs' decoder.

use super::filter;
use super::options::{Codec, Filter};
use crate::{Error, ErrorKind, Result};

/// Chunks of a section between two in which both filters are tried.
const RETRY: u8 = 16;

/// Compresses chunks; contexts and buffers are made once.
pub(crate) struct Encoder {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    zlib: Option<(u32, flate2::Compress)>,
    transposed: Vec<u8>,
    plain: Vec<u8>,
    filtered: Vec<u8>,
    /// By section: what `Auto` found best, and chunks until it is tried again.
    best: Box<[(bool, u8); 256]>,
}

/// A chunk's payload.
pub(crate) struct Encoded<'e> {
    pub(crate) payload: &'e [u8],
    pub(crate) codec: u8,
    pub(crate) filter: u8,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            zstd: None,
            zlib: None,
            transposed: Vec::new(),
            plain: Vec::new(),
            filtered: Vec::new(),
            best: Box::new([(false, 0); 256]),
        }
    }

    /// The shortest payload the options allow; `raw` itself where nothing makes it shorter. `element` is the size
    /// that the filter works with, 0 or 1: none.
    pub(crate) fn encode<'e>(
        &'e mut self,
        section: u8,
        (codec, filter): (Codec, Filter),
        element: usize,
        raw: &'e [u8],
    ) -> Result<Encoded<'e>> {
        let can = (2..=255).contains(&element) && raw.len().is_multiple_of(element) && !raw.is_empty();
        let best = &mut self.best[usize::from(section)];
        let (with, without) = match filter {
            _ if !can => (false, true),
            Filter::None => (false, true),
            Filter::Transpose => (true, false),
            Filter::Auto if codec == Codec::Stored => (false, true),
            Filter::Auto if best.1 > 0 => {
                best.1 -= 1;
                (best.0, !best.0)
            }
            Filter::Auto => (true, true),
        };
        let mut plain = std::mem::take(&mut self.plain);
        let mut filtered = std::mem::take(&mut self.filtered);
        let packed = without && self.compress(codec, raw, &mut plain)?;
        let packed_filtered = with && self.compress_transposed(codec, element, raw, &mut filtered)?;
        (self.plain, self.filtered) = (plain, filtered);

        let number = codec.number();
        let use_filtered = packed_filtered && (!packed || self.filtered.len() < self.plain.len());
        if with && without {
            self.best[usize::from(section)] = (use_filtered, RETRY - 1);
        }
        Ok(if use_filtered {
            Encoded { payload: &self.filtered, codec: number, filter: 1 }
        } else if packed {
            Encoded { payload: &self.plain, codec: number, filter: 0 }
        } else if with && codec == Codec::Stored {
            Encoded { payload: &self.transposed, codec: 0, filter: 1 }
        } else {
            Encoded { payload: raw, codec: 0, filter: 0 }
        })
    }

    fn compress_transposed(&mut self, codec: Codec, element: usize, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let mut runs = std::mem::take(&mut self.transposed);
        runs.resize(raw.len(), 0);
        filter::transpose(raw, element, &mut runs);
        let shorter = self.compress(codec, &runs, out);
        self.transposed = runs;
        shorter
    }

    /// Compresses into `out`; `false` where it did not get shorter, or is not to be compressed.
    fn compress(&mut self, codec: Codec, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        match codec {
            Codec::Stored => return Ok(false),
            Codec::Zstd(level) => {
                out.reserve(zstd::zstd_safe::compress_bound(raw.len()));
                self.zstd(level)?.compress_to_buffer(raw, out)?;
            }
            Codec::Lz4 => {
                out.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                let len = lz4_flex::block::compress_into(raw, out).map_err(|_| failed("LZ4"))?;
                out.truncate(len);
            }
            Codec::Zlib(level) => {
                out.reserve(raw.len()); // More would not be used.
                let zlib = self.zlib(level);
                zlib.reset();
                let status = zlib.compress_vec(raw, out, flate2::FlushCompress::Finish);
                return match status.map_err(|_| failed("zlib"))? {
                    flate2::Status::StreamEnd => Ok(out.len() < raw.len()),
                    _ => Ok(false),
                };
            }
        }
        Ok(out.len() < raw.len())
    }

    fn zstd(&mut self, level: i32) -> Result<&mut zstd::bulk::Compressor<'static>> {
        let (now, zstd) = match &mut self.zstd {
            Some(made) => made,
            none => none.insert((level, zstd::bulk::Compressor::new(level)?)),
        };
        if *now != level {
            zstd.set_compression_level(level)?;
            *now = level;
        }
        Ok(zstd)
    }

    fn zlib(&mut self, level: u32) -> &mut flate2::Compress {
        let level = level.min(9);
        let made = self.zlib.take().filter(|(now, _)| *now == level);
        let new = || (level, flate2::Compress::new(flate2::Compression::new(level), true));
        &mut self.zlib.insert(made.unwrap_or_else(new)).1
    }
}

fn failed(codec: &'static str) -> Error {
    Error::at(0, ErrorKind::Limit(codec))
}
