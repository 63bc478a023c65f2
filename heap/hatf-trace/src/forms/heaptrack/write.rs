//! Writer for heaptrack's interpreted data, version 2, which all heaptrack tools can read.

use std::io::{BufWriter, Write};

use hashbrown::HashMap;
use serde_json::Value;

use super::super::raw::note_user_metadata;
use super::super::{EventWriter, text};
use crate::event::{Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::stacks::{Function, Location, Stacks};
use crate::{Error, Result};

/// The heaptrack version given in the data. It is the first version that wrote data of this format version.
const VERSION: &str = "v 10200 2";
/// Bytes per memory page, the unit of resident memory.
const PAGE: u64 = 1 << 12;

pub(super) struct HeaptrackSink<W: Write> {
    write: BufWriter<W>,
    stacks: Stacks,
    strings: HashMap<String, u64>,
    /// Frame numbers, by location index.
    frames: HashMap<u32, u64>,
    /// Stack node numbers, by frame and parent node.
    nodes: HashMap<(u64, u64), u64>,
    /// Node numbers, by stack number.
    of_stack: HashMap<u64, u64>,
    /// Numbers of (size, stack) pairs.
    blocks: HashMap<(u64, u64), u64>,
    /// The pair number of each live block, by address.
    live: HashMap<u64, u64>,
    /// The current time in milliseconds.
    time: u64,
    /// Whether the head, which describes the recording, was written.
    begun: bool,
    command: String,
    losses: Losses,
}

impl<W: Write> HeaptrackSink<W> {
    pub(super) fn new(write: W) -> Result<Self> {
        let mut sink = Self {
            write: BufWriter::new(write),
            stacks: Stacks::default(),
            strings: HashMap::new(),
            frames: HashMap::new(),
            nodes: HashMap::new(),
            of_stack: HashMap::new(),
            blocks: HashMap::new(),
            live: HashMap::new(),
            time: 0,
            begun: false,
            command: String::new(),
            losses: Losses::default(),
        };
        writeln!(sink.write, "{VERSION}")?;
        Ok(sink)
    }

    fn begin(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            writeln!(self.write, "X {}\nI {PAGE:x} 0", line(&self.command))?;
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        if let Some(number) = self.strings.get(text) {
            return Ok(*number);
        }
        let number = self.strings.len() as u64 + 1;
        self.strings.insert(text.to_owned(), number);
        writeln!(self.write, "s {}", line(text))?;
        Ok(number)
    }

    fn frame(&mut self, place: u32) -> Result<u64> {
        if let Some(number) = self.frames.get(&place) {
            return Ok(*number);
        }
        let location = self.stacks.locations().get(place as usize).cloned().unwrap_or_default();
        let Location { address, module, functions, .. } = location;
        let module = self.string(&module)?;
        let mut numbers = vec![address, module];
        for Function { name, file, line } in &functions {
            numbers.extend([self.string(name)?, self.string(file)?, *line]);
        }
        let words: Vec<String> = numbers.iter().map(|number| format!("{number:x}")).collect();
        writeln!(self.write, "i {}", words.join(" "))?;
        let number = self.frames.len() as u64 + 1;
        self.frames.insert(place, number);
        Ok(number)
    }

    /// Returns the node number of a stack.
    fn node(&mut self, stack: &[u64]) -> Result<u64> {
        let number = self.stacks.number(stack);
        if let Some(node) = self.of_stack.get(&number) {
            return Ok(*node);
        }
        let places = self.stacks.frames(number).to_vec();
        let mut node = 0;
        // Readers limit the number of frames, so the outermost frames are omitted.
        for place in places.iter().take(text::DEPTH).rev() {
            let frame = self.frame(*place)?;
            let next = self.nodes.len() as u64 + 1;
            let known = self.nodes.get(&(frame, node)).copied();
            if known.is_none() {
                writeln!(self.write, "t {frame:x} {node:x}")?;
                self.nodes.insert((frame, node), next);
            }
            node = known.unwrap_or(next);
        }
        self.of_stack.insert(number, node);
        Ok(node)
    }

    fn begins(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        let size = if call.size == UNKNOWN_SIZE { 0 } else { call.size };
        self.losses.note_if(call.size == UNKNOWN_SIZE, Loss::Size);
        // A live block at this address ended without a record.
        self.ends(call.address)?;
        let node = self.node(&event.stack)?;
        let next = self.blocks.len() as u64;
        let block = *self.blocks.entry((size, node)).or_insert(next);
        if block == next {
            writeln!(self.write, "a {size:x} {node:x}")?;
        }
        self.live.insert(call.address, block);
        writeln!(self.write, "+ {block:x}")?;
        Ok(())
    }

    /// Ends a block. Returns whether the block was live.
    fn ends(&mut self, address: u64) -> Result<bool> {
        let Some(block) = self.live.remove(&address) else { return Ok(false) };
        writeln!(self.write, "- {block:x}")?;
        Ok(true)
    }

    fn free(&mut self, address: u64) -> Result<()> {
        let was_live = self.ends(address)?;
        self.losses.note_if(!was_live, Loss::UnknownFrees);
        Ok(())
    }

    fn all_end(&mut self) -> Result<()> {
        let mut live: Vec<u64> = self.live.keys().copied().collect();
        live.sort_unstable();
        live.into_iter().try_for_each(|address| self.ends(address).map(drop))
    }

    fn call(&mut self, event: &Event<'_>, call: &Call) -> Result<()> {
        use crate::event::Function as Called;
        let plain = matches!(call.function, Called::Malloc);
        self.losses.note_if(!plain, Loss::Function);
        self.losses.note_if(call.detail != 0, Loss::Detail);
        self.losses.note_if(call.usable != 0, Loss::Usable);
        if call.old_is_gone() {
            self.free(call.old)?;
        }
        if call.address != 0 {
            self.losses.note(Loss::Addresses);
            return self.begins(event, call);
        }
        self.losses.note_if(!call.old_is_gone(), Loss::Failed);
        Ok(())
    }
}

/// Returns the text with line breaks replaced by spaces.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

impl<W: Write> EventSink for HeaptrackSink<W> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.begin()?;
        let milliseconds = event.time / 1_000_000;
        if milliseconds > self.time {
            self.time = milliseconds;
            writeln!(self.write, "c {milliseconds:x}")?;
        }
        self.losses.note_if(!event.time.is_multiple_of(1_000_000), Loss::Rounding);
        self.losses.note_if(event.thread != 1, Loss::Thread);
        self.losses.note_if(event.heap > 1, Loss::Heap);
        self.losses.note_if(!event.attributes.is_empty(), Loss::Attributes);
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) => self.call(event, call),
            EventKind::Free { address } => self.free(address),
            EventKind::ReallocBegin { old } => {
                self.losses.note(Loss::Halves);
                self.free(old)
            }
            EventKind::Resident(resident) => {
                writeln!(self.write, "R {:x}", resident.resident / PAGE)?;
                Ok(())
            }
            EventKind::Image { .. } => {
                self.stacks.note(&event.kind);
                self.losses.note(Loss::Images);
                // A second image has its own heap, which heaptrack cannot express.
                self.all_end()
            }
            EventKind::Recording { on } => {
                self.losses.note(Loss::Recording);
                if on { self.all_end() } else { Ok(()) }
            }
            ref kind => {
                self.stacks.note(kind);
                // The output contains the paths of modules and all data of symbols.
                let is_symbol = matches!(kind, EventKind::Source { .. } | EventKind::Symbol { .. });
                kind.loss().filter(|_| !is_symbol).into_iter().for_each(|loss| self.losses.note(loss));
                Ok(())
            }
        }
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        self.losses.note(Loss::Comments);
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let mut user_metadata = user_metadata.clone();
        if !self.begun
            && let Some(Value::Array(words)) = user_metadata.get("command")
        {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            self.command = words.join(" ");
            user_metadata.remove("command");
        }
        note_user_metadata(&mut self.losses, &user_metadata);
        Ok(())
    }
}

impl<W: Write> EventWriter for HeaptrackSink<W> {
    fn finish(mut self: Box<Self>) -> Result<Losses> {
        self.begin()?;
        writeln!(self.write, "c {:x}", self.time)?;
        let Self { write, losses, .. } = *self;
        let mut write = write.into_inner().map_err(|error| Error::from(error.into_error()))?;
        write.flush()?;
        Ok(losses)
    }
}
