//! Common code for line-based text logs of other tools.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _};

use serde_json::json;

use crate::event::{Call, Event, EventKind, EventSource, Function, Item, UserMetadata};
use crate::loss::Losses;
use crate::{Error, Result};

/// Maximum number of frames in a stack, which exceeds the limits of the tools.
pub(super) const DEPTH: usize = 1 << 12;

/// An interpreter for the lines of a log format.
pub(super) trait Log {
    /// The name of the format.
    const NAME: &'static str;

    /// Interprets a line and adds its events to the queue.
    ///
    /// # Errors
    /// The line is invalid; the string describes the problem.
    fn line(&mut self, line: &[u8], queue: &mut Queue) -> std::result::Result<(), String>;

    /// Adds events that are still pending at the end to the queue.
    fn end(&mut self, queue: &mut Queue) {
        let _ = queue;
    }

    /// Returns the user metadata read so far.
    fn user_metadata(&self) -> UserMetadata {
        UserMetadata::new()
    }

    /// Returns counts of the data that the events so far could not represent.
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

/// Pending events, and the values that the next events share.
#[derive(Default)]
pub(super) struct Queue {
    events: VecDeque<Waiting>,
    /// The call stack of this line, innermost frame first.
    pub(super) stack: Vec<u64>,
    pub(super) time: u64,
    pub(super) thread: u64,
    pub(super) heap: u64,
}

struct Waiting {
    kind: EventKind<'static>,
    name: Vec<u8>,
    time: u64,
    thread: u64,
    heap: u64,
}

impl Queue {
    /// Appends an event. The name is empty if events of this kind have no name.
    pub(super) fn push(&mut self, kind: EventKind<'static>, name: &[u8]) {
        let (time, thread, heap) = (self.time, self.thread, self.heap);
        self.events.push_back(Waiting { kind, name: name.to_vec(), time, thread, heap });
    }

    /// Appends the load of a module.
    pub(super) fn load(&mut self, path: &[u8], bias: u64, start: u64, end: u64) {
        self.push(EventKind::ModuleLoad { bias, start, end, name: &[] }, &[b"- ", path].concat());
    }

    /// Appends the known facts about the function of a frame.
    pub(super) fn symbol(&mut self, frame: u64, function: &[u8], file: &[u8], line: u64) {
        self.push(EventKind::Source { path: &[] }, file);
        self.push(EventKind::Symbol { frame, line, name: &[] }, function);
    }

    /// Appends a call that returned a block, with the current stack.
    pub(super) fn call(&mut self, function: Function, size: u64, old: u64, address: u64) {
        self.push(EventKind::Call(Call { size, old, address, ..Call::new(function) }), &[]);
    }

    pub(super) fn free(&mut self, address: u64) {
        self.push(EventKind::Free { address }, &[]);
    }
}

/// A reader of a log.
pub(super) struct TextSource<L> {
    lines: Lines,
    log: L,
    queue: Queue,
    /// The name of the event returned last.
    name: Vec<u8>,
    done: bool,
}

impl<L: Log> TextSource<L> {
    /// Creates a reader at the start of a log.
    pub(super) fn new(read: Box<dyn BufRead + Send>, log: L) -> Self {
        let queue = Queue { thread: 1, ..Queue::default() };
        Self { lines: Lines::new(read, L::NAME), log, queue, name: Vec::new(), done: false }
    }

    /// Adds the events of the next line to the queue, or the pending events at the end of the log.
    fn more(&mut self) -> Result<()> {
        if !self.lines.next()? {
            self.done = true;
            self.log.end(&mut self.queue);
            return Ok(());
        }
        self.log.line(&self.lines.line, &mut self.queue).map_err(|why| self.lines.wrong(&why))
    }
}

impl<L: Log> EventSource for TextSource<L> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        while self.queue.events.is_empty() {
            if self.done {
                return Ok(None);
            }
            if let Err(error) = self.more() {
                self.done = true;
                return Err(error);
            }
        }
        let Some(Waiting { kind, name, time, thread, heap }) = self.queue.events.pop_front() else { return Ok(None) };
        self.name = name;
        let stack: &[u64] = if let EventKind::Call(_) = kind { &self.queue.stack } else { &[] };
        Ok(Some(Item::Event(Event { time, thread, heap, stack: stack.into(), ..Event::new(kind.named(&self.name)) })))
    }

    fn user_metadata(&self) -> UserMetadata {
        let mut user_metadata = self.log.user_metadata();
        user_metadata.insert("converted".to_owned(), json!({"from": L::NAME}));
        user_metadata
    }

    fn losses(&self) -> Losses {
        self.log.losses()
    }
}

/// The lines of a log.
pub(super) struct Lines {
    read: Box<dyn BufRead + Send>,
    form: &'static str,
    /// The current line, without its end.
    pub(super) line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Maximum line length in bytes, large because C++ names are long.
    const LONGEST: usize = 1 << 20;

    pub(super) fn new(read: Box<dyn BufRead + Send>, form: &'static str) -> Self {
        Self { read, form, line: Vec::new(), number: 0 }
    }

    /// Reads the next line. Returns false at the end.
    pub(super) fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.read).take(Self::LONGEST as u64 + 1).read_until(b'\n', &mut self.line);
        if read.map_err(Error::unreadable(self.form))? == 0 {
            return Ok(false);
        }
        if self.line.len() > Self::LONGEST {
            return Err(self.wrong(&format!("the line exceeds {} bytes", Self::LONGEST)));
        }
        if self.line.ends_with(b"\n") {
            self.line.pop();
        }
        Ok(true)
    }

    /// Returns an error for the current line.
    pub(super) fn wrong(&self, why: &str) -> Error {
        Error::Trace(format!("{}, line {}: {why}", self.form, self.number).into())
    }
}

/// Parses a hexadecimal number, with or without `0x`.
pub(super) fn hex(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    u64::from_str_radix(std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?, 16).ok()
}

/// Returns part of a line for an error message.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(..40).unwrap_or(text)).into_owned();
    metatf_page::shown(&text).into_owned()
}
