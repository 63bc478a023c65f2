//! Removes names from a trace. Strings become tokens, addresses are moved, and frames are numbered.
//!
//! Blocks and pages are moved together by a multiple of 1 GiB, so that the assignment of blocks to pages does not
//! change. Code is not moved this way, because offsets in a known library are as revealing as names. Instead, the
//! frames of a module are numbered in the order of their first use.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::moved::{Places, moved};
use super::tokens::Tokens;
use hatf_trace::event::{Event, EventKind, EventSink, UserMetadata};
use hatf_trace::stacks::is_python;
use hatf_trace::{Error, Result};

/// Blocks and pages are moved by a multiple of this number, which is at least as large as any page.
const STEP: u64 = 1 << 30;
/// Exclusive upper bound for the multiple.
const STEPS: u64 = 1 << 16;
/// Size of the address range of each module.
const MODULE: u64 = 1 << 24;
/// Start of the address range for modules. Frames below this address are in no module.
const MODULES: u64 = 1 << 33;
/// End of the address range for modules. Frames of Python code are above this address.
const MODULES_END: u64 = 1 << 47;

/// User metadata keys defined by the format rather than by the program.
pub(super) const KEYS: [&str; 57] = [
    "program",
    "command",
    "host",
    "start",
    "clock",
    "libc",
    "only",
    "sampling",
    "recorder",
    "format",
    "events",
    "lost",
    "children",
    "process",
    "recording",
    "spool",
    "bytes",
    "name",
    "version",
    "resolution_ns",
    "number",
    "id",
    "parent",
    "threads",
    "modules",
    "sizes",
    "cut",
    "first_record",
    "last_record",
    "carried_records",
    "carried_blocks",
    "carried_bytes",
    "segment",
    "segment_end",
    "blocks",
    "merged",
    "trace",
    "offset_ns",
    "converted",
    "repairs",
    "contradictions",
    "stamps",
    "dump",
    "kept_ns",
    "recovered",
    "from",
    "anonymized",
    "unrecorded",
    "reason",
    "resident",
    "own_allocator",
    "function",
    "oom_kill",
    "memory_limit",
    "snapshot",
    "arenas",
    "thread_caches",
];

/// Clocks with which the recorder stamps events.
pub(super) const STAMPS: [&str; 3] = ["tsc", "cntvct", "CLOCK_MONOTONIC"];

/// The names to keep.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Patterns for functions, for file names (without directories), and for strings in the user metadata. `*` matches
    /// any string.
    pub patterns: Vec<String>,
    /// Whether to keep the names of marks and phases.
    pub marks: bool,
}

impl Kept {
    /// Returns whether a name is kept.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern.as_bytes(), name))
    }
}

