//! Text output of events. Each event is a line, followed by its stack.

use std::io::{self, Write};

use metatf_page::shown;
use metatf_page::units::count;

use super::site_tables::NOT_KNOWN;
use super::sites::stack_lines;
use hatf_trace::event::{Accesses, Call, Event, EventKind, Function, Pages, Resident, UNKNOWN_SIZE};
use hatf_trace::stacks::Stacks;

/// A printer of events.
///
/// # Examples
///
/// ```
/// use hatf_trace::Event;
/// use hatf_view::report::EventPrinter;
///
/// let mut printer = EventPrinter::new(8);
/// let event = Event { time: 1_500_000, ..Event::malloc(0x1000, 24) };
/// printer.note(&event);
/// assert!(printer.add(1, &event));
/// let mut text = Vec::new();
/// printer.print(&mut text)?;
/// assert!(String::from_utf8(text)?.ends_with("0.001500 s  thread 1    malloc 24 bytes at 0x1000\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct EventPrinter {
    stacks: Stacks,
    /// Maximum number of lines per stack.
    depth: usize,
    /// Lines of events not yet printed, and the numbers of their stacks.
    pending: Vec<(String, u64)>,
}

impl EventPrinter {
    /// Creates a printer that prints up to `depth` lines of each stack.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    /// Updates the loaded modules and function locations from an event. Must be called for every event of a trace,
    /// whether or not it is printed.
    pub fn note(&mut self, event: &Event<'_>) {
        self.stacks.note(&event.kind);
    }

    /// Adds an event to print, with its record number. Returns whether the event will be printed. Events about modules
    /// and symbols are not printed, because stacks show their contents.
    pub fn add(&mut self, number: u64, event: &Event<'_>) -> bool {
        let Some(text) = text(&event.kind) else { return false };
        let (seconds, rest) = (event.time / 1_000_000_000, event.time % 1_000_000_000 / 1000);
        let line = format!("{:>12} {seconds:>5}.{rest:06} s  thread {:<3}  {text}", count(number), event.thread);
        let site = if self.depth == 0 { 0 } else { self.stacks.number(event.stack) };
        self.pending.push((line, site));
        true
    }

    /// Returns the number of events not yet printed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the stacks read so far, which callers can symbolize, and the numbers of the stacks to be printed next.
    pub fn stacks(&mut self) -> (&mut Stacks, Vec<u64>) {
        let sites = self.pending.iter().map(|(_, site)| *site).filter(|site| *site > 0).collect();
        (&mut self.stacks, sites)
    }

    /// Prints the events not yet printed.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn print(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for (line, site) in self.pending.drain(..) {
            writeln!(out, "{line}")?;
            if site == 0 {
                continue;
            }
            let lines = stack_lines(self.stacks.get(site), self.depth);
            writeln!(out, "{:43}{}", "", lines.first().map_or(NOT_KNOWN.into(), |line| shown(line)))?;
            lines.iter().skip(1).try_for_each(|line| writeln!(out, "{:45}{}", "", shown(line)))?;
        }
        Ok(())
    }
}

/// Returns whether an event is about the block at an address.
#[must_use]
pub fn concerns(kind: &EventKind<'_>, block: u64) -> bool {
    match *kind {
        EventKind::Call(call) | EventKind::ReallocEnd(call) | EventKind::Failed(call) => {
            call.address == block || call.old == block
        }
        EventKind::Free { address }
        | EventKind::ReallocBegin { old: address }
        | EventKind::Accesses(Accesses { address, .. })
        | EventKind::LastAccess { address, .. }
        | EventKind::Untouched { address, .. } => address == block,
        _ => false,
    }
}

/// Formats an event. Returns `None` for an event that only describes frames.
fn text(kind: &EventKind<'_>) -> Option<String> {
    let name = |name: &[u8]| shown(&String::from_utf8_lossy(name)).into_owned();
    Some(match *kind {
        EventKind::Call(call) => format!("{}{}", request(&call), result(&call)),
        EventKind::Failed(call) => format!("{} failed", request(&call)),
        EventKind::Free { address } => format!("free of {address:#x}"),
        EventKind::ReallocBegin { old } => format!("realloc of {old:#x} begins"),
        EventKind::ReallocEnd(call) => format!("{} ends{}", request(&call), result(&call)),
        EventKind::CreateHeap => "heap begins".to_owned(),
        EventKind::DestroyHeap => "heap ends".to_owned(),
        EventKind::ThreadStart { creator, task } => {
            let by = if creator == 0 { String::new() } else { format!(", created by thread {creator}") };
            let task = if task == 0 { String::new() } else { format!(", TID {task}") };
            format!("thread starts{by}{task}")
        }
        EventKind::ThreadName { name: text } => format!("thread is named {}", name(text)),
        EventKind::Pages(ref pages) => self::pages(pages),
        EventKind::Resident(Resident { resident, shared, data, .. }) => format!(
            "resident {} bytes, {} of them shared; {} bytes of writable private pages and stacks",
            count(resident),
            count(shared),
            count(data)
        ),
        EventKind::ThreadEnd => "thread ends".to_owned(),
        EventKind::Mark { name: text } => format!("mark {}", name(text)),
        EventKind::PhaseBegin { name: text } => format!("phase {} begins", name(text)),
        EventKind::PhaseEnd { name: text } => format!("phase {} ends", name(text)),
        EventKind::Image { process, path } => format!("program {} starts, PID {process}", name(path)),
        EventKind::Exit { status } => format!("exit with status {status}"),
        EventKind::Killed { signal } => format!("killed by signal {signal}"),
        EventKind::Accesses(accesses) => {
            let Accesses { address, loads, stores, touched, granules, reached } = accesses;
            let at_least = if reached { ", plus unknown accesses" } else { "" };
            let (loads, stores) = (count(loads), count(stores));
            format!("{address:#x}: {loads} loads, {stores} stores, {touched} of {granules} granules accessed{at_least}")
        }
        EventKind::LastAccess { address, last: 0 } => format!("{address:#x}: not accessed"),
        EventKind::LastAccess { address, last } => format!("{address:#x}: last accessed at {} ns", count(last)),
        EventKind::Untouched { address, bytes } => format!("{address:#x}: {} bytes untouched", count(bytes)),
        EventKind::Enter { function } => format!("function at {function:#x} is entered"),
        EventKind::Leave => "function returns".to_owned(),
        EventKind::Processor { cpu } => format!("on CPU {cpu}"),
        EventKind::Recording { on: true } => "recording resumes".to_owned(),
        EventKind::Recording { on: false } => "recording stops".to_owned(),
        EventKind::Lost { events } => format!("{} events are missing here", count(events)),
        EventKind::ModuleLoad { .. }
        | EventKind::ModuleUnload { .. }
        | EventKind::Source { .. }
        | EventKind::Symbol { .. } => return None,
    })
}

