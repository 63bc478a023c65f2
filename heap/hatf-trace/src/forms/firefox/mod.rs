//! Profiles for the [Firefox Profiler](https://profiler.firefox.com) in its processed format. Each allocation and each
//! free is a memory sample.
//!
//! The viewer keeps a profile in memory, so a trace of more than a million events is reduced to a sample of its blocks:
//! the profile contains both the allocation and the free of a block, or neither. A block of `s` bytes is kept with
//! probability `min(1, s / mean)` and weighs `max(s, mean)` bytes, so every sum of weights is an unbiased estimate of
//! the sum of bytes (Poisson sampling proportional to size). All samples belong to one thread, because the viewer
//! searches for the free of a block in the thread that allocated it.

mod tables;

use std::io::{BufWriter, Write};

use hashbrown::HashMap;

use self::tables::{Sample, Tables, profile};
use super::raw::note_user_metadata;
use super::{EventWriter, Form};
use crate::Result;
use crate::event::{Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::stacks::Stacks;

pub(super) static FORM: Form = Form {
    name: "firefox",
    about: "Profiles of allocations and frees for the Firefox Profiler",
    suffixes: &[".firefox.json"],
    sniff: |_| false,
    open: None,
    create: Some(|output, _| Ok(Box::new(FirefoxSink::new(output)))),
    lost: "the called function, and everything except calls, modules and symbols; more than a million allocations and \
           frees are sampled",
};

/// Maximum number of samples.
const MOST: usize = 1_000_000;

/// Maximum mean number of bytes per kept block.
const MOST_MEAN: u64 = 1 << 40;

pub(super) struct FirefoxSink<W> {
    write: W,
    stacks: Stacks,
    tables: Tables,
    /// Indices of stacks in the table, by stack number.
    places: HashMap<u64, Option<usize>>,
    samples: Vec<Sample>,
    /// Number and size in bytes of live blocks, by address.
    live: HashMap<u64, (u64, i64)>,
    blocks: u64,
    /// The mean number of bytes per kept block, a power of two; 1 if all blocks are kept.
    mean: u64,
    program: String,
    losses: Losses,
    pub(super) most: usize,
}

impl<W: Write> FirefoxSink<W> {
    pub(super) fn new(write: W) -> Self {
        Self {
            write,
            stacks: Stacks::default(),
            tables: Tables::default(),
            places: HashMap::new(),
            samples: Vec::new(),
            live: HashMap::new(),
            blocks: 0,
            mean: 1,
            program: String::new(),
            losses: Losses::default(),
            most: MOST,
        }
    }

    /// Returns whether a block is part of the sample. The decision uses a hash of the block number, because programs
    /// allocate in regular patterns.
    fn is_kept(&self, block: u64, bytes: i64) -> bool {
        let hash = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.mean == 1 || (u128::from(hash) * u128::from(self.mean)) >> 32 < u128::from(bytes.unsigned_abs())
    }

    fn put(&mut self, event: &Event<'_>, block: u64, bytes: i64, address: u64) {
        if !self.is_kept(block, bytes) {
            self.losses.note(Loss::Sampled);
            return;
        }
        let number = self.stacks.number(event.stack);
        let stack = match self.places.get(&number) {
            Some(place) => *place,
            None => {
                let place = self.tables.stack(&self.stacks, number);
                self.places.insert(number, place);
                place
            }
        };
        let Event { time, thread, .. } = *event;
        self.samples.push(Sample { block, time, bytes, stack, address, thread });
        while self.samples.len() > self.most && self.mean < MOST_MEAN {
            self.mean *= 2;
            let before = self.samples.len();
            let mut samples = std::mem::take(&mut self.samples);
            samples.retain(|sample| self.is_kept(sample.block, sample.bytes));
            self.samples = samples;
            self.losses.add(Loss::Sampled, (before - self.samples.len()) as u64);
        }
    }

    fn begins(&mut self, event: &Event<'_>, call: &Call) {
        self.losses.note_if(call.size == UNKNOWN_SIZE, Loss::Size);
        let size = if call.size == UNKNOWN_SIZE { 0 } else { call.size };
        let bytes = i64::try_from(size).unwrap_or(i64::MAX);
        // A live block at this address ended without a record.
        self.ends(event, call.address);
        let block = self.blocks;
        self.blocks += 1;
        self.live.insert(call.address, (block, bytes));
        self.put(event, block, bytes, call.address);
    }

    /// Ends a block. Returns whether the block was live.
    fn ends(&mut self, event: &Event<'_>, address: u64) -> bool {
        let Some((block, bytes)) = self.live.remove(&address) else { return false };
        self.put(event, block, -bytes, address);
        true
    }

    fn free(&mut self, event: &Event<'_>, address: u64) {
        let was_live = self.ends(event, address);
        self.losses.note_if(!was_live, Loss::UnknownFrees);
    }

    fn all_end(&mut self, event: &Event<'_>) {
        let mut live: Vec<u64> = self.live.keys().copied().collect();
        live.sort_unstable();
        for address in live {
            self.ends(event, address);
        }
    }

    fn call(&mut self, event: &Event<'_>, call: &Call) {
        self.losses.note(Loss::Function);
        self.losses.note_if(call.detail != 0, Loss::Detail);
        self.losses.note_if(call.usable != 0, Loss::Usable);
        if call.old_is_gone() {
            self.free(event, call.old);
        }
        if call.address != 0 {
            self.begins(event, call);
        } else {
            self.losses.note_if(!call.old_is_gone(), Loss::Failed);
        }
    }
}

impl<W: Write> EventSink for FirefoxSink<W> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.losses.note_if(event.heap > 1, Loss::Heap);
        self.losses.note_if(!event.attributes.is_empty(), Loss::Attributes);
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) => self.call(event, call),
            EventKind::Free { address } => self.free(event, address),
            EventKind::ReallocBegin { old } => {
                self.losses.note(Loss::Halves);
                self.free(event, old);
            }
            EventKind::Image { path, .. } => {
                self.stacks.note(&event.kind);
                self.losses.note_if(!self.live.is_empty(), Loss::Images);
                self.all_end(event);
                self.program = String::from_utf8_lossy(path).into_owned();
            }
            EventKind::Recording { on } => {
                self.losses.note(Loss::Recording);
                if on {
                    self.all_end(event);
                }
            }
            ref kind => {
                self.stacks.note(kind);
                let lost = kind.loss().filter(|loss| *loss != Loss::Modules);
                lost.into_iter().for_each(|loss| self.losses.note(loss));
            }
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        self.losses.note(Loss::Comments);
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        note_user_metadata(&mut self.losses, user_metadata);
        Ok(())
    }
}

impl<W: Write> EventWriter for FirefoxSink<W> {
    fn finish(self: Box<Self>) -> Result<Losses> {
        let Self { write, tables, samples, mean, program, losses, .. } = *self;
        let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("program").to_owned();
        let mut out = BufWriter::new(write);
        let profile = profile(tables, &name, &samples, mean);
        serde_json::to_writer(&mut out, &profile).map_err(std::io::Error::from)?;
        out.flush()?;
        Ok(losses)
    }
}
