//! Writes the functions of stack frames into a trace, so that later processing does not depend on the program's files.
//!
//! A trace is read twice. In the first pass, [`Wanted`] collects the frames in each loaded module. [`find`] symbolizes
//! them with the modules' files, in child processes with limits if [`Files::helper`] specifies their program. In the
//! second pass, [`Symbolized`] forwards all records and inserts the symbols of each module after its record.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_trace::{Event, EventKind, EventSink};
//! use hatf_view::symbolize::{Files, Symbolized, Wanted, find};
//!
//! // A function generated at run time, in the format of Linux perf.
//! let folder = tempfile::tempdir()?;
//! let map = folder.path().join("perf-1.map");
//! std::fs::write(&map, "7000 100 parse\n")?;
//! let events = [
//!     Event::new(EventKind::Image { process: 1, path: b"node" }),
//!     Event { stack: (&[0x7010]).into(), ..Event::malloc(0x1000, 24) },
//! ];
//!
//! let mut wanted = Wanted::new();
//! events.iter().try_for_each(|event| wanted.event(event))?;
//! let found = find(&wanted, &Files { perf_map: Some(map), ..Files::default() });
//! assert_eq!((wanted.count(), found.named), (1, 1));
//!
//! let mut tracker = HeapTracker::new(());
//! let mut symbolized = Symbolized::new(&mut tracker, &found);
//! events.iter().try_for_each(|event| symbolized.event(event))?;
//! assert_eq!(tracker.heap().stacks.name(1, 1).to_string(), "parse");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod debuginfod;
mod dwarf;
mod elf;
mod files;
mod find;
mod first_lines;
mod helper;
mod in_process;
mod locations;
mod names;
mod perf_map;
mod sections;
mod split;
mod symbol_table;
mod symbolizer;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use answer::{Answer, Frame, Image, Missing};
pub use debuginfod::{CLIENT, Debuginfod, is_debuginfod_asked};
pub use files::{Files, build_id};
pub(crate) use find::functions;
pub use find::{Found, Problem, find};
pub use helper::help;
pub use locations::{NamedLocations, find_locations, name_stacks, of_shown, of_weight};
pub(crate) use names::demangled;
pub use symbolizer::Symbolizer;

use hashbrown::HashSet;
use metatf::container::Sink;

use hatf_trace::Result;
use hatf_trace::event::{Event, EventKind, EventSink, Stack, UserMetadata};
use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::loss::Losses;
use hatf_trace::stacks::{Function, Module, Modules, is_python};

/// A place that contains frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A module, by number; see [`Module::number`].
    Module(usize),
    /// Memory outside of all modules, in the image with this number, counted from 1. Code generated at run time is in
    /// no module.
    Image(u64),
}

/// The frames of a trace, by the place that contains them. The [module documentation](self) contains an example.
#[derive(Debug, Default)]
pub struct Wanted {
    modules: Modules,
    images: u64,
    /// Process IDs by image.
    processes: HashMap<u64, u64>,
    /// Stacks seen since the meaning of addresses last changed.
    seen: HashSet<Vec<u64>>,
    loaded: Vec<Module>,
    frames: BTreeMap<Place, BTreeSet<u64>>,
    /// Functions that were entered. `nowhere` contains those that are in no known module.
    entered: HashSet<u64>,
    nowhere: HashSet<u64>,
    has_symbols: bool,
}

impl Wanted {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of distinct frames.
    #[must_use]
    pub fn count(&self) -> usize {
        self.frames.values().map(BTreeSet::len).sum()
    }

    /// Returns whether the trace already contains function names.
    #[must_use]
    pub fn has_symbols(&self) -> bool {
        self.has_symbols
    }
}

