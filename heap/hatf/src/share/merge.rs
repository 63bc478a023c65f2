//! Merges the traces of several processes into one trace, ordered by time.
//!
//! A heap trace describes one process. To avoid collisions, some bits of [addresses](super::process) contain the
//! process number, and each process gets its own thread numbers.

use std::collections::{BTreeSet, HashMap};

use hatf_lab::AddressMap;
use hatf_trace::OwnedEvent;
use metatf_tools::merge::{Keyed, Source};
use serde_json::{Value, json};

use super::mapped::Mapped;
use super::moved::{Places as _, moved};
use super::process::{Into, MOST};
use hatf_trace::event::{Event, EventKind, EventSink, EventSource, Item, Pages, Resident, UserMetadata};
use hatf_trace::forms::TraceReader;
use hatf_trace::{Error, Result};

/// The protection (readable, writable) and the flags (private, anonymous) of an `mmap` call that is equivalent to a
/// program break.
const OF_BREAK: (u64, u64) = (3, 0x22);

/// A trace to be merged.
pub struct Merged {
    /// The events of the trace.
    pub trace: TraceReader,
    /// The name of the trace in messages and in the new trace.
    pub name: String,
    /// Nanoseconds added to the times of the trace.
    pub offset: u64,
}

/// A trace whose next item is stored in [`Merging`].
struct Input {
    trace: TraceReader,
    name: String,
    index: usize,
    offset: u64,
    /// The latest time, which is the sort key for items without a time.
    last: u64,
}

/// The next item of a trace.
#[derive(Default)]
struct Next {
    event: OwnedEvent,
    comment: Option<Vec<u8>>,
}

/// The tracked state of a process.
#[derive(Default)]
struct Process {
    /// The label, such as `2-git`.
    label: String,
    name: String,
    path: String,
    id: u64,
    offset: u64,
    user_metadata: UserMetadata,
    threads: HashMap<u64, u64>,
    /// Live blocks, by their addresses in the new trace.
    live: AddressMap<()>,
    modules: BTreeSet<u64>,
    mapped: Mapped,
    program_break: u64,
    resident: Resident,
    source: Vec<u8>,
    is_over: bool,
}

/// The state of a merge.
struct Merging<'s> {
    next: Vec<Next>,
    processes: Vec<Process>,
    sink: &'s mut dyn EventSink,
    threads: u64,
    /// Whether an image was forwarded.
    has_image: bool,
    source: Vec<u8>,
}

impl Source<Merging<'_>, Error> for Input {
    fn next(&mut self, to: &mut Merging<'_>, keyed: &mut Keyed) -> Result<bool> {
        let item = self.trace.next().map_err(|error| about(&self.name, error))?;
        let Some(next) = to.next.get_mut(self.index) else { return Ok(false) };
        match item {
            None => {
                to.over(self.index, self.last)?;
                return Ok(false);
            }
            Some(Item::Comment(text)) => next.comment = Some(text.to_vec()),
            Some(Item::Event(event)) => {
                let untimed = matches!(event.kind, EventKind::Source { .. } | EventKind::Symbol { .. });
                if !untimed {
                    self.last = event.time.saturating_add(self.offset);
                }
                next.comment = None;
                next.event.set(&Event { time: if untimed { 0 } else { self.last }, ..event });
            }
        }
        (keyed.key, keyed.section) = (self.last, self.index);
        Ok(true)
    }
}

/// Adds the name of the trace to an error.
fn about(name: &str, error: Error) -> Error {
    match error {
        Error::Trace(error) if !error.to_string().starts_with(name) => Error::Trace(format!("{name}: {error}").into()),
        other => other,
    }
}

