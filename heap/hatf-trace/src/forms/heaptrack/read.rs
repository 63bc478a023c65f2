//! Reader for heaptrack data.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use serde_json::json;

use super::super::text::{DEPTH, Log, Queue, hex, shown};
use crate::event::{EventKind, Function, UserMetadata};
use crate::loss::{Loss, Losses};

/// Bytes of a memory page. Interpreted data has no module addresses, so a module consists of the pages that contain its
/// frames.
const PAGE: u64 = 1 << 12;
/// Alignment of the addresses assigned to blocks of interpreted data.
const STEP: u64 = 16;

type Result<T> = std::result::Result<T, String>;

/// A frame of interpreted data.
struct Frame {
    address: u64,
    module: u64,
    /// The function, file and line of each function in the frame, inlined functions first.
    functions: Vec<[u64; 3]>,
    was_given: bool,
}

/// The state of the reader after a line.
#[derive(Default)]
pub(super) struct HeaptrackLog {
    version: Option<u64>,
    is_raw: bool,
    command: Option<String>,
    /// The path of the program.
    program: Vec<u8>,
    strings: Vec<Vec<u8>>,
    frames: Vec<Frame>,
    /// The innermost frame of each stack (its address, or its number in interpreted data), and the number of the
    /// remaining stack.
    stacks: Vec<(u64, u64)>,
    /// Blocks of interpreted data with the same size and stack: the size, the stack, and the addresses of live blocks.
    blocks: Vec<(u64, u64, Vec<u64>)>,
    /// The address of the next block of interpreted data.
    next: u64,
    /// The ends and names of loaded modules, by start address. `stale` contains the modules that the module list being
    /// read has not repeated yet.
    modules: BTreeMap<u64, (u64, Vec<u8>)>,
    stale: HashSet<u64>,
    /// Module pages of interpreted data.
    pages: HashMap<u64, u64>,
    losses: Losses,
}

impl Log for HeaptrackLog {
    const NAME: &'static str = "heaptrack";

    fn line(&mut self, line: &[u8], queue: &mut Queue) -> Result<()> {
        let Some((&mode, rest)) = line.split_first() else { return Ok(()) };
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        if self.version.is_none() && mode != b'v' {
            return Err("expected the version (`v`) in the first line".to_owned());
        }
        if mode != b'm' && !self.stale.is_empty() {
            self.unload(queue);
        }
        match mode {
            b'+' => self.allocated(rest, queue),
            b'-' => self.freed(rest, queue),
            b't' => {
                let [frame, parent] = numbers(rest)?;
                let known = if self.is_raw { u64::MAX } else { self.frames.len() as u64 };
                if parent > self.stacks.len() as u64 || frame > known {
                    return Err("a stack refers to an unknown frame or stack".to_owned());
                }
                self.stacks.push((frame, parent));
                Ok(())
            }
            b'i' => self.frame(rest),
            b's' => {
                let string = self.string(rest)?.0.to_vec();
                self.strings.push(string);
                Ok(())
            }
            b'a' => {
                let [size, stack] = numbers(rest)?;
                self.check_stack(stack)?;
                self.blocks.push((size, stack, Vec::new()));
                Ok(())
            }
            b'm' => self.module(rest, queue),
            b'c' => {
                let [milliseconds] = numbers(rest)?;
                queue.time = milliseconds.checked_mul(1_000_000).ok_or("a time exceeds 500 years")?;
                Ok(())
            }
            b'v' => self.begin(rest),
            b'x' => {
                self.is_raw = true;
                self.program = self.string(rest)?.0.to_vec();
                queue.heap = 1;
                queue.push(EventKind::Image { process: 0, path: &[] }, &self.program.clone());
                Ok(())
            }
            b'X' => {
                self.command = Some(String::from_utf8_lossy(rest).into_owned());
                Ok(())
            }
            // The recorder has attached, and recording begins here.
            b'A' => {
                queue.push(EventKind::Recording { on: true }, &[]);
                Ok(())
            }
            b'R' => {
                self.losses.note(Loss::Pages);
                Ok(())
            }
            // Lines about the machine's memory, comments, and suppressed leaks are ignored.
            b'I' | b'#' | b'S' => Ok(()),
            _ => Err(format!("expected a heaptrack line, found `{}`", shown(line))),
        }
    }

