//! JSON lines of `heap.dtd` records, with stacks and names instead of their offsets. JSON lines of HATF 1.0 records can
//! be read, too.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::sync::{Arc, OnceLock};

use metatf::container::{Forward, Reader, Sink};
use metatf::dynamic::{self, JsonOptions, Schema, Trace};
use metatf::reader::Event as TraceEvent;
use serde_json::Value;

use super::hatf1::{NativeMapper, from_hex, no_number, parse_record, print_comment};
use super::raw::note_user_metadata;
use super::{EventWriter, Form, TraceReader, failed};
use crate::event::{Event, EventKind, EventSink, EventSource, Item, UserMetadata};
use crate::heap::format::FORMAT;
use crate::heap::{HeapOptions, HeapWriter, decode, from_fields};
use crate::loss::Losses;
use crate::{Error, Result};

/// Bytes collected before they are written.
const FULL: usize = 1 << 16;
/// Maximum line length in bytes.
const LINE: u64 = 16 << 20;

pub(super) static FORM: Form = Form {
    name: "jsonl",
    about: "JSON lines of heap.dtd or HATF 1.0 records, with full stacks and names",
    suffixes: &[".jsonl"],
    sniff: |head| head.bytes.starts_with(b"{"),
    open: Some(|input, _| Ok(TraceReader::new(JsonSource::new(input.into_read())))),
    create: Some(|output, _| Ok(Box::new(JsonSink::new(output)?))),
    lost: "user metadata; times are in nanoseconds",
};

/// A writer of JSON lines, which converts a temporary `heap` trace whose times are in nanoseconds.
struct JsonSink<'o> {
    heap: Box<HeapWriter<'static>>,
    file: File,
    /// The first error of writing the temporary file; the heap writer's error does not identify the file.
    error: Arc<OnceLock<io::Error>>,
    output: &'o mut dyn Sink,
}

/// A writer of a temporary file, which remembers its first error.
struct TemporaryWriter {
    file: File,
    error: Arc<OnceLock<io::Error>>,
}

impl Write for TemporaryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if let Some(code) = error.raw_os_error().filter(|_| error.kind() != io::ErrorKind::Interrupted) {
                let _ = self.error.set(io::Error::from_raw_os_error(code));
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<'o> JsonSink<'o> {
    fn new(output: &'o mut dyn Sink) -> Result<Self> {
        let files = || tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
        let (written, file) = files().map_err(Error::temporary_file())?;
        let error = Arc::default();
        let written = BufWriter::new(TemporaryWriter { file: written, error: Arc::clone(&error) });
        let heap = Box::new(HeapWriter::new(Forward(written), &HeapOptions::default())?);
        Ok(Self { heap, file, error, output })
    }
}

/// Replaces an error with the error of the temporary file, if the file has one.
fn named<T>(result: Result<T>, error: &OnceLock<io::Error>) -> Result<T> {
    result.map_err(|other| match error.get().and_then(io::Error::raw_os_error) {
        Some(code) => Error::temporary_file()(io::Error::from_raw_os_error(code)),
        None => other,
    })
}

impl EventSink for JsonSink<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        named(self.heap.event(event), &self.error)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        named(self.heap.comment(text), &self.error)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        named(self.heap.user_metadata(user_metadata), &self.error)
    }
}

impl EventWriter for JsonSink<'_> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        let Self { heap, mut file, error, output } = *self;
        let mut losses = named((*heap).finish(), &error)?;
        file.seek(SeekFrom::Start(0)).map_err(Error::temporary_file())?;
        losses.merge(&print_lines(Reader::from_read(file).map_err(failed)?, output)?);
        Ok(losses)
    }

    fn abandon(self: Box<Self>) {
        (*self.heap).abandon();
    }
}

