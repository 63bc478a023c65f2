//! The untrusted bytes of a buffers file from a killed or running process.

use core::mem::offset_of;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::clock::{Clock, Moment};
use crate::error::Error;
use crate::events::{Part, after};
use crate::folder;
use crate::layout::{
    BLOCKS, BYTE_ORDER, Batch, ChunkHead, Header, MAGIC, MAGIC_CHUNKS, RING_HEAD_BYTES, RING_LEAST, RING_MOST,
    RINGS_MOST, RingHead, STRINGS_BYTES, TEXTS_AT, TEXTS_MOST, THREAD, VERSION, of_head, ring_at,
};

/// Number of bytes of a ring to read at a time.
const PIECE: u64 = 16 << 10;
/// Number of attempts to read a ring that a process overwrites in the meantime.
const TRIES: usize = 8;

/// The buffers in a file. They start at offset 0 in a buffers file, but at another offset in a core dump.
pub(crate) struct Image {
    file: File,
    pub(crate) path: PathBuf,
    from: u64,
    head: Vec<u8>,
    pub(crate) texts: ImageTexts,
    ring_bytes: u64,
    rings_at: u64,
    /// Number of rings of `ring_bytes`, which are followed by the small rings.
    long_rings: u32,
    /// Total number of rings.
    pub(crate) rings: u32,
    pub(crate) clock: Clock,
    /// Whether the rings are buffers of the header for C, each with a chunk.
    pub(crate) has_chunks: bool,
}

/// The strings in a buffers file.
#[derive(Debug, Default)]
pub(crate) struct ImageTexts {
    pub(crate) dtd: String,
    pub(crate) table: String,
    pub(crate) name: String,
    /// The path of the trace, as bytes of the system.
    pub(crate) trace: Vec<u8>,
}

/// A ring, as described by its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageRing {
    pub(crate) thread: u32,
    pub(crate) name: [u64; 2],
    head: u64,
    oldest: u64,
    pub(crate) dropped: u64,
    ends: [u64; 2],
}

/// The information about a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageBatch {
    pub(crate) moment: Moment,
    pub(crate) sync: (u64, u64),
    pub(crate) records: [u64; 256],
    /// Bytes of the strings written to the trace up to this batch.
    pub(crate) strings: u64,
}

/// Number of bytes in a chunk before its records.
const CHUNK_HEADER: u32 = 48;

/// A chunk that was not written to the trace.
pub(crate) struct ImageChunk {
    pub(crate) thread: u32,
    pub(crate) section: u8,
    pub(crate) sent: u64,
    pub(crate) content: Vec<u8>,
}

fn damaged(what: &str) -> Error {
    Error::Trace(format!("the input contains no telemetry buffers, or the buffers are corrupt: {what}"))
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    let error = match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the file is too short"),
        _ => error,
    };
    Error::File("read", path.to_owned(), error)
}

