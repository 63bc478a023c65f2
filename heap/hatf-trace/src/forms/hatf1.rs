//! The native format of HATF 1.0 as a source, as a sink, and as JSON lines.

use std::collections::HashMap;
use std::io::{Read, Write};

use metatf::container::Sink;
use serde_json::Value;

use super::{EventWriter, Form, TraceReader};
use crate::event::{Event, EventSink, EventSource, Item, UserMetadata, user_metadata_lines};
use crate::hatf1::{Item as NativeItem, Kind, Part, Reader, Record as Native, Writer};
use crate::hatf10::{Dialect, Encoded, Encoder, Record, RecordKind, decode, is_exec};
use crate::loss::{Loss, Losses};
use crate::{Error, Result};

pub(super) static FORM: Form = Form {
    name: "hatf1",
    about: "HATF 1.0 in its native encoding (appendix A of the paper)",
    suffixes: &[".hatf"],
    sniff: |_| false,
    open: Some(|input, _| Ok(TraceReader::new(NativeSource::new(input.into_read())))),
    create: Some(|output, options| Ok(Box::new(NativeSink::new(output, options.inner_records)))),
    lost: "as `hatf10`",
};

/// A reader of the events of a HATF 1.0 stream.
struct NativeSource<R> {
    reader: Reader<R>,
    mapper: NativeMapper,
    comment: Vec<u8>,
}

/// A converter of native records to events. It counts the data that events cannot represent.
#[derive(Debug, Default)]
pub(super) struct NativeMapper {
    attributes: Vec<u8>,
    words: Vec<u8>,
    losses: Losses,
    inner: Inner,
}

/// Maximum number of threads whose last records are remembered.
const THREADS: usize = 1 << 12;

/// The records that a realloc may have written before its own: "If malloc and/or free are called from realloc, records
/// for these operations occur in the trace in addition" (the paper's Table 1). A realloc record may therefore repeat
/// what earlier records contain.
#[derive(Debug, Default)]
struct Inner {
    /// The addresses of each thread's last alloc and last free, if nothing else followed them.
    last: HashMap<u64, [Option<u64>; 2]>,
    /// For each address in `last`, the thread, and whether the thread allocated (`ALLOC`) or freed (`FREE`) the block
    /// at this address. Any use of the block by another thread removes its entry.
    whose: HashMap<u64, (u64, usize)>,
}

const ALLOC: usize = 0;
const FREE: usize = 1;

impl Inner {
    /// Processes a record. Returns the part of the record that earlier records do not already contain. Earlier alloc
    /// and free records count as part of a realloc only if the realloc would otherwise contradict them, because its new
    /// block is already live or its old block is already freed.
    fn take(&mut self, thread: u64, record: RecordKind) -> Option<RecordKind> {
        match record {
            RecordKind::Alloc { address, .. } => self.note(thread, ALLOC, Some(address)),
            RecordKind::Free { address } => self.note(thread, FREE, Some(address)),
            RecordKind::Realloc { old, address, size } => {
                let was = |address, which| address != 0 && self.whose.get(&address) == Some(&(thread, which));
                let (was_allocated, was_freed) = (old != address && was(address, ALLOC), was(old, FREE));
                self.note(thread, ALLOC, None);
                self.note(thread, FREE, None);
                self.whose.remove(&old);
                self.whose.remove(&address);
                if was_allocated || was_freed {
                    return match (address == 0 || was_allocated, old == 0 || was_freed) {
                        (true, true) => None,
                        (true, false) => Some(RecordKind::Free { address: old }),
                        (false, _) => Some(RecordKind::Alloc { size, address }),
                    };
                }
            }
            _ => {}
        }
        Some(record)
    }

    /// Remembers the block of a thread's most recent alloc or free, and forgets the previous one.
    fn note(&mut self, thread: u64, which: usize, address: Option<u64>) {
        if self.last.len() >= THREADS && !self.last.contains_key(&thread) {
            self.last.clear();
            self.whose.clear();
        }
        let last = self.last.entry(thread).or_default();
        let Some(place) = last.get_mut(which) else { return };
        if let Some(before) = std::mem::replace(place, address)
            && self.whose.get(&before) == Some(&(thread, which))
        {
            self.whose.remove(&before);
        }
        address.and_then(|address| self.whose.insert(address, (thread, which)));
    }
}

