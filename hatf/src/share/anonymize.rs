//! A trace without names: texts become tokens, addresses are moved, frames are numbered.
//!
//! Blocks and pages are moved together, by whole GiB, so that what lies on which page stays as it is. Code is not: a frame becomes the number
//! of its first use in its module, since offsets in a known library are as good as names.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::moved::{Places, moved};
use super::tokens::Tokens;
use crate::event::{Event, EventKind, EventSink, UserMetadata};
use crate::stacks::is_python;
use crate::{Error, Result};

/// Blocks and pages are moved by a multiple of this: larger than any page.
const STEP: u64 = 1 << 30;
/// By at most this many of them.
const STEPS: u64 = 1 << 16;
/// Addresses of each module.
const MODULE: u64 = 1 << 24;
/// Where modules begin: frames below are in none.
const MODULES: u64 = 1 << 33;
/// Where they end: frames of Python's code are above.
const MODULES_END: u64 = 1 << 47;

/// Keys of user metadata that are of the format, not of the program.
pub(super) const KEYS: [&str; 44] = [
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
];

/// Clocks by which the recorder stamps events.
pub(super) const STAMPS: [&str; 3] = ["tsc", "cntvct", "CLOCK_MONOTONIC"];

/// Which names stay.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Patterns of functions, of names of files without their folders, and of texts of the user metadata; `*` stands for any text.
    pub patterns: Vec<String>,
    /// Names of marks and phases.
    pub marks: bool,
}

impl Kept {
    /// Returns whether a name stays.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        self.patterns.iter().any(|pattern| matches(pattern.as_bytes(), name))
    }
}

/// Returns whether a pattern, in which `*` stands for any text, is the whole of a text. It takes as many steps as both are long, multiplied.
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

/// Returns the name of a file without its folders.
pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// A module that is loaded.
struct Module {
    bias: u64,
    end: u64,
    name: Vec<u8>,
    /// Where it is loaded in the new trace; none of those before is there.
    start: u64,
}

/// Frames that were met, by their module's new address.
#[derive(Default)]
struct Frames {
    numbers: HashMap<(u64, u64), u64>,
    /// How many there are of each module.
    counts: HashMap<u64, u64>,
}

/// Passes a trace on without names.
pub struct Anonymizer<'s> {
    tokens: Tokens,
    kept: Kept,
    shift: u64,
    modules: BTreeMap<u64, Module>,
    /// How many were loaded.
    loaded: u64,
    frames: Frames,
    processes: HashMap<u64, u64>,
    stack: Vec<u64>,
    sink: &'s mut dyn EventSink,
}

impl<'s> Anonymizer<'s> {
    /// Starts to pass on to a sink.
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

    /// Loads a module. What is loaded again at once, as it was, is the same.
    fn load(&mut self, bias: u64, start: u64, end: u64, name: &[u8]) -> Result<u64> {
        let known = self.modules.get(&start).filter(|known| (known.bias, known.end, &*known.name) == (bias, end, name));
        if let Some(known) = known {
            return Ok(known.start);
        }
        let new = MODULES + self.loaded * MODULE;
        if new + MODULE > MODULES_END {
            return Err(Error::Trace("it has more modules than can be numbered".into()));
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

    /// A build id in decimal digits, and the path.
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

    /// Numbers processes, and the system's threads, as they are met.
    fn process(&mut self, process: u64) -> u64 {
        let next = self.processes.len() as u64 + 1;
        *self.processes.entry(process).or_insert(next)
    }

    /// Returns a value without texts. Numbers stay, but those of processes.
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

    /// Returns whether a text is one that may be known.
    fn is_known(&self, key: &str, text: &str) -> bool {
        self.kept.has(text.as_bytes()) || key == "stamps" && STAMPS.contains(&text)
    }

    fn object(&mut self, object: &Map<String, Value>) -> Map<String, Value> {
        let mut without = Map::new();
        for (key, value) in object {
            match &**key {
                // When and where it was.
                "host" | "start" | "recording" | "spool" => {}
                // What its writer is to say.
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
            Error::Trace(format!("address 0x{address:x} is none of a program: it cannot be moved").into())
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
                    return Err(Error::Trace("a module has more frames than can be numbered".into()));
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
                // One that is not known is nowhere.
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
            // No other has a text.
            kind => moved(kind, self)?,
        };
        // Attributes of HATF 1.0 may hold anything.
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