impl EventSink for Wanted {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if let EventKind::Image { process, .. } = event.kind {
            self.images += 1;
            self.processes.insert(self.images, process);
            self.nowhere.clear();
        }
        if self.modules.note(&event.kind) {
            self.seen.clear();
            self.entered.clear();
            let (modules, frames) = (&self.modules, &mut self.frames);
            // A function may be entered before its module is recorded.
            self.nowhere.retain(|function| !note(modules, frames, *function));
            if let EventKind::ModuleLoad { .. } = event.kind {
                self.loaded.extend(self.modules.last().cloned());
            }
        }
        self.has_symbols |= matches!(event.kind, EventKind::Symbol { .. });
        if let EventKind::Enter { function } = event.kind
            && self.entered.insert(function)
            && !note(&self.modules, &mut self.frames, function)
        {
            self.nowhere.insert(function);
        }
        if event.stack.is_empty() || self.seen.contains(event.stack.frames()) {
            return Ok(());
        }
        self.seen.insert(event.stack.to_vec());
        for frame in event.stack.iter().filter(|frame| !is_python(**frame)) {
            let module = self.modules.find(*frame);
            let place = module.map_or(Place::Image(self.images), |module| Place::Module(module.number));
            self.frames.entry(place).or_default().insert(*frame);
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

/// Adds a frame. Returns whether the frame is in a known module.
fn note(modules: &Modules, frames: &mut BTreeMap<Place, BTreeSet<u64>>, frame: u64) -> bool {
    let module = modules.find(frame);
    if let Some(module) = module {
        frames.entry(Place::Module(module.number)).or_default().insert(frame);
    }
    module.is_some()
}

/// Writes a trace with symbols in the `heap` format. Returns counts of the data that this format cannot store.
///
/// # Errors
/// The trace or the sink failed.
pub fn write(trace: &mut TraceReader, found: &Found, options: &HeapOptions, sink: &mut dyn Sink) -> Result<Losses> {
    let mut writer = HeapWriter::new(sink, options)?;
    let symbolized: &mut dyn EventSink = &mut Symbolized::new(&mut writer, found);
    if let Err(error) = trace.give(symbolized) {
        writer.abandon();
        return Err(error);
    }
    writer.finish()
}

/// A sink that forwards a trace and adds symbols.
pub struct Symbolized<'s> {
    sink: &'s mut dyn EventSink,
    symbols: &'s BTreeMap<Place, BTreeMap<u64, Vec<Function>>>,
    modules: Modules,
    images: u64,
    /// The source file of the following symbols, in the input and in the output.
    read_source: Vec<u8>,
    source: Vec<u8>,
}

impl<'s> Symbolized<'s> {
    /// Creates a sink that forwards to another sink.
    pub fn new(sink: &'s mut dyn EventSink, found: &'s Found) -> Self {
        let modules = Modules::default();
        Self { sink, symbols: &found.symbols, modules, images: 0, read_source: Vec::new(), source: Vec::new() }
    }

    fn symbol(&mut self, event: &Event<'_>, file: &[u8], frame: u64, line: u64, name: &[u8]) -> Result<()> {
        let event = |kind| Event { kind, stack: Stack::NONE, ..*event };
        if self.source != file {
            self.source = file.to_vec();
            self.sink.event(&event(EventKind::Source { path: file }))?;
        }
        self.sink.event(&event(EventKind::Symbol { frame, line, name }))
    }

    /// Writes the symbols of a place. Frames are ordered by source file.
    fn symbols(&mut self, event: &Event<'_>, place: Place) -> Result<()> {
        let Some(frames) = self.symbols.get(&place) else { return Ok(()) };
        let mut frames: Vec<_> = frames.iter().collect();
        frames.sort_by_key(|(frame, functions)| (functions.first().map(|function| &function.file), **frame));
        for (frame, functions) in frames {
            for Function { name, file, line } in functions {
                self.symbol(event, file.as_bytes(), *frame, *line, name.as_bytes())?;
            }
        }
        Ok(())
    }
}

impl EventSink for Symbolized<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::Source { path } => {
                self.read_source = path.to_vec();
                return Ok(());
            }
            EventKind::Symbol { frame, line, name } => {
                // The trace's own symbols are kept if no new symbols were found.
                let place = self.modules.find(frame).map(|module| Place::Module(module.number));
                let place = place.unwrap_or(Place::Image(self.images));
                if self.symbols.contains_key(&place) && !is_python(frame) {
                    return Ok(());
                }
                let file = std::mem::take(&mut self.read_source);
                let written = self.symbol(event, &file, frame, line, name);
                self.read_source = file;
                return written;
            }
            EventKind::Image { .. } => self.images += 1,
            _ => {}
        }
        self.modules.note(&event.kind);
        self.sink.event(event)?;
        match event.kind {
            EventKind::Image { .. } => self.symbols(event, Place::Image(self.images)),
            EventKind::ModuleLoad { .. } => {
                let place = self.modules.last().map(|module| Place::Module(module.number));
                place.map_or(Ok(()), |place| self.symbols(event, place))
            }
            _ => Ok(()),
        }
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sink.user_metadata(user_metadata)
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests;
