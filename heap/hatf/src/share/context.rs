//! The state at a position in a trace, except for blocks. The state consists of the program, its modules and symbols,
//! threads, phases, and pages.

use std::collections::{BTreeMap, HashMap};

use hatf_lab::{Change, ObjectEvent};
use hatf_trace::OwnedEvent;

use super::mapped::Mapped;
use hatf_trace::event::{Event, EventKind};
use hatf_trace::stacks::is_python;

/// A record that is still in effect, with its number.
type Holding = (u64, OwnedEvent);

/// The state of a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    start: Option<Holding>,
    name: Option<Holding>,
    end: Option<Holding>,
    processor: Option<Holding>,
    /// The functions that the thread has entered but not left.
    entered: Vec<Holding>,
    /// The number of the thread's live blocks.
    blocks: u64,
}

/// A symbol record for a frame.
#[derive(Clone, Debug)]
struct Symbol {
    record: u64,
    source: Vec<u8>,
    symbol: OwnedEvent,
}

/// The state at a position in a trace. State that has ended is dropped, which bounds memory use.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// The last record about the program. The following fields contain the last records about its end, recording, and
    /// resident memory.
    image: Option<Holding>,
    ended: Option<Holding>,
    recording: Option<Holding>,
    resident: Option<Holding>,
    modules: BTreeMap<u64, Holding>,
    symbols: HashMap<u64, Vec<Symbol>>,
    /// The source file to which the next symbol records belong.
    source: Vec<u8>,
    /// The frame of the previous symbol, if another symbol for this frame may follow.
    open: Option<u64>,
    threads: BTreeMap<u64, Thread>,
    phases: Vec<Holding>,
    mapped: Mapped,
}

impl Context {
    /// Counts the live blocks of threads.
    pub(super) fn object(&mut self, event: &ObjectEvent) {
        let number = event.object.thread;
        let thread = self.threads.entry(number).or_default();
        match event.change {
            Change::Allocated => thread.blocks += 1,
            Change::Freed => {
                thread.blocks = thread.blocks.saturating_sub(1);
                self.forget(number);
            }
        }
    }

    /// Drops a thread that has ended and has no live blocks.
    fn forget(&mut self, number: u64) {
        if self.threads.get(&number).is_some_and(|thread| thread.blocks == 0 && thread.end.is_some()) {
            self.threads.remove(&number);
        }
    }

    /// Processes a record.
    pub(super) fn note(&mut self, record: u64, event: &Event<'_>) {
        if let EventKind::Call(_) | EventKind::Free { .. } | EventKind::ReallocEnd(_) = event.kind {
            return;
        }
        let holding = || Some((record, OwnedEvent::of(event)));
        let open = self.open.take();
        match event.kind {
            EventKind::Image { .. } => {
                self.image = holding();
                self.ended = None;
                self.modules.clear();
                self.symbols.clear();
                self.mapped = Mapped::default();
            }
            EventKind::Exit { .. } | EventKind::Killed { .. } => self.ended = holding(),
            EventKind::Recording { .. } => self.recording = holding(),
            EventKind::Resident(_) => self.resident = holding(),
            EventKind::ModuleLoad { start, .. } => drop(self.modules.insert(start, (record, OwnedEvent::of(event)))),
            EventKind::ModuleUnload { start } => self.unload(start),
            EventKind::Source { path } => {
                self.source.clear();
                self.source.extend_from_slice(path);
                self.open = open;
            }
            EventKind::Symbol { frame, .. } => {
                let symbols = self.symbols.entry(frame).or_default();
                if open != Some(frame) || is_python(frame) {
                    symbols.clear();
                }
                symbols.push(Symbol { record, source: self.source.clone(), symbol: OwnedEvent::of(event) });
                self.open = Some(frame);
            }
            EventKind::ThreadStart { .. } => {
                self.threads.entry(event.thread).or_default().start = holding();
            }
            EventKind::ThreadName { .. } => self.threads.entry(event.thread).or_default().name = holding(),
            EventKind::ThreadEnd => {
                self.threads.entry(event.thread).or_default().end = holding();
                self.forget(event.thread);
            }
            EventKind::Processor { .. } => self.threads.entry(event.thread).or_default().processor = holding(),
            EventKind::Enter { .. } => {
                self.threads.entry(event.thread).or_default().entered.extend(holding());
            }
            EventKind::Leave => {
                self.threads.entry(event.thread).or_default().entered.pop();
            }
            EventKind::PhaseBegin { .. } => self.phases.extend(holding()),
            EventKind::PhaseEnd { name } => {
                let begins = |(_, phase): &Holding| matches!(phase.get().kind, EventKind::PhaseBegin { name: begun } if begun == name);
                if let Some(at) = self.phases.iter().rposition(begins) {
                    self.phases.remove(at);
                }
            }
            EventKind::Pages(pages) => self.mapped.note(record, event, pages),
            _ => {}
        }
    }

    /// Returns the number of heaps before the current program's heap, or `None` if no program was loaded.
    pub(super) fn heaps_before(&self) -> Option<u64> {
        self.image.as_ref().map(|(_, image)| image.get().heap.saturating_sub(1))
    }

    /// Unloads a module and drops the symbols of its frames.
    fn unload(&mut self, start: u64) {
        if let Some((_, module)) = self.modules.remove(&start)
            && let EventKind::ModuleLoad { start, end, .. } = module.get().kind
        {
            self.symbols.retain(|frame, _| !(start..=end).contains(frame));
        }
    }

    /// Returns the records that restore this state, ordered by number.
    pub(super) fn records(self) -> Vec<Holding> {
        let heaps = self.heaps_before();
        let mut records: Vec<Holding> = Vec::new();
        records.extend([self.image, self.ended, self.recording, self.resident].into_iter().flatten());
        records.extend(self.modules.into_values());
        records.extend(self.phases);
        for thread in self.threads.into_values() {
            let Thread { start, name, end, processor, entered, .. } = thread;
            records.extend([start, name, end, processor].into_iter().flatten().chain(entered));
        }
        self.mapped.calls(&mut |record, call| records.push((record, OwnedEvent::of(call))));
        records.sort_by_key(|(record, _)| *record);
        let mut symbols: Vec<Symbol> = self.symbols.into_values().flatten().collect();
        symbols.sort_by_key(|symbol| symbol.record);
        let mut named: Vec<Holding> = Vec::new();
        let mut source: Vec<u8> = Vec::new();
        for Symbol { record, source: path, symbol } in symbols {
            if path != source {
                let kind = EventKind::Source { path: &path };
                named.push((record, OwnedEvent::of(&Event { kind, ..symbol.get() })));
                source = path;
            }
            named.push((record, symbol));
        }
        if self.source != source {
            let heap = heaps.map_or(0, |before| before + 1);
            let source = Event { heap, ..Event::new(EventKind::Source { path: &self.source }) };
            named.push((u64::MAX, OwnedEvent::of(&source)));
        }
        records.extend(named);
        // A stable sort keeps a source file together with its symbols.
        records.sort_by_key(|(record, _)| *record);
        records
    }
}