/// Prints a `heap.dtd` trace: its records and its comments. User metadata is lost, because no line represents it.
fn print_lines(container: Reader<'_>, write: &mut dyn Sink) -> Result<Losses> {
    let schema = Schema::parse("heap.dtd", FORMAT.dtd.as_bytes()).map_err(failed)?;
    let mut trace = Trace::new(schema, container).map_err(failed)?;
    let mut out = Vec::with_capacity(FULL * 2);
    loop {
        let Some(event) = trace.next_entry().map_err(failed)?.map(|entry| entry.event) else { break };
        match event {
            TraceEvent::Record(at) => {
                let resolve = has_offset(&trace, at.record);
                let options = JsonOptions { resolve, ..JsonOptions::default() };
                trace.print_json(event, &mut out, options).map_err(failed)?;
            }
            TraceEvent::Comment(_) => {
                let text = trace.record().iter().next_back().map_or(&[][..], dynamic::Item::bytes);
                print_comment("\"heap\"", text, &mut out)?;
            }
            _ => {}
        }
        if out.len() >= FULL {
            write.write_all(&out)?;
            out.clear();
        }
    }
    write.write_all(&out)?;
    write.flush()?;
    let mut losses = Losses::default();
    for text in trace.reader().container().user_metadata() {
        if let Ok(Value::Object(user_metadata)) = serde_json::from_slice::<Value>(text) {
            note_user_metadata(&mut losses, &user_metadata);
        }
    }
    Ok(losses)
}

/// Returns whether the last decoded record contains an offset to resolve: a name or a known stack.
fn has_offset(trace: &Trace<'_>, record: u16) -> bool {
    if trace.schema().record(record).is_some_and(|record| record.leaves.iter().any(|leaf| leaf.name == "name")) {
        return true;
    }
    // The stack follows the time.
    matches!(trace.record().get(1), Some(dynamic::Item::Number(offset)) if offset != 0)
}

/// A reader of JSON lines.
struct JsonSource<R> {
    read: R,
    line: Vec<u8>,
    number: u64,
    thread: u64,
    heap: u64,
    native: NativeMapper,
    stack: Vec<u64>,
    text: Vec<u8>,
    done: bool,
}

