//! Raw records of 32 or 64 bytes, which consist of 8-byte little-endian words: the tag (1 malloc, 2 free, 3 calloc, 4
//! realloc, 5 memalign and its family), size, address, and old address. Records of 64 bytes also contain the time in
//! nanoseconds, the thread, the caller's return address, and an alignment or an element count.

use std::io::{BufRead, Write};

use serde_json::json;

use super::{EventWriter, Form, TraceReader};
use crate::event::{Call, Event, EventKind, EventSink, EventSource, Function, Item, UNKNOWN_SIZE, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::{Error, Result};

/// Raw records of 32 bytes.
pub static RAW32: Form = Form {
    name: "raw32",
    about: "Records of 32 bytes: tag, size, address, old address",
    suffixes: &[".raw32"],
    sniff: |_| false,
    open: Some(|input, _| Ok(TraceReader::new(RawSource::<_, 32>::new(input.into_read())))),
    create: Some(|output, _| Ok(Box::new(RawSink::<_, 32>::new(output)))),
    lost: "as `raw64`, and also times, threads, stacks, alignments and element counts",
};

pub(super) static RAW64: Form = Form {
    name: "raw64",
    about: "Records of 64 bytes: as raw32, plus time, thread, caller, and alignment or count",
    suffixes: &[".raw64"],
    sniff: |_| false,
    open: Some(|input, _| Ok(TraceReader::new(RawSource::<_, 64>::new(input.into_read())))),
    create: Some(|output, _| Ok(Box::new(RawSink::<_, 64>::new(output)))),
    lost: "stacks except the innermost frame, usable sizes, the exact memalign-like function, and all events except \
           calls",
};

/// 8-byte words in the longer format.
const WORDS: usize = 8;
/// Bytes collected before they are written.
const FULL: usize = 1 << 18;

/// A reader of raw records of `N` bytes, 32 or 64.
///
/// The [example of `RawSink`](RawSink#examples) reads a record.
pub struct RawSource<R, const N: usize> {
    read: R,
    /// The bytes read, which consist of complete records except at the end.
    buffer: Vec<u8>,
    at: usize,
    /// The input offset of `buffer[at]`.
    offset: u64,
    caller: [u64; 1],
    done: bool,
}

impl<R: BufRead, const N: usize> RawSource<R, N> {
    /// Creates a reader at the start of the records.
    pub fn new(read: R) -> Self {
        Self { read, buffer: Vec::new(), at: 0, offset: 0, caller: [0], done: false }
    }

    /// Reads complete records, as many as the input returns in one read. Returns false at the end.
    #[cold]
    fn fill(&mut self) -> Result<bool> {
        self.buffer.clear();
        self.at = 0;
        while !self.done {
            let there = self.read.fill_buf().map_err(Error::unreadable("raw records"))?;
            let length = there.len();
            self.buffer.extend_from_slice(there);
            self.read.consume(length);
            self.done = length == 0;
            if self.buffer.len().is_multiple_of(N) {
                break;
            }
        }
        Ok(!self.buffer.is_empty())
    }

    #[cold]
    fn odd(&mut self, kind: &str) -> Error {
        (self.done, self.at) = (true, self.buffer.len());
        Error::Trace(format!("raw{N}, byte {} (record {}): {kind}", self.offset, self.offset / N as u64).into())
    }

    /// Reads the words of the next record. Returns `None` at the end. A value that events cannot represent is an error,
    /// not a loss.
    #[inline(always)]
    fn words(&mut self) -> Result<Option<[u64; WORDS]>> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Ok(None);
        }
        let Some(record) = self.buffer.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) else {
            let left = self.buffer.len() - self.at;
            return Err(self.odd(&format!("expected a record of {N} bytes, found {left} bytes at the end")));
        };
        // Records of 32 bytes have neither a time nor a thread, so these default to 0 and 1.
        let stored = record.as_chunks::<8>().0;
        let word = |n, absent| stored.get(n).map_or(absent, |word| u64::from_le_bytes(*word));
        let words = [word(0, 0), word(1, 0), word(2, 0), word(3, 0), word(4, 0), word(5, 1), word(6, 0), word(7, 0)];
        let [tag, size, _, old, _, _, _, detail] = words;
        let plain = matches!(tag, 1..=5) && size != UNKNOWN_SIZE;
        let detailed = matches!(tag, 3 | 5);
        if !plain || (old != 0 && tag != 4) || (size != 0 && tag == 2) || (detail != 0 && !detailed) {
            return Err(self.nonsense(tag, size, old));
        }
        self.at += N;
        self.offset += N as u64;
        Ok(Some(words))
    }

    #[cold]
    fn nonsense(&mut self, tag: u64, size: u64, old: u64) -> Error {
        match tag {
            1..=5 if size == UNKNOWN_SIZE => self.odd("the size must be less than 2^64 - 1"),
            1..=5 if old != 0 && tag != 4 => self.odd("only a realloc can have an old address"),
            2 if size != 0 => self.odd("a free cannot have a size"),
            1..=5 => self.odd("the tag of the record does not allow an alignment or a count"),
            _ => self.odd(&format!("expected a tag from 1 to 5, found {tag}")),
        }
    }
}

/// Returns the event of a record. `stack` contains the caller's address.
#[inline(always)]
fn event(words: [u64; WORDS], stack: &[u64; 1]) -> Event<'_> {
    let [tag, size, address, old, time, thread, caller, detail] = words;
    let function = match tag {
        3 => Function::Calloc,
        4 => Function::Realloc,
        5 => Function::Memalign,
        _ => Function::Malloc,
    };
    let kind = match tag {
        2 => EventKind::Free { address },
        _ => EventKind::Call(Call { function, detail, size, usable: 0, old, address }),
    };
    let stack: &[u64] = if caller == 0 { &[] } else { stack };
    Event { kind, time, thread, heap: 0, stack: stack.into(), attributes: &[] }
}

