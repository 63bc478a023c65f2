//! Compressing and filtering chunks as they are written (spec 5.2). The mirror of the codecs' decoder.

use super::options::{Codec, Filter};
use super::{chunk, filter, phrases};
use crate::{Error, ErrorKind, Result};

/// Chunks of a section between two in which all filters are tried.
const RETRY: u8 = 16;

/// Compresses chunks; contexts and buffers are made once.
pub(crate) struct Encoder {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    zlib: Option<(u32, flate2::Compress)>,
    filtered: Vec<u8>,
    /// The payload made last, and the shortest one.
    tried: Vec<u8>,
    chosen: Vec<u8>,
    /// By section: the filter that `Auto` found best, and chunks until all are tried again.
    best: Box<[(u8, u8); 256]>,
}

/// A chunk's payload.
pub(crate) struct Encoded<'e> {
    pub(crate) payload: &'e [u8],
    pub(crate) codec: u8,
    pub(crate) filter: u8,
    /// For the chunk header.
    pub(crate) filtered_len: usize,
}

/// A chunk's content, and what filters need to know of it.
pub(crate) struct Content<'c> {
    pub(crate) raw: &'c [u8],
    /// Size of its elements; 0 or 1: none.
    pub(crate) element: u8,
    /// Where its records end; empty: it has none.
    pub(crate) ends: &'c [u32],
}

/// How a chunk may be stored.
struct Choice {
    filter: u8,
    codec: u8,
    filtered_len: usize,
    length: usize,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            zstd: None,
            zlib: None,
            filtered: Vec::new(),
            tried: Vec::new(),
            chosen: Vec::new(),
            best: Box::new([(0, 0); 256]),
        }
    }

    /// The shortest payload the options allow; `raw` itself where nothing makes it shorter.
    pub(crate) fn encode<'e>(
        &'e mut self,
        section: u8,
        (codec, filter): (Codec, Filter),
        content: &Content<'e>,
    ) -> Result<Encoded<'e>> {
        let raw = content.raw;
        let transposes = (2..=255).contains(&content.element) && raw.len().is_multiple_of(content.element.into());
        let can = |filter| match filter {
            chunk::TRANSPOSE => transposes && !raw.is_empty(),
            chunk::PHRASES => !content.ends.is_empty(),
            _ => true,
        };
        let all = [0, chunk::TRANSPOSE, chunk::PHRASES];
        let (best, left) = self.best[usize::from(section)];
        let (wanted, trial) = match filter {
            Filter::Transpose => ([chunk::TRANSPOSE; 3], false),
            Filter::Phrases => ([chunk::PHRASES; 3], false),
            Filter::Auto if codec != Codec::Stored && (left == 0 || !can(best)) => (all, true),
            Filter::Auto if codec != Codec::Stored => ([best; 3], false),
            Filter::None | Filter::Auto => ([0; 3], false),
        };
        let mut chosen: Option<Choice> = None;
        let mut tried = [false; 3];
        for filter in wanted.into_iter().map(|filter| if can(filter) { filter } else { 0 }) {
            if !std::mem::replace(&mut tried[usize::from(filter)], true) {
                let choice = self.try_filter(codec, filter, content)?;
                let shorter = |best: &Choice| choice.length < best.length;
                if chosen.as_ref().is_none_or(shorter) {
                    chosen = Some(choice);
                    std::mem::swap(&mut self.chosen, &mut self.tried);
                }
            }
        }
        let plain = Choice { filter: 0, codec: super::codec::STORED, filtered_len: 0, length: raw.len() };
        let choice = chosen.filter(|c| c.length < raw.len() || codec == Codec::Stored).unwrap_or(plain);
        self.best[usize::from(section)] = match (filter, trial) {
            (Filter::Auto, true) => (choice.filter, RETRY - 1),
            (Filter::Auto, false) => (best, left.saturating_sub(1)),
            _ => (best, left),
        };
        let payload = if choice.filter == 0 && choice.codec == super::codec::STORED { raw } else { &self.chosen };
        Ok(Encoded { payload, codec: choice.codec, filter: choice.filter, filtered_len: choice.filtered_len })
    }

    /// The payload by this filter, in `self.tried`.
    fn try_filter(&mut self, codec: Codec, filter: u8, content: &Content<'_>) -> Result<Choice> {
        let mut filtered = std::mem::take(&mut self.filtered);
        let mut tried = std::mem::take(&mut self.tried);
        match filter {
            chunk::TRANSPOSE => {
                filtered.resize(content.raw.len(), 0);
                filter::transpose(content.raw, content.element.into(), &mut filtered);
            }
            chunk::PHRASES => phrases::filter(content.raw, content.ends, &mut filtered),
            _ => filtered.clear(),
        }
        let input = if filter == 0 { content.raw } else { &filtered };
        let packed = self.compress(codec, input, &mut tried)?;
        if !packed {
            tried.clear();
            tried.extend_from_slice(input);
        }
        let filtered_len = if filter == chunk::PHRASES { filtered.len() } else { 0 };
        let codec = if packed { codec.number() } else { super::codec::STORED };
        let choice = Choice { filter, codec, filtered_len, length: tried.len() };
        (self.filtered, self.tried) = (filtered, tried);
        Ok(choice)
    }

    /// Filters are tried anew on the next chunk of a section.
    pub(crate) fn forget(&mut self, section: u8) {
        self.best[usize::from(section)].1 = 0;
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
