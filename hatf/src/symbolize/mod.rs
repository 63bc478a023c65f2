//! Writes the functions that frames of stacks are in into a trace, so that what follows needs no binaries.
//!
//! A trace is read twice. The first time, [`Wanted`] collects the frames that lie in each loaded module. [`find`] looks them up in
//! the modules' files, in child processes with limits if [`Files::helper`] names their program. The second time, [`Symbolized`] passes
//! everything on and writes the symbols after the module's record.

mod answer;
mod debuginfod;
mod dwarf;
mod elf;
mod files;
mod find;
mod first_lines;
mod helper;
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
pub use locations::{NamedLocations, find_locations, name_stacks, of_shown};
pub(crate) use names::demangled;
pub use symbolizer::Symbolizer;

use hashbrown::HashSet;
use metatf::container::Sink;

use crate::Result;
use crate::event::{Event, EventKind, EventSink, Stack, UserMetadata};
use crate::forms::TraceReader;
use crate::heap::{HeapOptions, HeapWriter};
use crate::loss::Losses;
use crate::stacks::{Function, Module, Modules, is_python};

/// What frames lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A module, by its number: see [`Module::number`].
    Module(usize),
    /// No module, in this image; images are numbered from 1. Code that a program makes as it runs lies there.
    Image(u64),
}

/// The frames of a trace, by where they lie.
#[derive(Debug, Default)]
pub struct Wanted {
    modules: Modules,
    images: u64,
    /// Processes, by image.
    processes: HashMap<u64, u64>,
    /// Stacks that were seen since addresses meant something else.
    seen: HashSet<Vec<u64>>,
    loaded: Vec<Module>,
    frames: BTreeMap<Place, BTreeSet<u64>>,
    /// Functions that were entered, and of these such as lie in no module that is known.
    entered: HashSet<u64>,
    nowhere: HashSet<u64>,
    has_symbols: bool,
}

impl Wanted {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many frames there are that differ.
    #[must_use]
    pub fn count(&self) -> usize {
        self.frames.values().map(BTreeSet::len).sum()
    }

    /// Returns whether the trace names functions already.
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
            // A function may be entered before the first stack in its module.
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

/// Notes a frame of a module; returns whether it is in one that is known.
fn note(modules: &Modules, frames: &mut BTreeMap<Place, BTreeSet<u64>>, frame: u64) -> bool {
    let module = modules.find(frame);
    if let Some(module) = module {
        frames.entry(Place::Module(module.number)).or_default().insert(frame);
    }
    module.is_some()
}

/// Writes a trace with symbols, in the form `heap`; returns what that cannot hold.
///
/// # Errors
/// Those of the trace and of the sink.
pub fn write(trace: &mut TraceReader, found: &Found, options: &HeapOptions, sink: &mut dyn Sink) -> Result<Losses> {
    let mut writer = HeapWriter::new(sink, options)?;
    let symbolized: &mut dyn EventSink = &mut Symbolized::new(&mut writer, found);
    if let Err(error) = trace.give(symbolized) {
        writer.abandon();
        return Err(error);
    }
    writer.finish()
}

/// Passes a trace on, with symbols.
pub struct Symbolized<'s> {
    sink: &'s mut dyn EventSink,
    symbols: &'s BTreeMap<Place, BTreeMap<u64, Vec<Function>>>,
    modules: Modules,
    images: u64,
    /// The source file of the symbols that follow: in what was read, and in what is written.
    read_source: Vec<u8>,
    source: Vec<u8>,
}

impl<'s> Symbolized<'s> {
    /// Writes to a sink.
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

    /// Writes the symbols of a place. Frames are in the order of their source files.
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
                // What the trace had is kept where nothing was found now.
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