/// The content of a line.
enum Parsed {
    /// A line without an event.
    Nothing,
    /// A comment, whose bytes are stored in the reader.
    Comment,
    /// A `heap.dtd` event, whose stack and name are stored in the reader.
    Event(EventKind<'static>, u64, u64),
    /// A HATF 1.0 record.
    Native(crate::hatf10::Record<'static>),
}

impl<R: BufRead> JsonSource<R> {
    fn new(read: R) -> Self {
        Self {
            read,
            line: Vec::new(),
            number: 0,
            thread: 1,
            heap: 0,
            native: NativeMapper::default(),
            stack: Vec::new(),
            text: Vec::new(),
            done: false,
        }
    }

    fn parse_line(&mut self) -> Result<Option<Parsed>> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.read).take(LINE + 1).read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::unreadable("JSON lines"))? as u64;
        if read == 0 {
            return Ok(None);
        }
        if read > LINE {
            return Err(self.wrong("the line exceeds 16 MiB"));
        }
        if self.line.trim_ascii().is_empty() {
            return Ok(Some(Parsed::Nothing));
        }
        let line: Value = serde_json::from_slice(&self.line).map_err(|error| self.wrong(&error.to_string()))?;
        let section = line.get("@section").and_then(Value::as_str);
        let Some(record) = line.get("@record").and_then(Value::as_str) else {
            let of_the_container = line.get("@group").is_some() || line.get("@reset").is_some();
            return if of_the_container { Ok(Some(Parsed::Nothing)) } else { Err(self.wrong("no `@record`")) };
        };
        let parsed = match (section, record) {
            (_, "section" | "metadata") => Ok(Parsed::Nothing),
            (_, "comment") => self.keep_bytes(line.get("text").unwrap_or(&Value::Null)).map(|()| Parsed::Comment),
            (None, record) => parse_record(record, &line).map(|(native, attributes)| {
                let native = crate::hatf1::Record { attributes: &attributes, ..native };
                self.native.take(&native).map_or(Parsed::Nothing, Parsed::Native)
            }),
            (Some("heap"), record) => self.heap_record(record, &line),
            // Elements of stream sections and tables are skipped, because each record contains the elements it refers
            // to.
            (Some(_), _) => Ok(Parsed::Nothing),
        };
        parsed.map(Some).map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&mut self, problem: &str) -> Error {
        self.done = true;
        Error::Trace(format!("JSON lines, line {}: {problem}", self.number).into())
    }

    /// Stores the bytes of a JSON string or of an object `{"hex":".."}`.
    fn keep_bytes(&mut self, value: &Value) -> Result<()> {
        let hex = value.get("hex").and_then(Value::as_str).and_then(from_hex);
        let bytes = value.as_str().map(|text| text.as_bytes().to_vec()).or(hex);
        self.text = bytes.ok_or_else(|| Error::Trace(format!("expected a string, found {value}").into()))?;
        Ok(())
    }

    /// Stores the frames of the stack in a line. The stack is `0`, or an offset together with the element at this
    /// offset.
    fn keep_stack(&mut self, line: &Value) -> Result<()> {
        self.stack.clear();
        let stack = line.get("stack").unwrap_or(&Value::Null);
        if stack.is_null() || stack.as_u64() == Some(0) {
            return Ok(());
        }
        let frames = stack.get("element").and_then(|element| element.get("frame")).and_then(Value::as_array);
        let frames: Option<Vec<u64>> = frames.and_then(|frames| frames.iter().map(Value::as_u64).collect());
        self.stack = frames
            .ok_or_else(|| Error::Trace(format!("stack {stack} has no frames: `element.frame` is missing").into()))?;
        Ok(())
    }

    /// Stores the text of the name in a line. The name is an offset together with the element at this offset.
    fn keep_name(&mut self, line: &Value) -> Result<()> {
        let name = line.get("name").unwrap_or(&Value::Null);
        let element = name.get("element").and_then(|element| element.get("vfield"));
        let text = element
            .ok_or_else(|| Error::Trace(format!("name {name} has no string: `element.vfield` is missing").into()))?;
        self.keep_bytes(&text.clone())
    }

    fn heap_record(&mut self, name: &str, line: &Value) -> Result<Parsed> {
        let field = |key: &str| -> Result<u64> {
            match line.get(key) {
                // The content of stacks and names is stored below.
                _ if matches!(key, "stack" | "name") => Ok(0),
                None if key == "alignment" && name != "failed" => Ok(0),
                // Lines written by older versions lack the task.
                None if key == "task" => Ok(0),
                value => value.and_then(Value::as_u64).ok_or_else(|| no_number(key, name)),
            }
        };
        if name != "thread" {
            self.keep_stack(line)?;
        }
        let record = from_fields(name, &field)?;
        let record = record.ok_or_else(|| Error::Trace(format!("heap.dtd has no record `{name}`").into()))?;
        let Some(decoded) = decode(&record) else {
            self.thread = field("id")?;
            return Ok(Parsed::Nothing);
        };
        self.text.clear();
        if decoded.name.is_some() {
            self.keep_name(line)?;
        }
        self.heap += u64::from(matches!(decoded.kind, EventKind::Image { .. }));
        Ok(Parsed::Event(decoded.kind, decoded.ticks, decoded.thread.unwrap_or(self.thread)))
    }
}

impl<R: BufRead> EventSource for JsonSource<R> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        if self.done {
            return Ok(None);
        }
        loop {
            match self.parse_line()? {
                None => {
                    self.done = true;
                    return Ok(None);
                }
                Some(Parsed::Nothing) => {}
                Some(Parsed::Comment) => return Ok(Some(Item::Comment(&self.text))),
                Some(Parsed::Native(record)) => return Ok(Some(Item::Event(self.native.event(record)))),
                Some(Parsed::Event(kind, time, thread)) => {
                    let kind = kind.named(&self.text);
                    let (heap, stack) = (self.heap, &self.stack[..]);
                    return Ok(Some(Item::Event(Event {
                        kind,
                        time,
                        thread,
                        heap,
                        stack: stack.into(),
                        attributes: &[],
                    })));
                }
            }
        }
    }

    fn user_metadata(&self) -> UserMetadata {
        UserMetadata::new()
    }

    fn losses(&self) -> Losses {
        self.native.losses()
    }
}