/// Writes all events of the traces to a sink, ordered by time. Events with equal times are in the order of their
/// traces.
///
/// # Errors
/// Returns an error if there are too many traces, a trace cannot be merged with the others, or reading or writing
/// failed.
pub fn merge(traces: Vec<Merged>, sink: &mut dyn EventSink) -> Result<()> {
    if traces.len() > MOST {
        return Err(Error::Usage(format!("at most {MOST} traces can be merged at a time")));
    }
    let mut processes = Vec::new();
    let mut inputs = Vec::new();
    for (index, Merged { trace, name, offset }) in traces.into_iter().enumerate() {
        let user_metadata = trace.user_metadata();
        let program = user_metadata.get("program").and_then(Value::as_str).unwrap_or("process").to_owned();
        let process = Process { name: name.clone(), offset, user_metadata, ..Process::default() };
        processes.push(Process { label: label(index, &program), path: program, ..process });
        inputs.push(Input { trace, name, index, offset, last: offset });
    }
    fit(&processes)?;
    let next = inputs.iter().map(|_| Next::default()).collect();
    let mut merging = Merging { next, processes, sink, threads: 0, has_image: false, source: Vec::new() };
    let user_metadata = merging.user_metadata();
    merging.sink.user_metadata(&user_metadata)?;
    metatf_tools::merge::merge(&mut inputs, &mut merging, &mut |merging, keyed| merging.put(keyed.section))?;
    let user_metadata = merging.user_metadata();
    merging.sink.user_metadata(&user_metadata)
}

fn label(index: usize, program: &str) -> String {
    format!("{}-{}", index + 1, program.rsplit('/').next().unwrap_or_default())
}

/// Rejects traces that were recorded with different settings.
fn fit(processes: &[Process]) -> Result<()> {
    let Some((first, others)) = processes.split_first() else { return Ok(()) };
    for key in ["sampling", "only"] {
        let of = |process: &Process| process.user_metadata.get(key).cloned().unwrap_or(Value::Null);
        if let Some(other) = others.iter().find(|other| of(other) != of(first)) {
            let what =
                if key == "sampling" { "not samples of the same kind" } else { "recorded with different options" };
            let why = "one trace cannot contain both, because their blocks are counted differently";
            return Err(Error::Trace(format!("{} and {} are {what}: {why}", first.name, other.name).into()));
        }
    }
    let merged = processes.iter().find(|process| process.user_metadata.contains_key("merged"));
    merged.map_or(Ok(()), |process| {
        let advice = "merge the original traces instead";
        Err(Error::Trace(format!("{}: it already contains several processes: {advice}", process.name).into()))
    })
}