impl Image {
    /// Reads the header of buffers at an offset in a file of this name.
    pub(crate) fn open(file: File, path: &Path, from: u64) -> Result<Self, Error> {
        let mut head = vec![0; size_of::<Header>()];
        file.read_exact_at(&mut head, from).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the file is too short"),
            _ => unreadable(path, error),
        })?;
        let mut image = Self {
            file,
            path: path.to_owned(),
            from,
            head,
            texts: ImageTexts::default(),
            ring_bytes: 0,
            rings_at: 0,
            long_rings: 0,
            rings: 0,
            clock: Clock::Monotonic,
            has_chunks: false,
        };
        image.has_chunks = image.u64(offset_of!(Header, magic)) == MAGIC_CHUNKS;
        if !image.has_chunks && image.u64(offset_of!(Header, magic)) != MAGIC {
            return Err(damaged("the magic number is missing"));
        }
        if image.u32(offset_of!(Header, byte_order)) != BYTE_ORDER {
            return Err(Error::Trace(
                "the buffers are from a machine with a different byte order; read them on that machine".to_owned(),
            ));
        }
        match image.u32(offset_of!(Header, version)) {
            VERSION => {}
            other => {
                return Err(Error::Trace(format!(
                    "the buffers have version {other}, but this program reads version {VERSION}"
                )));
            }
        }
        image.ring_bytes = image.u64(offset_of!(Header, ring_bytes));
        image.rings_at = image.u64(offset_of!(Header, rings_at));
        image.long_rings = image.u32(offset_of!(Header, rings));
        let rare = image.u32(offset_of!(Header, rare_rings));
        image.rings = image.long_rings.saturating_add(rare);
        image.clock =
            Clock::from_number(image.u32(offset_of!(Header, clock))).ok_or_else(|| damaged("the clock is unknown"))?;
        let is_length = match image.has_chunks {
            true => image.ring_bytes <= RING_MOST,
            false => image.ring_bytes.is_power_of_two() && (RING_LEAST..=RING_MOST).contains(&image.ring_bytes),
        };
        if !is_length {
            return Err(damaged("the ring length is invalid"));
        }
        if image.long_rings.max(rare) > RINGS_MOST {
            return Err(damaged("there are too many rings"));
        }
        image.texts()?;
        Ok(image)
    }

    fn read_exact(&self, bytes: &mut [u8], at: u64) -> Result<(), Error> {
        self.file.read_exact_at(bytes, at).map_err(|error| unreadable(&self.path, error))
    }

    fn texts(&mut self) -> Result<(), Error> {
        let fields = [
            offset_of!(Header, dtd_bytes),
            offset_of!(Header, table_bytes),
            offset_of!(Header, name_bytes),
            offset_of!(Header, trace_bytes),
        ];
        let lengths = fields.map(|field| u64::from(self.u32(field)));
        let all: u64 = lengths.iter().sum();
        if all > TEXTS_MOST || self.rings_at < TEXTS_AT + all {
            return Err(damaged("the strings exceed their area"));
        }
        let mut bytes = vec![0; usize::try_from(all).unwrap_or(0)];
        self.read_exact(&mut bytes, self.from.saturating_add(TEXTS_AT))?;
        let mut rest = bytes.as_slice();
        let mut texts = lengths.map(|length| {
            let (text, left) = rest.split_at(usize::try_from(length).unwrap_or(0).min(rest.len()));
            rest = left;
            text.to_vec()
        });
        let text = |bytes: &mut Vec<u8>| {
            String::from_utf8(std::mem::take(bytes)).map_err(|_| damaged("a string is not valid UTF-8"))
        };
        let [dtd, table, name, trace] = &mut texts;
        self.texts =
            ImageTexts { dtd: text(dtd)?, table: text(table)?, name: text(name)?, trace: std::mem::take(trace) };
        Ok(())
    }

    /// Returns whether a process has mapped the buffers.
    pub(crate) fn is_live(&self) -> bool {
        self.from == 0 && !folder::is_abandoned(&self.file)
    }

    /// Writes bytes of the header, which the process will read.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at as u64)
    }

    /// Reads the current control word.
    pub(crate) fn control_now(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset_of!(Header, control) as u64)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn u64(&self, at: usize) -> u64 {
        word(&self.head, at)
    }

    fn u32(&self, at: usize) -> u32 {
        self.head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    }

    pub(crate) fn process(&self) -> u32 {
        self.u32(offset_of!(Header, process))
    }

    pub(crate) fn start_nanoseconds(&self) -> u64 {
        self.u64(offset_of!(Header, start_nanoseconds))
    }

    pub(crate) fn start_wall(&self) -> u64 {
        self.u64(offset_of!(Header, start_wall))
    }

    pub(crate) fn rate(&self) -> u64 {
        self.u64(offset_of!(Header, rate))
    }

    pub(crate) fn refused(&self) -> u64 {
        self.u64(offset_of!(Header, refused))
    }

    pub(crate) fn control(&self) -> u64 {
        self.u64(offset_of!(Header, control))
    }

    /// Returns the numbers of the last batch in the trace and of the batch being written.
    pub(crate) fn batches(&self) -> (u64, u64) {
        (self.u64(offset_of!(Header, batch)), self.u64(offset_of!(Header, preparing)))
    }

    /// Returns the information about the batch on `side`, which is the lowest bit of the batch's number.
    pub(crate) fn batch(&self, side: usize) -> ImageBatch {
        let at = offset_of!(Header, batches) + side * size_of::<Batch>();
        let field = |field: usize| self.u64(at + field);
        let records = offset_of!(Batch, records);
        ImageBatch {
            moment: Moment {
                stamp: field(offset_of!(Batch, stamp)),
                nanoseconds: field(offset_of!(Batch, nanoseconds)),
            },
            sync: (field(offset_of!(Batch, sync_stamp)), field(offset_of!(Batch, sync_wall))),
            records: std::array::from_fn(|section| field(records + 8 * section)),
            strings: self.u64(offset_of!(Header, batch_strings) + 8 * side),
        }
    }

    /// Returns the number of strings for which there was no room.
    pub(crate) fn strings_refused(&self) -> u64 {
        self.u64(offset_of!(Header, strings_refused))
    }

    /// Reads the words of strings from an offset up to `to`, or up to their end.
    pub(crate) fn strings(&self, from: u64, to: Option<u64>) -> Result<Vec<u64>, Error> {
        let (at, end) = (self.u64(offset_of!(Header, strings_at)), self.u64(offset_of!(Header, strings)));
        let (from, end) = (from & !7, to.map_or(end, |to| to.min(end)));
        if at == 0 || end <= from {
            return Ok(Vec::new());
        }
        if end > STRINGS_BYTES {
            return Err(Error::Trace("the interned strings are corrupt: they exceed their area".to_owned()));
        }
        let mut content = vec![0; usize::try_from((end - from) & !7).unwrap_or(0)];
        self.read_exact(&mut content, self.from.saturating_add(at).saturating_add(from))?;
        Ok(content.chunks_exact(8).map(|bytes| word(bytes, 0)).collect())
    }

    /// Returns the offset of a ring and the size of its events in bytes.
    fn ring_at(&self, index: u32) -> (u64, u64) {
        ring_at(self.rings_at, self.ring_bytes, self.long_rings, index)
    }

    /// Reads the head of a ring. Returns `None` if the ring was never used.
    pub(crate) fn ring(&self, index: u32) -> io::Result<Option<ImageRing>> {
        let mut bytes = [0; size_of::<RingHead>()];
        let at = self.from.saturating_add(self.ring_at(index).0);
        self.file.read_exact_at(&mut bytes, at)?;
        let (first, second) = (offset_of!(RingHead, name), offset_of!(RingHead, ends));
        let dropped = word(&bytes, offset_of!(RingHead, dropped));
        let ring = ImageRing {
            // Unlike the other fields read here, the thread ID has 32 bits.
            thread: bytes
                .get(offset_of!(RingHead, thread)..)
                .and_then(|at| at.first_chunk())
                .map_or(0, |of| u32::from_ne_bytes(*of)),
            name: [word(&bytes, first), word(&bytes, first + 8)],
            head: word(&bytes, offset_of!(RingHead, head)),
            oldest: word(&bytes, offset_of!(RingHead, oldest)),
            dropped: dropped.saturating_sub(word(&bytes, offset_of!(RingHead, reported))),
            ends: [word(&bytes, second), word(&bytes, second + 8)],
        };
        Ok((ring.thread != 0).then_some(ring))
    }

    /// Reads the data of a ring from the end of the batch on `side`, and adds the names of its threads to `names`. If
    /// the process is running, the data may be overwritten in the meantime.
    pub(crate) fn part(
        &self,
        index: u32,
        ring: &ImageRing,
        side: usize,
        names: &mut BTreeMap<u32, String>,
    ) -> Result<Part, Error> {
        let from = self.end(ring, side).max(ring.oldest) & !7;
        // Start at a block, which begins by identifying its thread.
        let ring_bytes = self.ring_at(index).1;
        let block = from - from % (ring_bytes / BLOCKS);
        let begin = if block < ring.oldest { from } else { block };
        let bytes = ring.head.saturating_sub(begin);
        if bytes > ring_bytes {
            return Err(Error::Trace(format!("ring {index} is corrupt: its events exceed its size")));
        }
        let mut part = Part { dropped: ring.dropped, ..Part::default() };
        let mut begin = begin;
        // Data overwritten in the meantime is read again from the new start.
        for _ in 0..TRIES {
            part.from = begin;
            self.read(index, &mut part, ring.head, from, names)?;
            let oldest = self.ring(index).map_err(|error| unreadable(&self.path, error))?.map_or(0, |ring| ring.oldest);
            if oldest <= begin || oldest > ring.head {
                break;
            }
            begin = oldest & !7;
        }
        part.begin_at(from);
        Ok(part)
    }

    /// Reads the words of a part up to a position, or up to the first word that belongs to no event, because a forged
    /// file may contain a large amount of data after it.
    fn read(
        &self,
        index: u32,
        part: &mut Part,
        to: u64,
        from: u64,
        names: &mut BTreeMap<u32, String>,
    ) -> Result<(), Error> {
        part.words.clear();
        part.thread = 0;
        let mut at = 0;
        // An event may extend beyond the data read so far.
        while part.words.get(at).is_none_or(|head| of_head(*head, part.from.wrapping_add(8 * at as u64)).is_some()) {
            let position = part.from.wrapping_add(8 * part.words.len() as u64);
            let count = to.saturating_sub(position).min(PIECE) / 8;
            if count == 0 {
                break;
            }
            part.words.extend(self.words(index, position, usize::try_from(count).unwrap_or(0))?);
            while let Some((event, next)) = after(part, at) {
                if event == THREAD {
                    let word = |at: usize| part.words.get(at).copied().unwrap_or(0);
                    let (thread, name) = (word(at + 1) & 0xffff_ffff, [word(at + 2), word(at + 3)]);
                    let thread = u32::try_from(thread).unwrap_or(0);
                    if part.from.wrapping_add(8 * at as u64) <= from {
                        part.thread = thread;
                    }
                    names.entry(thread).or_insert_with(|| name_of(name));
                }
                at = next;
            }
        }
        part.words.truncate(at + 1);
        part.words.shrink_to_fit();
        Ok(())
    }

    /// Reads words of a ring.
    fn words(&self, index: u32, from: u64, count: usize) -> Result<Vec<u64>, Error> {
        let (events, ring_bytes) = self.ring_at(index);
        let events = events.saturating_add(RING_HEAD_BYTES);
        let mut content = vec![0; count * 8];
        // Read up to the end of the ring, and then from its start.
        let at = from & (ring_bytes - 1);
        let first = usize::try_from(ring_bytes - at).unwrap_or(usize::MAX).min(content.len());
        let (one, two) = content.split_at_mut(first);
        let place = self.from.saturating_add(events);
        self.read_exact(one, place.saturating_add(at))?;
        self.read_exact(two, place)?;
        Ok(content.chunks_exact(8).map(|bytes| word(bytes, 0)).collect())
    }

    /// Reads the chunk in a buffer of the C header, with the number of its emitter, its section, the bytes of its
    /// records, and the length of the trace including the chunk (or 0). Returns `None` if there is no chunk. If the
    /// process is running, the chunk may be written in the meantime.
    pub(crate) fn chunk(&self, index: u32) -> Result<Option<ImageChunk>, Error> {
        let at = self.from.saturating_add(self.ring_at(index).0);
        let mut content = Vec::new();
        for _ in 0..TRIES {
            let mut head = [0; size_of::<ChunkHead>()];
            self.read_exact(&mut head, at)?;
            let field = |at: usize| u32::try_from(word(&head, at & !7) >> (8 * (at & 7)) & 0xffff_ffff).unwrap_or(0);
            let (section, end) = (field(offset_of!(ChunkHead, section)), field(offset_of!(ChunkHead, end)));
            if end == 0 {
                return Ok(None);
            }
            if u64::from(end) > self.ring_bytes || end < CHUNK_HEADER || section > 255 {
                return Err(Error::Trace(format!("buffer {index} is corrupt: its events exceed its size")));
            }
            content.resize(usize::try_from(end - CHUNK_HEADER).unwrap_or(0), 0);
            let place = at.saturating_add(RING_HEAD_BYTES).saturating_add(u64::from(CHUNK_HEADER));
            self.read_exact(&mut content, place)?;
            let mut again = [0; size_of::<ChunkHead>()];
            self.read_exact(&mut again, at)?;
            let place = offset_of!(ChunkHead, chunks);
            if again.get(place..place + 4) == head.get(place..place + 4) {
                let (thread, sent) = (field(offset_of!(ChunkHead, thread)), word(&head, offset_of!(ChunkHead, sent)));
                let section = u8::try_from(section).unwrap_or(0);
                return Ok(Some(ImageChunk { thread, section, sent, content }));
            }
        }
        Err(Error::Trace(format!("buffer {index} is written faster than it can be read, so its events are omitted")))
    }

    /// Returns the end of the batch on `side` in a ring.
    pub(crate) fn end(&self, ring: &ImageRing, side: usize) -> u64 {
        ring.ends.get(side).copied().unwrap_or(0)
    }
}

/// Returns the name of a thread from its words, which are padded with zeros.
pub(crate) fn name_of(words: [u64; 2]) -> String {
    let bytes = words.map(u64::to_ne_bytes);
    let name = bytes.as_flattened().split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