impl<R: BufRead, const N: usize> EventSource for RawSource<R, N> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        let Some(words) = self.words()? else { return Ok(None) };
        let [_, _, _, _, _, _, caller, _] = words;
        self.caller = [caller];
        Ok(Some(Item::Event(event(words, &self.caller))))
    }

    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        while let Some(words) = self.words()? {
            let [_, _, _, _, _, _, caller, _] = words;
            sink.event(&event(words, &[caller]))?;
        }
        Ok(())
    }

    fn user_metadata(&self) -> UserMetadata {
        let user_metadata = json!({"converted": {"from": format!("raw{N}")}});
        user_metadata.as_object().cloned().unwrap_or_default()
    }
}

/// A writer of raw records of `N` bytes, 32 or 64.
///
/// # Examples
///
/// ```
/// use hatf_trace::forms::{EventWriter, RawSink, RawSource};
/// use hatf_trace::{Event, EventSink, EventSource, Item};
///
/// let mut bytes: Vec<u8> = Vec::new();
/// let mut sink = Box::new(RawSink::<_, 32>::new(&mut bytes));
/// sink.event(&Event::malloc(0x1000, 24))?;
/// assert!(sink.finish()?.is_empty());
/// assert_eq!(bytes.len(), 32);
///
/// let mut source = RawSource::<_, 32>::new(&bytes[..]);
/// assert_eq!(source.next()?, Some(Item::Event(Event::malloc(0x1000, 24))));
/// assert_eq!(source.next()?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RawSink<W, const N: usize> {
    write: W,
    buffer: Vec<u8>,
    records: u64,
    losses: Losses,
}

impl<W: Write, const N: usize> RawSink<W, N> {
    /// Creates a sink that writes to `write`.
    pub fn new(write: W) -> Self {
        Self { write, buffer: Vec::with_capacity(FULL + N), records: 0, losses: Losses::default() }
    }

    /// Returns the number of records written.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.write.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    #[inline]
    fn put(&mut self, event: &Event<'_>, record: [u64; 4], detail: u64) -> Result<()> {
        let caller = event.stack.first().copied().unwrap_or(0);
        let [tag, size, address, old] = record;
        let words = [tag, size, address, old, event.time, event.thread, caller, detail];
        if N == 32 {
            self.losses.note_if(event.time != 0, Loss::Time);
            self.losses.note_if(event.thread != 1, Loss::Thread);
            self.losses.note_if(!event.stack.is_empty(), Loss::Stack);
            self.losses.note_if(detail != 0, Loss::Detail);
        } else {
            self.losses.note_if(event.stack.len() > 1, Loss::Frames);
        }
        self.losses.note_if(event.heap > 1, Loss::Heap);
        self.losses.note_if(!event.attributes.is_empty(), Loss::Attributes);
        let mut bytes = [0; N];
        for (piece, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *piece = word.to_le_bytes();
        }
        self.buffer.extend_from_slice(&bytes);
        self.records += 1;
        if self.buffer.len() >= FULL { self.spill() } else { Ok(()) }
    }

    #[inline]
    fn call(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        let Call { function, mut detail, mut size, usable, old, address } = *call;
        let (tag, is_exact) = match function {
            Function::Malloc => (1, true),
            Function::Calloc => (3, true),
            Function::Realloc => (4, true),
            Function::Reallocarray => (4, false),
            Function::Memalign => (5, true),
            _ => (5, false),
        };
        self.losses.note_if(!is_exact, Loss::Function);
        self.losses.note_if(usable != 0, Loss::Usable);
        if size == UNKNOWN_SIZE {
            self.losses.note(Loss::Size);
            size = 0;
        }
        if function == Function::Reallocarray {
            self.losses.note_if(detail != 0, Loss::Detail);
            detail = 0;
        }
        self.put(event, [tag, size, address, old], detail)
    }

    /// Handles rare events, most of which raw records cannot represent.
    #[cold]
    fn rare(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::ReallocBegin { old } => {
                self.losses.note(Loss::Halves);
                self.put(event, [2, 0, old, 0], 0)
            }
            EventKind::ReallocEnd(ref call) => self.call(event, call),
            ref kind => {
                kind.loss().into_iter().for_each(|loss| self.losses.note(loss));
                Ok(())
            }
        }
    }
}

impl<W: Write, const N: usize> EventWriter for RawSink<W, N> {
    fn finish(mut self: Box<Self>) -> Result<Losses> {
        self.spill()?;
        self.write.flush()?;
        Ok(self.losses)
    }
}

impl<W: Write, const N: usize> EventSink for RawSink<W, N> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::Call(ref call) => self.call(event, call),
            EventKind::Free { address } => self.put(event, [2, 0, address, 0], 0),
            _ => self.rare(event),
        }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        self.losses.note(Loss::Comments);
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        note_user_metadata(&mut self.losses, user_metadata);
        Ok(())
    }
}

/// Counts user metadata as lost, except for keys that only describe the format.
pub(super) fn note_user_metadata(losses: &mut Losses, user_metadata: &UserMetadata) {
    let own = |key: &str| matches!(key, "format" | "clock" | "converted");
    losses.add(Loss::UserMetadata, user_metadata.keys().filter(|key| !own(key)).count() as u64);
}
