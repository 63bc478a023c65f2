//! The codecs of chunks (spec 5.2), with contexts that are made once and used for every chunk.

use super::chunk::{self, ChunkHeader};
use super::content::{Contents, Owned};
use super::{filter, phrases_read};
use crate::{Error, ErrorKind, Result};

pub(crate) const STORED: u8 = 0;
pub(crate) const ZSTD: u8 = 1;
pub(crate) const LZ4: u8 = 2;
pub(crate) const ZLIB: u8 = 3;

/// Undoes codec and filter. Contexts are made when first needed.
#[derive(Default)]
pub struct Decoder {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    zlib: Option<flate2::Decompress>,
    /// Decompressed bytes whose filter is not undone yet.
    scratch: Vec<u8>,
    contents: Contents,
}

/// What a codec makes of a payload.
enum Failure {
    /// More or fewer bytes than `raw_len`.
    Length,
    /// Not a payload of this codec.
    Payload(&'static str),
}

/// Undoes the filter of a chunk.
fn unfilter(header: &ChunkHeader, filtered: &[u8], out: &mut [u8]) -> Result<(), Failure> {
    if header.has_filtered_len() {
        return phrases_read::restore(filtered, header.filter == chunk::TAILS, out).map_err(Failure::Payload);
    }
    filter::restore(filtered, header.width.into(), out);
    Ok(())
}

impl Decoder {
    /// The content of the chunk at `start`, exactly `raw_len` bytes. Never allocates more than twice that, and not
    /// even that where the payload is too short to hold so much.
    pub(crate) fn decode(&mut self, header: &ChunkHeader, start: u64, payload: &[u8]) -> Result<Owned> {
        let wrong_len = |found: u64| {
            let expected = "the number of bytes the payload decompresses to";
            Error::at(start + chunk::at::RAW_LEN, ErrorKind::Invalid { what: "the chunk's raw_len", found, expected })
        };
        let raw_len = header.raw_len as usize;
        let filtered_len = if header.has_filtered_len() { header.filtered_len } else { header.raw_len };
        if u64::from(filtered_len) > most(header.codec, payload.len() as u64) {
            return Err(wrong_len(header.raw_len.into()));
        }
        let mut room = self.contents.room(raw_len);
        let Some(out) = room.bytes() else {
            return Err(Error::at(start, ErrorKind::Limit("memory"))); // Not reached: nobody else has it.
        };
        match self.fill(header, filtered_len as usize, payload, out) {
            Ok(()) => Ok(self.contents.give(room)),
            Err(failure) => {
                self.contents.take_back(room);
                Err(match failure {
                    Failure::Length => wrong_len(header.raw_len.into()),
                    Failure::Payload(why) => Error::at(start + chunk::LEN as u64, ErrorKind::Decompress(why)),
                })
            }
        }
    }

    /// Undoes codec and filter, between which there are so many bytes.
    fn fill(&mut self, header: &ChunkHeader, filtered: usize, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        if header.filter == 0 {
            return self.unpack(header.codec, payload, out);
        }
        if header.codec == STORED {
            return unfilter(header, payload, out);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        // What is in it already is overwritten.
        if scratch.len() < filtered {
            scratch.resize(filtered, 0);
        }
        let room = scratch.get_mut(..filtered).unwrap_or_default();
        let unpacked = self.unpack(header.codec, payload, room).and_then(|()| unfilter(header, room, out));
        self.scratch = scratch;
        unpacked
    }

    /// Fills `out` exactly.
    fn unpack(&mut self, codec: u8, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        match codec {
            STORED if payload.len() == out.len() => {
                out.copy_from_slice(payload);
                Ok(())
            }
            ZSTD => self.unpack_zstd(payload, out),
            LZ4 => match lz4_flex::block::decompress_into(payload, out) {
                Ok(n) if n == out.len() => Ok(()),
                Ok(_) | Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => Err(Failure::Length),
                Err(_) => Err(Failure::Payload("it is not an LZ4 block")),
            },
            ZLIB => self.unpack_zlib(payload, out),
            _ => Err(Failure::Payload("the codec is not known")),
        }
    }

    fn unpack_zstd(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let none = Failure::Payload("there is no memory for zstd");
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none_yet => none_yet.insert(zstd::bulk::Decompressor::new().map_err(|_| none)?),
        };
        match zstd::zstd_safe::find_frame_compressed_size(payload) {
            Ok(n) if n == payload.len() => {}
            Ok(_) => return Err(Failure::Payload("there are bytes after the zstd frame")),
            Err(_) => return Err(Failure::Payload("it is not a zstd frame")),
        }
        let announced = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten();
        if announced.is_some_and(|n| n != out.len() as u64) {
            return Err(Failure::Length);
        }
        match zstd.decompress_to_buffer(payload, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(_) => Err(Failure::Length),
            // The message is the only thing that tells zstd's errors apart.
            Err(e) if e.to_string().contains("too small") => Err(Failure::Length),
            Err(_) => Err(Failure::Payload("the zstd frame is damaged")),
        }
    }

    fn unpack_zlib(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Failure> {
        let zlib = self.zlib.get_or_insert_with(|| flate2::Decompress::new(true));
        zlib.reset(true);
        let damaged = Failure::Payload("the zlib stream is damaged");
        let status = zlib.decompress(payload, out, flate2::FlushDecompress::Finish);
        let status = status.map_err(|_| damaged)?;
        let filled = zlib.total_out() == out.len() as u64;
        let mut used = zlib.total_in();
        if status != flate2::Status::StreamEnd {
            if !filled {
                return Err(Failure::Payload("the zlib stream is cut short"));
            }
            // All bytes are there, and the checksum has still to be read, which one byte of room tells from more data.
            let rest = usize::try_from(used).ok().and_then(|n| payload.get(n..)).unwrap_or(&[]);
            let status = zlib.decompress(rest, &mut [0], flate2::FlushDecompress::Finish);
            let ended = status.is_ok_and(|status| status == flate2::Status::StreamEnd);
            if !ended || zlib.total_out() != out.len() as u64 {
                return Err(Failure::Length);
            }
            used = zlib.total_in();
        } else if !filled {
            return Err(Failure::Length);
        }
        if used != payload.len() as u64 {
            return Err(Failure::Payload("there are bytes after the zlib stream"));
        }
        Ok(())
    }
}

/// The most bytes that a payload can hold: nothing is allocated for a length it cannot reach.
fn most(codec: u8, payload: u64) -> u64 {
    match codec {
        ZSTD => (payload / 4 + 1) * (128 << 10), // A block of at most 128 KiB takes 4 bytes at least.
        LZ4 => payload * 255 + 64,
        ZLIB => payload * 1040 + 64, // Deflate's least: 258 bytes in 2 bits.
        _ => payload,
    }
}