/// Returns whether a pattern matches an entire string. `*` matches any string. The number of steps is at most the
/// product of both lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    loop {
        match (pattern.get(at), text.get(from)) {
            (Some(b'*'), _) => {
                star = Some((at, from));
                at += 1;
            }
            (Some(expected), Some(found)) if expected == found => (at, from) = (at + 1, from + 1),
            (None, None) => return true,
            _ => match star {
                Some((place, begun)) if begun < text.len() => {
                    star = Some((place, begun + 1));
                    (at, from) = (place + 1, begun + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Returns the file name of a path.
pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// A loaded module.
struct Module {
    bias: u64,
    end: u64,
    name: Vec<u8>,
    /// The start address in the new trace, which no previous module has used.
    start: u64,
}

/// Numbers of the frames seen so far, by the new address of their module.
#[derive(Default)]
struct Frames {
    numbers: HashMap<(u64, u64), u64>,
    /// The number of frames in each module.
    counts: HashMap<u64, u64>,
}

/// A sink that removes the names from a trace and forwards it.
pub struct Anonymizer<'s> {
    tokens: Tokens,
    kept: Kept,
    shift: u64,
    modules: BTreeMap<u64, Module>,
    /// The number of modules loaded.
    loaded: u64,
    frames: Frames,
    processes: HashMap<u64, u64>,
    stack: Vec<u64>,
    sink: &'s mut dyn EventSink,
}

impl<'s> Anonymizer<'s> {
    /// Creates an anonymizer that forwards to a sink.
    pub fn new(tokens: Tokens, kept: Kept, sink: &'s mut dyn EventSink) -> Self {
        let shift = STEP * (1 + tokens.number(b"where blocks lie") % (STEPS - 1));
        Self {
            tokens,
            kept,
            shift,
            modules: BTreeMap::new(),
            loaded: 0,
            frames: Frames::default(),
            processes: HashMap::new(),
            stack: Vec::new(),
            sink,
        }
    }

    /// Loads a module and returns its new start address. A repeated load of an unchanged module is not counted again.
    fn load(&mut self, bias: u64, start: u64, end: u64, name: &[u8]) -> Result<u64> {
        let known = self.modules.get(&start).filter(|known| (known.bias, known.end, &*known.name) == (bias, end, name));
        if let Some(known) = known {
            return Ok(known.start);
        }
        let new = MODULES + self.loaded * MODULE;
        if new + MODULE > MODULES_END {
            return Err(Error::Trace("it has too many modules".into()));
        }
        self.loaded += 1;
        self.modules.insert(start, Module { bias, end, name: name.to_vec(), start: new });
        Ok(new)
    }

    fn function(&self, name: &[u8]) -> Vec<u8> {
        if self.kept.has(name) { name.to_vec() } else { self.tokens.token("f", name).into_bytes() }
    }

    fn path(&self, path: &[u8]) -> Vec<u8> {
        let name = file_name(path);
        if !name.is_empty() && self.kept.has(name) {
            return [b"/", name].concat();
        }
        self.tokens.token("/p", path).into_bytes()
    }

    /// Returns the new name of a module, which consists of the build ID's token (decimal digits) and the path's token.
    fn module(&self, name: &[u8]) -> Vec<u8> {
        let space = name.iter().position(|byte| *byte == b' ');
        let (id, path) = space.map_or((&b"-"[..], name), |at| {
            (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default())
        });
        let id = if id == b"-" { "-".to_owned() } else { self.tokens.token("", id) };
        [id.as_bytes(), b" ", &self.path(path)].concat()
    }

    fn mark(&self, name: &[u8]) -> Vec<u8> {
        if self.kept.marks { name.to_vec() } else { self.tokens.token("m", name).into_bytes() }
    }

    /// Numbers processes and kernel threads in order of appearance.
    fn process(&mut self, process: u64) -> u64 {
        let next = self.processes.len() as u64 + 1;
        *self.processes.entry(process).or_insert(next)
    }

    /// Returns a value of the user metadata with its strings replaced. Numbers are kept, except for process IDs.
    fn value(&mut self, key: &str, value: &Value) -> Value {
        match value {
            Value::String(text) if key == "recorder" => text.split(' ').take(2).collect::<Vec<_>>().join(" ").into(),
            Value::String(text) if matches!(key, "program" | "trace") => {
                String::from_utf8_lossy(&self.path(text.as_bytes())).into()
            }
            Value::String(text) if self.is_known(key, text) => value.clone(),
            Value::String(text) => self.tokens.token("s", text.as_bytes()).into(),
            Value::Array(all) => all.iter().map(|one| self.value(key, one)).collect(),
            Value::Object(object) => Value::Object(self.object(object)),
            Value::Number(number) if matches!(key, "id" | "parent") => {
                number.as_u64().map_or(Value::Null, |id| self.process(id).into())
            }
            other => other.clone(),
        }
    }

    /// Returns whether a string may be kept.
    fn is_known(&self, key: &str, text: &str) -> bool {
        self.kept.has(text.as_bytes()) || key == "stamps" && STAMPS.contains(&text)
    }

    fn object(&mut self, object: &Map<String, Value>) -> Map<String, Value> {
        let mut without = Map::new();
        for (key, value) in object {
            match &**key {
                // Drop the time and the place of the recording.
                "host" | "start" | "recording" | "spool" => {}
                // Drop the format, which the writer adds itself.
                "format" => {}
                "clock" => {
                    let resolution = value.get("resolution_ns").filter(|resolution| resolution.is_u64());
                    let clock = resolution.map(|resolution| ("resolution_ns".to_owned(), resolution.clone()));
                    without.insert(key.clone(), clock.into_iter().collect::<Map<_, _>>().into());
                }
                known if KEYS.contains(&known) => drop(without.insert(key.clone(), self.value(key, value))),
                unknown => {
                    let token = self.tokens.token("k", unknown.as_bytes());
                    let value = self.value(unknown, value);
                    without.insert(token, value);
                }
            }
        }
        without
    }
}

impl Places for Anonymizer<'_> {
    fn address(&mut self, address: u64) -> Result<u64> {
        let moved = address.checked_add(self.shift);
        moved.ok_or_else(|| {
            Error::Trace(format!("0x{address:x} is not a user-space address and cannot be moved").into())
        })
    }

    fn frame(&mut self, frame: u64) -> Result<u64> {
        if is_python(frame) {
            return Ok(frame);
        }
        let call = frame.wrapping_sub(1);
        let module = self.modules.range(..=call).next_back().filter(|(_, module)| frame != 0 && call < module.end);
        let start = module.map_or(0, |(_, module)| module.start);
        let most = if start == 0 { MODULES } else { MODULE } - 2;
        let Frames { numbers, counts } = &mut self.frames;
        let number = match numbers.get(&(start, frame)) {
            Some(number) => *number,
            None => {
                let count = counts.entry(start).or_default();
                *count += 1;
                if *count > most {
                    return Err(Error::Trace("a module has too many frames".into()));
                }
                numbers.insert((start, frame), *count);
                *count
            }
        };
        Ok(start + number)
    }
}

impl EventSink for Anonymizer<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        for frame in event.stack.frames() {
            stack.push(self.frame(*frame)?);
        }
        let name: Vec<u8>;
        let kind = match event.kind {
            EventKind::ThreadStart { creator, task } => {
                EventKind::ThreadStart { creator, task: if task == 0 { 0 } else { self.process(task) } }
            }
            EventKind::ThreadName { name: of } => {
                name = self.tokens.token("t", of).into_bytes();
                EventKind::ThreadName { name: &name }
            }
            EventKind::Mark { name: of } => {
                name = self.mark(of);
                EventKind::Mark { name: &name }
            }
            EventKind::PhaseBegin { name: of } => {
                name = self.mark(of);
                EventKind::PhaseBegin { name: &name }
            }
            EventKind::PhaseEnd { name: of } => {
                name = self.mark(of);
                EventKind::PhaseEnd { name: &name }
            }
            EventKind::Image { process, path } => {
                self.modules.clear();
                name = self.path(path);
                EventKind::Image { process: self.process(process), path: &name }
            }
            EventKind::ModuleLoad { bias, start, end, name: of } => {
                let start = self.load(bias, start, end, of)?;
                name = self.module(of);
                EventKind::ModuleLoad { bias: start, start, end: start + MODULE, name: &name }
            }
            EventKind::ModuleUnload { start } => match self.modules.remove(&start) {
                Some(module) => EventKind::ModuleUnload { start: module.start },
                // A module that was not loaded in the trace has no new address.
                None => EventKind::ModuleUnload { start: MODULES_END - MODULE },
            },
            EventKind::Source { path } => {
                name = self.path(path);
                EventKind::Source { path: &name }
            }
            EventKind::Symbol { frame, line, name: of } => {
                name = self.function(of);
                EventKind::Symbol { frame: self.frame(frame)?, line, name: &name }
            }
            // No other event contains a string.
            kind => moved(kind, self)?,
        };
        // Drop HATF 1.0 attributes, which may contain arbitrary data.
        let passed = self.sink.event(&Event { kind, stack: (&stack).into(), attributes: &[], ..*event });
        self.stack = stack;
        passed
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(self.tokens.token("c", text).as_bytes())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let mut without = self.object(user_metadata);
        without.insert("anonymized".to_owned(), true.into());
        self.sink.user_metadata(&without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text) in
            [("std::*", "std::vec"), ("*", ""), ("libc.so*", "libc.so.6"), ("a*b*c", "aXbbXc"), ("main", "main")]
        {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("std::*", "mystd::vec"), ("", "a"), ("a*b", "abc"), ("main", "main2")] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }
}