    fn user_metadata(&self) -> UserMetadata {
        let mut user_metadata = UserMetadata::new();
        if let Some(command) = &self.command {
            user_metadata.insert("command".to_owned(), json!([command]));
        }
        if !self.program.is_empty() {
            user_metadata.insert("program".to_owned(), String::from_utf8_lossy(&self.program).into());
        }
        user_metadata
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

impl HeaptrackLog {
    fn begin(&mut self, rest: &[u8]) -> Result<()> {
        let [_, version] = numbers(rest)?;
        if self.version.is_some() || !(1..=3).contains(&version) {
            return Err(format!("unsupported data version {version}: expected a single version from 1 to 3"));
        }
        self.version = Some(version);
        Ok(())
    }

    /// Reads a string, which either follows its length or extends to the end of the line. Returns the string and the
    /// rest of the line.
    fn string<'l>(&self, rest: &'l [u8]) -> Result<(&'l [u8], &'l [u8])> {
        if self.version < Some(3) {
            return Ok((rest, &[]));
        }
        let (length, string) = rest.split_at(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()));
        let length = hex(length).and_then(|length| usize::try_from(length).ok());
        let string = string.strip_prefix(b" ").unwrap_or(string);
        let split = length.and_then(|length| string.split_at_checked(length));
        split.ok_or_else(|| "a string is shorter than its stated length".to_owned())
    }

    fn check_stack(&self, stack: u64) -> Result<()> {
        if stack > self.stacks.len() as u64 { Err(format!("there is no stack {stack:x}")) } else { Ok(()) }
    }

    fn frame(&mut self, rest: &[u8]) -> Result<()> {
        let words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let words: Option<Vec<u64>> = words.map(hex).collect();
        let words = words.unwrap_or_default();
        let [address, module, ref functions @ ..] = words[..] else {
            return Err("expected the address and the module of a frame".to_owned());
        };
        // A function without a line number has no file either.
        let place = |words: &[u64]| [0, 1, 2].map(|place| words.get(place).copied().unwrap_or_default());
        let functions: Vec<[u64; 3]> = functions.chunks(3).map(place).collect();
        let strings = self.strings.len() as u64;
        if module > strings || functions.iter().any(|of| of[0] > strings || of[1] > strings) {
            return Err("a frame refers to an unknown string".to_owned());
        }
        self.frames.push(Frame { address, module, functions, was_given: false });
        Ok(())
    }

