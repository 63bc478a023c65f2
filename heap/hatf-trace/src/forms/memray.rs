//! The output of `memray parse` for a [memray](https://bloomberg.github.io/memray/) file: each record is a word
//! followed by values.
//!
//! A stack consists of Python functions, or of native frames if there are no Python functions. The line of a function
//! is the line on which it begins, because the output does not contain the line of the call.

use hashbrown::HashMap;
use serde_json::json;

use super::text::{DEPTH, Log, Queue, TextSource, hex, shown};
use super::{Form, TraceReader};
use crate::event::{EventKind, Function, Pages, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::stacks::PYTHON_FRAMES;

pub(super) static FORM: Form = Form {
    name: "memray",
    about: "Output of memray parse",
    suffixes: &[".memray"],
    sniff: |head| head.bytes.starts_with(b"HEADER magic=memray "),
    open: Some(|input, _| Ok(TraceReader::new(TextSource::new(input.into_read(), MemrayLog::default())))),
    create: None,
    lost: "",
};

/// The functions that a thread is executing, outermost first.
type Running = Vec<u64>;

#[derive(Default)]
struct MemrayLog {
    command: Option<String>,
    /// The start time in milliseconds of the system clock.
    start: u64,
    main_thread: u64,
    /// The number of outermost functions of the main thread that belong to memray.
    skipped: usize,
    threads: HashMap<u64, Running>,
    /// Native frames: the address, and the number of the calling frame.
    native: Vec<(u64, u64)>,
    module: Option<Module>,
    losses: Losses,
}

/// A module whose segments follow.
struct Module {
    path: Vec<u8>,
    bias: u64,
    segments: u64,
    start: u64,
    end: u64,
}

type Result<T> = std::result::Result<T, String>;

impl Log for MemrayLog {
    const NAME: &'static str = "memray";

    fn line(&mut self, line: &[u8], queue: &mut Queue) -> Result<()> {
        let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        if self.command.is_none() && word != b"HEADER" {
            return Err("expected a `HEADER` record in the first line".to_owned());
        }
        let of = |name: &str| number(line, name);
        match word {
            b"ALLOCATION" => self.allocation(line, queue),
            b"FRAME_PUSH" => {
                let function = of("code_object_id")?;
                if function >= PYTHON_FRAMES {
                    return Err(format!("function ID {function} is too large: expected less than {PYTHON_FRAMES}"));
                }
                let running = self.threads.entry(queue.thread).or_default();
                if running.len() >= DEPTH {
                    return Err(format!("a stack has more than {DEPTH} functions"));
                }
                running.push(PYTHON_FRAMES + function);
                Ok(())
            }
            b"FRAME_POP" => {
                let count = usize::try_from(of("count")?).unwrap_or(usize::MAX);
                let running = self.threads.entry(queue.thread).or_default();
                let left = running.len().checked_sub(count);
                running.truncate(left.ok_or("more functions return than were called")?);
                Ok(())
            }
            b"CODE_OBJECT" => {
                let (id, first) = (of("code_id")?, of("firstlineno")?);
                let (name, file) = (text(line, "function_name")?, text(line, "filename")?);
                if id >= PYTHON_FRAMES {
                    return Err(format!("function ID {id} is too large: expected less than {PYTHON_FRAMES}"));
                }
                queue.symbol(PYTHON_FRAMES + id, name, file, first);
                Ok(())
            }
            b"CONTEXT_SWITCH" => {
                queue.thread = of("tid")?;
                Ok(())
            }
            b"THREAD" => {
                let name = line.get(7..).unwrap_or_default();
                queue.push(EventKind::ThreadName { name: &[] }, name);
                Ok(())
            }
            b"MEMORY_RECORD" => {
                let milliseconds = of("time")?.saturating_sub(self.start);
                let time = milliseconds.checked_mul(1_000_000).ok_or("a time exceeds 500 years")?;
                queue.time = queue.time.max(time);
                self.losses.note(Loss::Pages);
                Ok(())
            }
            b"NATIVE_FRAME_ID" => {
                let (address, parent) = (of("ip")?, of("index")?);
                if parent > self.native.len() as u64 {
                    return Err(format!("there is no native frame {parent}"));
                }
                self.native.push((address, parent));
                Ok(())
            }
            b"SEGMENT_HEADER" => {
                let (bias, segments) = (of("addr")?, of("num_segments")?);
                let path = text(line, "filename")?.to_vec();
                self.module = Some(Module { path, bias, segments, start: u64::MAX, end: 0 });
                Ok(())
            }
            b"SEGMENT" => self.segment(line, queue),
            b"HEADER" => self.header(line),
            // The start of the memory map, the end of the file, and tracked Python objects are ignored.
            b"MEMORY_MAP_START" | b"TRAILER" | b"OBJECT_RECORD" | b"SURVIVING_OBJECT" => Ok(()),
            word if word.starts_with(b"AGGREGATED") => {
                Err("an aggregated file contains totals but no events: record without --aggregate".to_owned())
            }
            _ => Err(format!("expected a memray record, found `{}`", shown(line))),
        }
    }

    fn user_metadata(&self) -> UserMetadata {
        let command = self.command.iter().map(|command| ("command".to_owned(), json!([command])));
        command.collect()
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

impl MemrayLog {
    fn header(&mut self, line: &[u8]) -> Result<()> {
        if text(line, "file_format")? != b"ALL_ALLOCATIONS" {
            return Err("the file contains totals but no events: expected file_format=ALL_ALLOCATIONS".to_owned());
        }
        self.start = number(line, "start_time")?;
        self.main_thread = number(line, "main_tid")?;
        self.skipped = usize::try_from(number(line, "skipped_frames_on_main_tid")?).unwrap_or(usize::MAX);
        let rest = value(line, "command_line")?;
        let end = rest.windows(18).position(|window| window == b" python_allocator=").unwrap_or(rest.len());
        let command = rest.get(..end).unwrap_or_default();
        self.command = Some(String::from_utf8_lossy(command).into_owned());
        Ok(())
    }

    fn segment(&mut self, line: &[u8], queue: &mut Queue) -> Result<()> {
        let mut words = line.split(|byte| *byte == b' ').skip(1);
        let mut next = || words.next().and_then(|word| if word == b"(nil)" { Some(0) } else { hex(word) });
        let place = next().zip(next());
        let (Some(module), Some((at, length))) = (&mut self.module, place) else {
            return Err("a segment requires a module, an address and a length".to_owned());
        };
        let start = module.bias.checked_add(at);
        let end = start.and_then(|start| start.checked_add(length));
        let (start, end) = start.zip(end).ok_or("a segment extends past the end of the address space")?;
        (module.start, module.end) = (module.start.min(start), module.end.max(end));
        module.segments = module.segments.saturating_sub(1);
        if module.segments == 0
            && let Some(Module { path, bias, start, end, .. }) = self.module.take()
        {
            queue.load(&path, bias, start, end);
        }
        Ok(())
    }

    fn allocation(&mut self, line: &[u8], queue: &mut Queue) -> Result<()> {
        let (address, size) = (number(line, "address")?, number(line, "size")?);
        let allocator = text(line, "allocator")?;
        // The functions of Python's own allocator have the same names after a prefix.
        let allocator = allocator.strip_prefix(b"pymalloc_").unwrap_or(allocator);
        let function = match allocator {
            b"malloc" => Function::Malloc,
            b"calloc" => Function::Calloc,
            // The free of the old block has its own record.
            b"realloc" => Function::Realloc,
            b"memalign" => Function::Memalign,
            b"posix_memalign" => Function::PosixMemalign,
            b"aligned_alloc" => Function::AlignedAlloc,
            b"valloc" => Function::Valloc,
            b"pvalloc" => Function::Pvalloc,
            b"free" => {
                queue.free(address);
                return Ok(());
            }
            b"mmap" => {
                let pages = Pages::Map { start: address, length: size, protection: 0, flags: 0 };
                queue.push(EventKind::Pages(pages), &[]);
                return Ok(());
            }
            b"munmap" => {
                queue.push(EventKind::Pages(Pages::Unmap { start: address, length: size }), &[]);
                return Ok(());
            }
            other => return Err(format!("unknown allocator `{}`", shown(other))),
        };
        queue.stack.clear();
        if let Some(running) = self.threads.get(&queue.thread) {
            let skipped = if queue.thread == self.main_thread { self.skipped } else { 0 };
            queue.stack.extend(running.iter().skip(skipped).rev());
        }
        let mut native = number(line, "native_frame_id")?;
        if native != 0 && !queue.stack.is_empty() {
            self.losses.note(Loss::NativeFrames);
        } else {
            while native != 0 && queue.stack.len() < DEPTH {
                let frame = usize::try_from(native - 1).ok().and_then(|number| self.native.get(number));
                let (address, parent) = frame.ok_or_else(|| format!("there is no native frame {native}"))?;
                queue.stack.push(*address);
                native = *parent;
            }
        }
        queue.call(function, size, 0, address);
        Ok(())
    }
}

/// Returns the text after `NAME=` in a line.
fn value<'l>(line: &'l [u8], name: &str) -> Result<&'l [u8]> {
    let key = format!(" {name}=");
    let at = line.windows(key.len()).position(|window| window == key.as_bytes());
    at.and_then(|at| line.get(at + key.len()..)).ok_or_else(|| format!("a record lacks `{name}`"))
}

/// Returns the value of a name. Paths may contain spaces, so the value ends where the next name begins.
fn text<'l>(line: &'l [u8], name: &str) -> Result<&'l [u8]> {
    let rest = value(line, name)?;
    let Some(equals) = rest.iter().position(|byte| *byte == b'=') else { return Ok(rest) };
    let before = rest.get(..equals).unwrap_or_default();
    let space = before.iter().rposition(|byte| *byte == b' ');
    Ok(space.and_then(|space| before.get(..space)).unwrap_or(rest))
}

fn number(line: &[u8], name: &str) -> Result<u64> {
    let text = text(line, name)?;
    if text == b"(nil)" {
        return Ok(0);
    }
    let parsed = if text.starts_with(b"0x") {
        hex(text)
    } else {
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
    };
    parsed.ok_or_else(|| format!("expected a number in `{name}`, found `{}`", shown(text)))
}