impl Merging<'_> {
    /// Returns the user metadata of the new trace: the metadata of the first trace, extended by the list of merged
    /// traces.
    fn user_metadata(&self) -> UserMetadata {
        let mut user_metadata = self.processes.first().map(|first| first.user_metadata.clone()).unwrap_or_default();
        let of_recording = ["process", "recording", "spool", "cut", "segment", "resume"];
        let counts = ["events", "lost", "children", "repairs", "contradictions"];
        for of_one in of_recording.into_iter().chain(counts) {
            user_metadata.remove(of_one);
        }
        let processes = self.processes.iter().enumerate().map(|(index, process)| {
            let mut threads: Vec<_> = process.threads.iter().map(|(own, new)| (*new, *own)).collect();
            threads.sort_unstable();
            json!({
                "number": index + 1, "trace": process.name, "program": process.path, "id": process.id,
                "offset_ns": process.offset, "command": process.user_metadata.get("command"),
                "recording": process.user_metadata.get("recording"),
                "threads": threads.into_iter().map(|(new, own)| json!([new, own])).collect::<Vec<_>>(),
            })
        });
        user_metadata.insert("merged".to_owned(), processes.collect());
        user_metadata
    }

    /// Handles the end of a trace. Its process is considered to have ended, even if the trace does not contain its end.
    fn over(&mut self, index: usize, time: u64) -> Result<()> {
        let is_over = self.processes.get(index).is_none_or(|process| process.is_over);
        if is_over { Ok(()) } else { self.exit(index, time) }
    }

    /// Ends a process and returns its memory to the system, unless it is the last process.
    fn exit(&mut self, index: usize, time: u64) -> Result<()> {
        if let Some(process) = self.processes.get_mut(index) {
            process.is_over = true;
        }
        if self.processes.iter().all(|process| process.is_over) { Ok(()) } else { self.vanish(index, time, true) }
    }

    /// Ends the blocks of a process and, if `pages` is set, its modules and pages.
    fn vanish(&mut self, index: usize, time: u64, pages: bool) -> Result<()> {
        let Some(process) = self.processes.get_mut(index) else { return Ok(()) };
        let thread = process.threads.values().copied().min().unwrap_or(1);
        let at = |kind| Event { time, thread, heap: u64::from(self.has_image), ..Event::new(kind) };
        let mut live: Vec<u64> = std::mem::take(&mut process.live).into_keys().collect();
        live.sort_unstable();
        for address in live {
            self.sink.event(&at(EventKind::Free { address }))?;
        }
        if !pages {
            return Ok(());
        }
        for start in std::mem::take(&mut process.modules) {
            self.sink.event(&at(EventKind::ModuleUnload { start }))?;
        }
        let mut held = Vec::new();
        std::mem::take(&mut process.mapped).calls(&mut |_, call| {
            if let EventKind::Pages(Pages::Map { start, length, .. }) = call.kind {
                held.push((start, length));
            }
        });
        process.program_break = 0;
        for (start, length) in held {
            self.sink.event(&at(EventKind::Pages(Pages::Unmap { start, length })))?;
        }
        if std::mem::take(&mut process.resident) != Resident::default() {
            let kind = EventKind::Resident(self.resident());
            self.sink.event(&Event { time, thread, heap: u64::from(self.has_image), ..Event::new(kind) })?;
        }
        Ok(())
    }

    /// Returns the resident memory of all processes together.
    fn resident(&self) -> Resident {
        self.processes.iter().fold(Resident::default(), |sum, process| {
            let Resident { resident, shared, data, mapped } = process.resident;
            Resident {
                resident: sum.resident.saturating_add(resident),
                shared: sum.shared.saturating_add(shared),
                data: sum.data.saturating_add(data),
                mapped: sum.mapped.saturating_add(mapped),
            }
        })
    }

    /// Returns the new number of a thread.
    fn thread(&mut self, index: usize, own: u64) -> u64 {
        let Some(process) = self.processes.get_mut(index) else { return own };
        *process.threads.entry(own).or_insert_with(|| {
            self.threads += 1;
            self.threads
        })
    }

    /// Forwards the next item of a trace.
    fn put(&mut self, index: usize) -> Result<()> {
        let Some(next) = self.next.get_mut(index) else { return Ok(()) };
        if let Some(comment) = next.comment.take() {
            return self.sink.comment(&comment);
        }
        let next = std::mem::take(next);
        let put = self.event(index, &next.event.get());
        if let Some(place) = self.next.get_mut(index) {
            // Reuse the memory of the item.
            *place = next;
        }
        put
    }

    fn event(&mut self, index: usize, event: &Event<'_>) -> Result<()> {
        let number = index as u64;
        let thread = match event.kind {
            EventKind::Source { .. } | EventKind::Symbol { .. } | EventKind::ModuleUnload { .. }
                if self.threads > 0 =>
            {
                1
            }
            _ => self.thread(index, event.thread),
        };
        let Some(process) = self.processes.get_mut(index) else { return Ok(()) };
        let mut into = Into { process: number, offset: process.offset, name: &process.name };
        let kind = moved(event.kind, &mut into)?;
        let stack = event.stack.iter().map(|frame| into.frame(*frame)).collect::<Result<Vec<_>>>()?;
        let event = Event { kind, thread, heap: u64::from(self.has_image), stack: (&stack).into(), ..*event };
        let named: Vec<u8>;
        let kind = match kind {
            EventKind::Image { process: id, path } => return self.image(index, id, path, &event),
            EventKind::Exit { .. } | EventKind::Killed { .. } => {
                self.exit(index, event.time)?;
                let is_last = self.processes.iter().all(|process| process.is_over);
                if is_last { return self.sink.event(&event) } else { return self.note(index, &event.kind) }
            }
            EventKind::Recording { on } => {
                if on {
                    self.vanish(index, event.time, false)?;
                }
                return self.note(index, &event.kind);
            }
            EventKind::CreateHeap | EventKind::DestroyHeap => {
                let name = &process.name;
                return Err(Error::Trace(
                    format!("{name}: traces with several heaps, as in HATF 1.0, cannot be merged").into(),
                ));
            }
            EventKind::Call(call) | EventKind::ReallocEnd(call) => {
                if call.old_is_gone() {
                    process.live.remove(&call.old);
                }
                if call.address != 0 {
                    process.live.insert(call.address, ());
                }
                kind
            }
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                process.live.remove(&address);
                kind
            }
            EventKind::ThreadStart { creator, task } => {
                let creator = if creator == 0 { 0 } else { self.thread(index, creator) };
                EventKind::ThreadStart { creator, task }
            }
            EventKind::ThreadName { name } => {
                named = labelled(&process.label, name);
                EventKind::ThreadName { name: &named }
            }
            EventKind::Mark { name } if index > 0 => {
                named = labelled(&process.label, name);
                EventKind::Mark { name: &named }
            }
            EventKind::PhaseBegin { name } if index > 0 => {
                named = labelled(&process.label, name);
                EventKind::PhaseBegin { name: &named }
            }
            EventKind::PhaseEnd { name } if index > 0 => {
                named = labelled(&process.label, name);
                EventKind::PhaseEnd { name: &named }
            }
            EventKind::Pages(pages) => {
                let Some(pages) = process.pages(pages) else { return Ok(()) };
                process.mapped.note(0, &Event { kind: EventKind::Pages(pages), ..event }, pages);
                EventKind::Pages(pages)
            }
            EventKind::Resident(resident) => {
                process.resident = resident;
                EventKind::Resident(self.resident())
            }
            EventKind::ModuleLoad { start, .. } => {
                process.modules.insert(start);
                kind
            }
            EventKind::ModuleUnload { start } => {
                process.modules.remove(&start);
                kind
            }
            EventKind::Source { path } => {
                process.source = path.to_vec();
                return Ok(());
            }
            EventKind::Symbol { .. } => {
                if self.source != process.source {
                    self.source.clone_from(&process.source);
                    self.sink.event(&Event { kind: EventKind::Source { path: &self.source }, ..event })?;
                }
                kind
            }
            kind => kind,
        };
        self.sink.event(&Event { kind, ..event })
    }

    /// Handles the start of a process, or of another program in the process.
    fn image(&mut self, index: usize, id: u64, path: &[u8], event: &Event<'_>) -> Result<()> {
        self.vanish(index, event.time, true)?;
        if !self.has_image {
            self.has_image = true;
            self.sink.event(&Event { heap: 1, ..*event })?;
        }
        self.note(index, &event.kind)?;
        let Some(process) = self.processes.get_mut(index) else { return Ok(()) };
        let path = String::from_utf8_lossy(path);
        (process.label, process.id) = (label(index, &path), id);
        process.path = path.into_owned();
        let name = EventKind::ThreadName { name: process.label.as_bytes() };
        self.sink.event(&Event { kind: name, heap: 1, ..*event })
    }

    /// Writes a comment about an event of one process that a merged trace cannot represent.
    fn note(&mut self, index: usize, kind: &EventKind<'_>) -> Result<()> {
        let what = match kind {
            EventKind::Image { process, path } => {
                format!("is process {process} and runs {}", String::from_utf8_lossy(path))
            }
            EventKind::Exit { status } => format!("ended with status {status}"),
            EventKind::Killed { signal } => format!("was killed by signal {signal}"),
            EventKind::Recording { on: false } => "is not recorded from here on".to_owned(),
            _ => "is recorded again from here on: its earlier blocks no longer count".to_owned(),
        };
        let label = self.processes.get(index).map(|process| process.label.clone()).unwrap_or_default();
        self.sink.comment(format!("hatf convert: {label} {what}").as_bytes())
    }
}

impl Process {
    /// Replaces moves of the program break with page calls, because each process has its own program break.
    fn pages(&mut self, pages: Pages) -> Option<Pages> {
        let Pages::Break { end } = pages else { return Some(pages) };
        let before = std::mem::replace(&mut self.program_break, end);
        let (protection, flags) = OF_BREAK;
        match end.checked_sub(before) {
            _ if before == 0 => None,
            Some(0) => None,
            Some(length) => Some(Pages::Map { start: before, length, protection, flags }),
            None => Some(Pages::Unmap { start: end, length: before - end }),
        }
    }
}

fn labelled(label: &str, name: &[u8]) -> Vec<u8> {
    [label.as_bytes(), b": ", name].concat()
}