    fn module(&mut self, rest: &[u8], queue: &mut Queue) -> Result<()> {
        self.is_raw = true;
        let (path, rest) = if self.version < Some(3) {
            rest.split_at(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()))
        } else {
            self.string(rest)?
        };
        if path == b"-" {
            self.stale = self.modules.keys().copied().collect();
            return Ok(());
        }
        let words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let words: Option<Vec<u64>> = words.map(hex).collect();
        let words = words.unwrap_or_default();
        let [bias, ref segments @ ..] = words[..] else { return Err("a module has no address".to_owned()) };
        let (segments, odd) = segments.as_chunks::<2>();
        let start = segments.iter().map(|[at, _]| *at).min();
        let end = segments.iter().filter_map(|[at, length]| at.checked_add(*length)).max();
        let place = start.zip(end).and_then(|(start, end)| Some((bias.checked_add(start)?, bias.checked_add(end)?)));
        let Some((start, end)) = place.filter(|_| odd.is_empty()) else {
            return Err("a module has no segments, or its segments extend past the end of the address space".to_owned());
        };
        let path = if path == b"x" { self.program.clone() } else { path.to_vec() };
        let module = (end, path);
        let is_there = self.stale.remove(&start) && self.modules.get(&start) == Some(&module);
        if !is_there {
            queue.load(&module.1, bias, start, end);
            self.modules.insert(start, module);
        }
        Ok(())
    }

    /// Unloads the modules that a new list does not contain.
    fn unload(&mut self, queue: &mut Queue) {
        let mut gone: Vec<u64> = self.stale.drain().collect();
        gone.sort_unstable();
        for start in gone {
            self.modules.remove(&start);
            queue.push(EventKind::ModuleUnload { start }, &[]);
        }
    }

    fn allocated(&mut self, rest: &[u8], queue: &mut Queue) -> Result<()> {
        let (size, stack, address) = if self.is_raw {
            let [size, stack, address] = numbers(rest)?;
            self.check_stack(stack)?;
            (size, stack, address)
        } else {
            let [block] = numbers(rest)?;
            self.next = self.next.max(STEP);
            let address = self.next;
            let (size, stack, live) = self.block(block)?;
            live.push(address);
            let (size, stack) = (*size, *stack);
            let length = size.max(1).checked_next_multiple_of(STEP);
            let next = length.and_then(|length| address.checked_add(length));
            self.next = next.ok_or("the blocks do not fit in the address space")?;
            self.losses.note(Loss::Addresses);
            (size, stack, address)
        };
        self.stack(stack, queue)?;
        // Heaptrack does not record which function was called.
        queue.call(Function::Malloc, size, 0, address);
        Ok(())
    }

    fn freed(&mut self, rest: &[u8], queue: &mut Queue) -> Result<()> {
        let address = if self.is_raw {
            let [address] = numbers(rest)?;
            address
        } else {
            let [block] = numbers(rest)?;
            // Interpreted data does not distinguish blocks with the same size and stack, so free the most recent one.
            let (_, _, live) = self.block(block)?;
            live.pop().ok_or("a free refers to a block that is not live")?
        };
        queue.free(address);
        Ok(())
    }

    fn block(&mut self, number: u64) -> Result<&mut (u64, u64, Vec<u64>)> {
        let block = usize::try_from(number).ok().and_then(|number| self.blocks.get_mut(number));
        block.ok_or_else(|| format!("there is no allocation {number:x}"))
    }

    /// Adds the frames of a stack to the queue. For interpreted frames not seen before, also adds their modules and
    /// functions.
    fn stack(&mut self, number: u64, queue: &mut Queue) -> Result<()> {
        queue.stack.clear();
        let mut number = number;
        while number != 0 {
            let found = usize::try_from(number - 1).ok().and_then(|number| self.stacks.get(number));
            let Some(&(frame, parent)) = found else { return Err(format!("there is no stack {number:x}")) };
            // A stack refers only to an earlier stack, so there is no cycle.
            number = parent;
            if queue.stack.len() >= DEPTH {
                return Err(format!("a stack has more than {DEPTH} frames"));
            }
            let address = if self.is_raw { frame } else { self.address(frame, queue) };
            queue.stack.push(address);
        }
        Ok(())
    }

    /// Returns the address of a frame of interpreted data.
    fn address(&mut self, number: u64, queue: &mut Queue) -> u64 {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(frame) = index.and_then(|index| self.frames.get_mut(index)) else { return 0 };
        if std::mem::replace(&mut frame.was_given, true) {
            return frame.address;
        }
        let string = |place: u64| {
            let index = usize::try_from(place).ok().and_then(|place| place.checked_sub(1));
            index.and_then(|index| self.strings.get(index)).map_or(&[][..], Vec::as_slice)
        };
        // The addresses of modules, and addresses within the module files, are unknown except for the pages that
        // contain frames. The path is reduced to a file name so that no command searches the file for symbols later.
        let page = frame.address.saturating_sub(1) / PAGE * PAGE;
        let path = string(frame.module);
        if !path.is_empty() && self.pages.insert(page, frame.module) != Some(frame.module) {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            queue.load(name, 0, page, page.saturating_add(PAGE));
        }
        // The innermost function is first, and each is inlined into the next.
        for [function, file, line] in &frame.functions {
            if *function != 0 {
                queue.symbol(frame.address, string(*function), string(*file), *line);
            }
        }
        frame.address
    }
}

/// Parses the first `N` numbers of a line. The line may contain more.
fn numbers<const N: usize>(rest: &[u8]) -> Result<[u64; N]> {
    let mut words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let mut found = [0; N];
    for number in &mut found {
        *number = words.next().and_then(hex).ok_or_else(|| format!("expected {N} hexadecimal numbers"))?;
    }
    Ok(found)
}
