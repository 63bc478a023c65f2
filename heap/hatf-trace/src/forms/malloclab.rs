//! Text traces of the CS:APP malloc lab. The head contains four numbers, one per line: the heap size, the number of
//! IDs, the number of operations, and a weight. Each of the following lines is an operation: `a ID SIZE`, `r ID SIZE`
//! or `f ID`.
//!
//! This format identifies blocks by ID, not by address. On import, each ID becomes an address. The addresses start at
//! 16 and are 16 bytes apart. The user metadata records this conversion, so that exporting restores the IDs. Blocks of
//! other traces are numbered in order of appearance.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};

use serde_json::{Value, json};

use super::raw::note_user_metadata;
use super::{EventWriter, Form, TraceReader};
use crate::event::{Call, Event, EventKind, EventSink, EventSource, Function, Item, UNKNOWN_SIZE, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::{Error, Result};

pub(super) static FORM: Form = Form {
    name: "malloclab",
    about: "Text traces of the CS:APP malloc lab (a ID SIZE, r ID SIZE, f ID)",
    suffixes: &[".rep"],
    sniff: |_| false,
    open: Some(|input, _| Ok(TraceReader::new(MalloclabSource::new(input.into_read())?))),
    create: Some(|output, _| Ok(Box::new(MalloclabSink::new(output)?))),
    lost: "as `raw32`, and also addresses, and frees of blocks that were not allocated in the trace",
};

/// Bytes between the addresses of two consecutive IDs.
const STEP: u64 = 16;
/// The user metadata key of traces whose addresses represent IDs.
const KEY: &str = "malloclab";
/// Maximum line length: three words and their separators.
const LINE: u64 = 64;

/// A reader of malloc lab traces.
struct MalloclabSource<R> {
    read: R,
    line: Vec<u8>,
    number: u64,
    heap: u64,
    weight: u64,
    /// The number of operations declared in the header.
    announced: u64,
    /// The number of operations read so far.
    operations: u64,
    done: bool,
}

impl<R: BufRead> MalloclabSource<R> {
    /// Reads the four numbers of the head.
    fn new(read: R) -> Result<Self> {
        let mut source =
            Self { read, line: Vec::new(), number: 0, heap: 0, weight: 0, announced: 0, operations: 0, done: false };
        let mut head = [0; 4];
        for number in &mut head {
            *number = source.head_number()?;
        }
        [source.heap, _, source.announced, source.weight] = head;
        Ok(source)
    }

    fn head_number(&mut self) -> Result<u64> {
        let there = self.next_line()?;
        let number = std::str::from_utf8(&self.line).ok().and_then(|text| text.trim().parse().ok());
        number
            .filter(|_| there)
            .ok_or_else(|| self.wrong("expected a number: the header consists of four numbers, one per line"))
    }

    /// Reads the next line that is not blank. Returns false at the end.
    fn next_line(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = (&mut self.read).take(LINE + 1).read_until(b'\n', &mut self.line);
            let length = read.map_err(Error::unreadable("malloclab trace"))?;
            if length as u64 > LINE {
                return Err(self.wrong("the line exceeds 64 bytes"));
            }
            if length == 0 {
                return Ok(false);
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn wrong(&mut self, kind: &str) -> Error {
        self.done = true;
        Error::Trace(format!("malloclab trace, line {}: {kind}", self.number).into())
    }

    fn operation(&mut self) -> Result<EventKind<'static>> {
        let text = String::from_utf8_lossy(&self.line).into_owned();
        let mut words = text.split_ascii_whitespace();
        let name = words.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let address = |id: u64| id.checked_add(1).and_then(|id| id.checked_mul(STEP));
        let call = |function, size, old, address| EventKind::Call(Call { size, old, address, ..Call::new(function) });
        let kind = match (name, numbers.as_deref()) {
            ("a", Some(&[id, size])) => address(id).map(|address| call(Function::Malloc, size, 0, address)),
            ("r", Some(&[id, size])) => address(id).map(|address| call(Function::Realloc, size, address, address)),
            ("f", Some(&[id])) => address(id).map(|address| EventKind::Free { address }),
            _ => return Err(self.wrong("expected `a ID SIZE`, `r ID SIZE` or `f ID`")),
        };
        kind.ok_or_else(|| self.wrong("the ID exceeds 2^60"))
    }
}

impl<R: BufRead> EventSource for MalloclabSource<R> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        if self.done {
            return Ok(None);
        }
        if !self.next_line()? {
            let (announced, found) = (self.announced, self.operations);
            if found < announced {
                return Err(
                    self.wrong(&format!("the header announces {announced} operations, but the trace contains {found}"))
                );
            }
            self.done = true;
            return Ok(None);
        }
        let kind = self.operation()?;
        self.operations += 1;
        Ok(Some(Item::Event(Event::new(kind))))
    }

    fn user_metadata(&self) -> UserMetadata {
        let user_metadata = json!({KEY: {"heap": self.heap, "weight": self.weight, "address": "16 * (id + 1)"}});
        user_metadata.as_object().cloned().unwrap_or_default()
    }
}

