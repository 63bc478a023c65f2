//! The address layout of merged traces, and the extraction of a process from a merged trace.
//!
//! In an address, the bits from 48 on contain the process number, so blocks of two processes never collide. In a frame
//! that denotes a position in Python code, the process number starts at bit 32, so that the frame remains recognizable
//! as such.

use std::collections::HashMap;

use serde_json::Value;

use super::moved::{Places, moved};
use hatf_trace::event::{Event, EventKind, EventSink, UserMetadata};
use hatf_trace::stacks::{PYTHON_FRAMES, is_python};
use hatf_trace::{Error, Result};

/// The first bit of the process number in an address.
const ADDRESS: u32 = 48;
/// The first bit of the process number in a frame that denotes a position in Python code.
const PYTHON: u32 = 32;
/// Maximum number of processes for which the process number fits into a Python frame.
pub(super) const MOST: usize = 1 << 15;

/// A mapping of a process's addresses to a merged trace. Processes are numbered from 0.
pub(super) struct Into<'n> {
    pub(super) process: u64,
    /// Nanoseconds to add to times.
    pub(super) offset: u64,
    /// The name of the trace in errors.
    pub(super) name: &'n str,
}

impl Places for Into<'_> {
    fn address(&mut self, address: u64) -> Result<u64> {
        if address >> ADDRESS == 0 {
            return Ok(address | self.process << ADDRESS);
        }
        let why = "is 2^48 or more and cannot be distinguished from addresses of other processes";
        Err(Error::Trace(format!("{}: address 0x{address:x} {why}", self.name).into()))
    }

    fn frame(&mut self, frame: u64) -> Result<u64> {
        if is_python(frame) {
            if (frame - PYTHON_FRAMES) >> PYTHON == 0 {
                return Ok(frame | self.process << PYTHON);
            }
            return Err(Error::Trace(
                format!("{}: Python frame 0x{frame:x} has a number of 2^32 or more", self.name).into(),
            ));
        }
        // Addresses outside of the process, such as the kernel's vsyscall page, do not change.
        if frame != 0 && frame >> ADDRESS == 0 { self.address(frame) } else { Ok(frame) }
    }

    fn time(&mut self, time: u64) -> u64 {
        time.saturating_add(self.offset)
    }
}

/// The mapping of addresses in a merged trace back to the original addresses.
struct Back;

impl Places for Back {
    fn address(&mut self, address: u64) -> Result<u64> {
        Ok(address & ((1 << ADDRESS) - 1))
    }

    fn frame(&mut self, frame: u64) -> Result<u64> {
        if is_python(frame) {
            return Ok(PYTHON_FRAMES | (frame & ((1 << PYTHON) - 1)));
        }
        if frame >> ADDRESS < MOST as u64 { self.address(frame) } else { Ok(frame) }
    }
}

/// Returns the number of the process to which a frame belongs, from 0.
fn process_of(frame: u64) -> u64 {
    if is_python(frame) { (frame - PYTHON_FRAMES) >> PYTHON } else { frame >> ADDRESS }
}

/// A sink that forwards the events of one process from a merged trace, with their original addresses and thread
/// numbers.
pub struct OfProcess<'s> {
    /// The process number, from 1.
    number: u64,
    id: u64,
    program: Vec<u8>,
    user_metadata: UserMetadata,
    /// Original thread numbers, by thread number in the merged trace.
    threads: HashMap<u64, u64>,
    stack: Vec<u64>,
    records: u64,
    sink: &'s mut dyn EventSink,
}

impl<'s> OfProcess<'s> {
    /// Creates a sink for the events of process `number`. `about` is the metadata of the process in the merged trace.
    pub fn new(number: u64, about: &Value, sink: &'s mut dyn EventSink) -> Self {
        let threads = about.get("threads").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
        let text = |key| about.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut user_metadata = UserMetadata::new();
        for key in ["program", "command", "recording"] {
            user_metadata.insert(key.to_owned(), about.get(key).cloned().unwrap_or(Value::Null));
        }
        Self {
            number,
            id: about.get("id").and_then(Value::as_u64).unwrap_or(0),
            program: text("program").as_bytes().to_vec(),
            user_metadata,
            threads: threads.iter().filter_map(pair).collect(),
            stack: Vec::new(),
            records: 0,
            sink,
        }
    }

    /// Returns the number of forwarded records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns a name without the process label that merging added as a prefix.
    fn own<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        let label = format!("{}-", self.number);
        let rest = name.strip_prefix(label.as_bytes());
        let at = rest.and_then(|_| name.windows(2).position(|two| two == b": "));
        at.and_then(|at| name.get(at + 2..))
    }
}

impl EventSink for OfProcess<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let here = self.number.wrapping_sub(1);
        let own = self.threads.get(&event.thread).copied();
        let wanted = match event.kind {
            EventKind::Image { .. } => true,
            // Drop resident memory, because a merged trace contains only the total over all processes.
            EventKind::Resident(_) => false,
            EventKind::Source { .. } => true,
            EventKind::Symbol { frame: at, .. }
            | EventKind::ModuleUnload { start: at }
            | EventKind::ModuleLoad { start: at, .. } => process_of(at) == here,
            _ => own.is_some(),
        };
        if !wanted {
            return Ok(());
        }
        let kind = match moved(event.kind, &mut Back)? {
            EventKind::Image { .. } => EventKind::Image { process: self.id, path: &self.program },
            EventKind::ThreadStart { creator, task } => {
                EventKind::ThreadStart { creator: self.threads.get(&creator).copied().unwrap_or(0), task }
            }
            // A thread name without the process label was added by the merge.
            EventKind::ThreadName { name } => match self.own(name) {
                Some(name) => EventKind::ThreadName { name },
                None => return Ok(()),
            },
            EventKind::Mark { name } => EventKind::Mark { name: self.own(name).unwrap_or(name) },
            EventKind::PhaseBegin { name } => EventKind::PhaseBegin { name: self.own(name).unwrap_or(name) },
            EventKind::PhaseEnd { name } => EventKind::PhaseEnd { name: self.own(name).unwrap_or(name) },
            kind => kind,
        };
        self.stack.clear();
        for frame in event.stack.frames() {
            self.stack.push(Back.frame(*frame)?);
        }
        self.records += 1;
        self.sink.event(&Event { kind, thread: own.unwrap_or(1), stack: (&self.stack).into(), ..*event })
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let mut own = user_metadata.clone();
        own.remove("merged");
        own.extend(self.user_metadata.clone());
        self.sink.user_metadata(&own)
    }
}