impl NativeMapper {
    /// Processes a record, whose event is then returned by [`event`](Self::event). Returns `None` if the record is not
    /// a separate event.
    pub(super) fn take(&mut self, native: &Native<'_>) -> Option<Record<'static>> {
        self.attributes.clear();
        self.attributes.extend_from_slice(native.attributes);
        let Native { kind, size, old_address: old, address, thread, heap, time, .. } = *native;
        let record_kind = match kind {
            Kind::Alloc => RecordKind::Alloc { size, address },
            Kind::Free => RecordKind::Free { address },
            Kind::CreateHeap => RecordKind::CreateHeap,
            Kind::DestroyHeap => RecordKind::DestroyHeap,
            Kind::CreateThread => RecordKind::CreateThread,
            Kind::DestroyThread => RecordKind::DestroyThread,
            realloc => {
                self.losses.note_if(realloc != realloc_kind(old, address), Loss::ReallocKind);
                RecordKind::Realloc { old, address, size }
            }
        };
        let record_kind = self.inner.take(thread, record_kind)?;
        let record = Record { kind: record_kind, time, thread, heap, attributes: &[] };
        (!is_exec(&Record { attributes: &self.attributes, ..record })).then_some(record)
    }

    /// Returns the event of the processed record.
    pub(super) fn event(&mut self, record: Record<'static>) -> Event<'_> {
        let record = Record { attributes: &self.attributes, ..record };
        decode(&record, Dialect::Native, &mut self.words)
    }

    pub(super) fn losses(&self) -> Losses {
        self.losses
    }
}

/// Derives the kind of a realloc from its addresses.
fn realloc_kind(old: u64, address: u64) -> Kind {
    match (old, address) {
        (0, _) => Kind::ReallocAlloc,
        (_, 0) => Kind::ReallocFree,
        (old, new) if old == new => Kind::ReallocNoAlloc,
        _ => Kind::ReallocAllocFree,
    }
}

impl<R: Read> NativeSource<R> {
    fn new(read: R) -> Self {
        Self { reader: Reader::new(read), mapper: NativeMapper::default(), comment: Vec::new() }
    }
}

impl<R: Read> EventSource for NativeSource<R> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        let record = loop {
            match self.reader.next()? {
                None => return Ok(None),
                Some(NativeItem::Metadata(..)) => {}
                Some(NativeItem::Comment(text)) => {
                    self.comment.clear();
                    self.comment.extend_from_slice(text);
                    return Ok(Some(Item::Comment(&self.comment)));
                }
                Some(NativeItem::Record(native)) => {
                    if let Some(record) = self.mapper.take(&native) {
                        break record;
                    }
                }
            }
        };
        Ok(Some(Item::Event(self.mapper.event(record))))
    }

    fn losses(&self) -> Losses {
        self.mapper.losses()
    }
}

/// A writer of events as a HATF 1.0 stream.
struct NativeSink<W> {
    writer: Writer<W>,
    encoder: Encoder,
    inner: bool,
}

impl<W: Write> NativeSink<W> {
    /// Starts a stream. With `inner`, each realloc record is preceded by records of the malloc and the free that the
    /// realloc performed, as written by a recorder that also intercepts those calls.
    fn new(write: W, inner: bool) -> Self {
        Self { writer: Writer::new(write), encoder: Encoder::new(Dialect::Native), inner }
    }
}

impl<W: Write> EventWriter for NativeSink<W> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        self.writer.finish()?;
        Ok(self.encoder.losses)
    }
}

impl<W: Write> EventSink for NativeSink<W> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let (writer, inner) = (&mut self.writer, self.inner);
        self.encoder.encode(event, &mut |item| match item {
            Encoded::Record(record) => {
                if let RecordKind::Realloc { old, address, size } = record.kind
                    && inner
                    && old != address
                {
                    let part = |kind| native(&Record { kind, attributes: &[], ..record });
                    if address != 0 {
                        writer.record(&part(RecordKind::Alloc { size, address }))?;
                    }
                    if old != 0 {
                        writer.record(&part(RecordKind::Free { address: old }))?;
                    }
                }
                Ok(writer.record(&native(&record))?)
            }
            Encoded::Comment(text) => Ok(writer.comment(text.as_bytes())?),
        })
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        Ok(self.writer.comment(text)?)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        user_metadata_lines(user_metadata).iter().try_for_each(|line| self.comment(line.as_bytes()))
    }
}