/// A writer of malloc lab traces. The head counts the following operations, so the operations are first written to a
/// temporary file.
struct MalloclabSink<W> {
    write: W,
    body: BufWriter<std::fs::File>,
    /// The IDs and sizes of live blocks, by address.
    live: HashMap<u64, (u64, u64)>,
    bytes: u64,
    peak: u64,
    /// Whether addresses represent IDs.
    numbered: bool,
    heap: Option<u64>,
    weight: u64,
    ids: u64,
    operations: u64,
    losses: Losses,
}

impl<W: Write> MalloclabSink<W> {
    fn new(write: W) -> Result<Self> {
        let body = BufWriter::new(tempfile::tempfile().map_err(Error::temporary_file())?);
        Ok(Self {
            write,
            body,
            live: HashMap::new(),
            bytes: 0,
            peak: 0,
            numbered: false,
            heap: None,
            weight: 1,
            ids: 0,
            operations: 0,
            losses: Losses::default(),
        })
    }

    fn put(&mut self, operation: std::fmt::Arguments<'_>) -> Result<()> {
        self.operations += 1;
        writeln!(self.body, "{operation}").map_err(Error::temporary_file())
    }

    /// Assigns the ID of a new block.
    fn new_id(&mut self, address: u64) -> u64 {
        let id = if self.numbered { address / STEP - 1 } else { self.ids };
        self.losses.note_if(!self.numbered, Loss::Addresses);
        self.ids = self.ids.max(id.saturating_add(1));
        id
    }

    fn begin(&mut self, address: u64, id: u64, size: u64) {
        self.live.insert(address, (id, size));
        self.bytes = self.bytes.saturating_add(size);
        self.peak = self.peak.max(self.bytes);
    }

    /// Ends a block. Returns its ID.
    fn end(&mut self, address: u64) -> Option<u64> {
        let (id, size) = self.live.remove(&address)?;
        self.bytes = self.bytes.saturating_sub(size);
        Some(id)
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        let Call { function, mut size, usable, old, address, detail } = *call;
        self.losses.note_if(usable != 0, Loss::Usable);
        self.losses.note_if(!matches!(function, Function::Malloc | Function::Realloc), Loss::Function);
        self.losses.note_if(detail != 0, Loss::Detail);
        if size == UNKNOWN_SIZE {
            self.losses.note(Loss::Size);
            size = 0;
        }
        if address == 0 {
            if call.old_is_gone() {
                return self.free(old);
            }
            self.losses.note(Loss::Failed);
            return Ok(());
        }
        if let Some(id) = self.end(old) {
            self.begin(address, id, size);
            return self.put(format_args!("r {id} {size}"));
        }
        self.losses.note_if(old != 0, Loss::UnknownFrees);
        let id = self.new_id(address);
        self.begin(address, id, size);
        self.put(format_args!("a {id} {size}"))
    }

    fn free(&mut self, address: u64) -> Result<()> {
        match self.end(address) {
            Some(id) => self.put(format_args!("f {id}")),
            None => {
                self.losses.note(Loss::UnknownFrees);
                Ok(())
            }
        }
    }
}

impl<W: Write> EventWriter for MalloclabSink<W> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        let Self { mut write, body, peak, heap, weight, ids, operations, losses, .. } = *self;
        write!(write, "{}\n{ids}\n{operations}\n{weight}\n", heap.unwrap_or(peak))?;
        let mut body = body.into_inner().map_err(|error| Error::temporary_file()(error.into_error()))?;
        body.seek(SeekFrom::Start(0)).map_err(Error::temporary_file())?;
        let mut body = BufReader::new(body);
        loop {
            let bytes = match body.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::temporary_file()(error)),
            };
            write.write_all(bytes)?;
            let length = bytes.len();
            body.consume(length);
        }
        write.flush()?;
        Ok(losses)
    }
}

impl<W: Write> EventSink for MalloclabSink<W> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.losses.note_if(event.time != 0, Loss::Time);
        self.losses.note_if(event.thread != 1, Loss::Thread);
        self.losses.note_if(!event.stack.is_empty(), Loss::Stack);
        self.losses.note_if(event.heap > 1, Loss::Heap);
        self.losses.note_if(!event.attributes.is_empty(), Loss::Attributes);
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) => self.call(call),
            EventKind::Free { address } => self.free(address),
            EventKind::ReallocBegin { old } => {
                self.losses.note(Loss::Halves);
                self.free(old)
            }
            ref kind => {
                kind.loss().into_iter().for_each(|loss| self.losses.note(loss));
                Ok(())
            }
        }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        self.losses.note(Loss::Comments);
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let mut user_metadata = user_metadata.clone();
        if let Some(ours) = user_metadata.remove(KEY) {
            self.numbered = true;
            self.heap = ours.get("heap").and_then(Value::as_u64);
            self.weight = ours.get("weight").and_then(Value::as_u64).unwrap_or(1);
        }
        note_user_metadata(&mut self.losses, &user_metadata);
        Ok(())
    }
}