fn pages(pages: &Pages) -> String {
    match *pages {
        Pages::Map { start, length, protection, flags } => {
            format!("mmap of {} bytes at {start:#x} (protection {protection:#x}, flags {flags:#x})", count(length))
        }
        Pages::Unmap { start, length } => format!("munmap of {} bytes at {start:#x}", count(length)),
        Pages::Remap { from, from_length, start, length } => {
            format!("mremap of {} bytes at {from:#x} to {} bytes at {start:#x}", count(from_length), count(length))
        }
        Pages::Break { end } => format!("program break at {end:#x}"),
        Pages::Advise { start, length, advice } => {
            format!("madvise {advice} of {} bytes at {start:#x}", count(length))
        }
    }
}

/// Formats a call without its result.
fn request(call: &Call) -> String {
    let Call { function, detail, size, old, .. } = *call;
    let of = if old == 0 { String::new() } else { format!(" of {old:#x} to") };
    let size = if size == UNKNOWN_SIZE { "unknown size".to_owned() } else { format!("{} bytes", count(size)) };
    let detail = match function {
        _ if detail == 0 => String::new(),
        function if function.counts() => format!(" ({} elements)", count(detail)),
        function if Function::aligns(function) => format!(" (alignment {})", count(detail)),
        _ => String::new(),
    };
    format!("{}{of} {size}{detail}", function.name())
}

fn result(call: &Call) -> String {
    if call.address == 0 { String::new() } else { format!(" at {:#x}", call.address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_words() {
        let call = |function, detail, size, old, address| Call { detail, size, old, address, ..Call::new(function) };
        let words = [
            (EventKind::Call(call(Function::Malloc, 0, 1000, 0, 16)), "malloc 1,000 bytes at 0x10"),
            (EventKind::Call(call(Function::Calloc, 5, 40, 0, 16)), "calloc 40 bytes (5 elements) at 0x10"),
            (EventKind::Call(call(Function::Memalign, 64, 40, 0, 64)), "memalign 40 bytes (alignment 64) at 0x40"),
            (EventKind::Call(call(Function::Realloc, 0, 40, 16, 32)), "realloc of 0x10 to 40 bytes at 0x20"),
            (
                EventKind::Call(call(Function::Realloc, 0, UNKNOWN_SIZE, 16, 32)),
                "realloc of 0x10 to unknown size at 0x20",
            ),
            (EventKind::Call(call(Function::Realloc, 0, 0, 16, 0)), "realloc of 0x10 to 0 bytes"),
            (EventKind::Failed(call(Function::Malloc, 0, 7, 0, 0)), "malloc 7 bytes failed"),
            (EventKind::ReallocEnd(call(Function::Realloc, 0, 7, 0, 16)), "realloc 7 bytes ends at 0x10"),
            (EventKind::Image { process: 7, path: b"/bin/\x1b" }, "program /bin/\\u{1b} starts, PID 7"),
            (EventKind::ThreadStart { creator: 0, task: 0 }, "thread starts"),
            (EventKind::ThreadStart { creator: 1, task: 7 }, "thread starts, created by thread 1, TID 7"),
            (EventKind::ThreadName { name: b"pool" }, "thread is named pool"),
            (EventKind::Pages(Pages::Unmap { start: 4096, length: 8192 }), "munmap of 8,192 bytes at 0x1000"),
            (EventKind::Recording { on: false }, "recording stops"),
            (
                EventKind::Accesses(Accesses {
                    address: 32,
                    loads: 1000,
                    stores: 2,
                    touched: 1,
                    granules: 3,
                    reached: true,
                }),
                "0x20: 1,000 loads, 2 stores, 1 of 3 granules accessed, plus unknown accesses",
            ),
            (EventKind::LastAccess { address: 32, last: 5000 }, "0x20: last accessed at 5,000 ns"),
            (EventKind::LastAccess { address: 32, last: 0 }, "0x20: not accessed"),
            (EventKind::Untouched { address: 32, bytes: 8192 }, "0x20: 8,192 bytes untouched"),
            (EventKind::Enter { function: 16 }, "function at 0x10 is entered"),
            (EventKind::Lost { events: u64::MAX }, "18,446,744,073,709,551,615 events are missing here"),
        ];
        for (kind, words) in words {
            assert_eq!(text(&kind).as_deref(), Some(words));
        }
        assert_eq!(text(&EventKind::Source { path: b"a.c" }), None);
        let moved = EventKind::Call(call(Function::Realloc, 0, 40, 16, 32));
        assert!(concerns(&moved, 16) && concerns(&moved, 32) && !concerns(&moved, 64));
        assert!(!concerns(&EventKind::ThreadEnd, 0));
    }
}