fn native<'a>(record: &Record<'a>) -> Native<'a> {
    let Record { kind: record_kind, time, thread, heap, attributes } = *record;
    let base = |kind| Native { time, thread, heap, attributes, ..Native::new(kind) };
    match record_kind {
        RecordKind::Alloc { size, address } => Native { size, address, ..base(Kind::Alloc) },
        RecordKind::Realloc { old, address, size } => {
            Native { size, old_address: old, address, ..base(realloc_kind(old, address)) }
        }
        RecordKind::Free { address } => Native { address, ..base(Kind::Free) },
        RecordKind::CreateHeap => base(Kind::CreateHeap),
        RecordKind::DestroyHeap => base(Kind::DestroyHeap),
        RecordKind::CreateThread => base(Kind::CreateThread),
        RecordKind::DestroyThread => base(Kind::DestroyThread),
    }
}

/// Returns the JSON key of a number.
fn key(kind: Kind, part: Part) -> &'static str {
    match part {
        Part::Size => "size",
        Part::OldAddress => "old_address",
        Part::Address if kind.is_realloc() => "new_address",
        Part::Address => "address",
        Part::Thread => "thread",
        Part::Heap => "heap",
        Part::Time => "time",
    }
}

/// Prints a HATF 1.0 stream as JSON lines: its records and its comments. Everything that precedes an error is printed.
///
/// # Errors
/// The stream is invalid, or the output failed.
pub(super) fn print_lines(read: impl Read, write: &mut dyn Sink) -> Result<()> {
    let mut reader = Reader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.next() {
            Ok(Some(NativeItem::Record(record))) => print_record(&record, &mut line)?,
            Ok(Some(NativeItem::Comment(text))) => print_comment("null", text, &mut line)?,
            Ok(Some(NativeItem::Metadata(..))) => {}
            Ok(None) => break,
            Err(error) => {
                write.flush()?;
                return Err(error.into());
            }
        }
        write.write_all(&line)?;
    }
    Ok(write.flush()?)
}

/// Prints a comment as a JSON line. `section` is the value of `@section` as JSON.
pub(super) fn print_comment(section: &str, text: &[u8], line: &mut Vec<u8>) -> std::io::Result<()> {
    write!(line, "{{\"@section\":{section},\"@record\":\"comment\",\"text\":")?;
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::to_writer(&mut *line, text)?,
        Err(_) => {
            line.extend_from_slice(b"{\"hex\":");
            print_hex(text, line)?;
            line.push(b'}');
        }
    }
    line.extend_from_slice(b"}\n");
    Ok(())
}

fn print_record(record: &Native<'_>, line: &mut Vec<u8>) -> std::io::Result<()> {
    write!(line, "{{\"@section\":null,\"@record\":\"{}\"", record.kind.name())?;
    for &part in record.kind.numbers() {
        write!(line, ",\"{}\":{}", key(record.kind, part), record.number(part))?;
    }
    line.extend_from_slice(b",\"attributes\":");
    print_hex(record.attributes, line)?;
    line.extend_from_slice(b"}\n");
    Ok(())
}

fn print_hex(bytes: &[u8], line: &mut Vec<u8>) -> std::io::Result<()> {
    line.push(b'"');
    bytes.iter().try_for_each(|byte| write!(line, "{byte:02x}"))?;
    line.push(b'"');
    Ok(())
}

/// Returns the error for a missing number in a JSON line.
pub(super) fn no_number(key: &str, record: &str) -> Error {
    Error::Trace(format!("`{record}` requires an integer in `{key}`").into())
}

/// Parses a HATF 1.0 record and its attributes from a JSON line.
pub(super) fn parse_record(name: &str, line: &Value) -> Result<(Native<'static>, Vec<u8>)> {
    let wrong = |problem: String| Error::Trace(problem.into());
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| wrong(format!("HATF 1.0 has no record `{name}`")))?;
    let mut record = Native::new(kind);
    for &part in kind.numbers() {
        let key = key(kind, part);
        let number = line.get(key).and_then(Value::as_u64);
        *record.number_mut(part) = number.ok_or_else(|| no_number(key, name))?;
    }
    let hex = line.get("attributes").map_or(Some(""), Value::as_str);
    let attributes = hex
        .and_then(from_hex)
        .ok_or_else(|| wrong("`attributes` must be a string of hexadecimal digits".to_owned()))?;
    Ok((record, attributes))
}

/// Parses hex digits.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
