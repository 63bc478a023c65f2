//! Profiles for the [Firefox Profiler](https://profiler.firefox.com): its processed format, with each allocation and each free as a sample of memory.
//!
//! The viewer holds a profile in memory, so that one of many events is a sample of blocks: each has both its allocation and its free, or
//! neither. All are samples of one thread, as it is there that the viewer looks for the free of a block.

use std::io::{BufWriter, Write};

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::raw::note_user_metadata;
use super::{EventWriter, Form, text};
use crate::Result;
use crate::event::{Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata};
use crate::loss::{Loss, Losses};
use crate::stacks::{Function, Stacks};

pub(super) static FORM: Form = Form {
    name: "firefox",
    about: "Profiles for the Firefox Profiler: allocations and frees",
    suffixes: &[".firefox.json"],
    sniff: |_| false,
    open: None,
    create: Some(|output, _| Ok(Box::new(FirefoxSink::new(output)))),
    lost: "which function was called, everything that is no call, module or symbol; blocks beyond a million of allocations and frees",
};

/// The version of the format.
const VERSION: u32 = 55;
/// The most samples that are kept.
const MOST: usize = 1_000_000;

/// An allocation, or a free, whose bytes are negative.
struct Sample {
    /// The number of the block.
    block: u64,
    time: u64,
    bytes: i64,
    /// The place of the stack in the table.
    stack: Option<usize>,
    address: u64,
    thread: u64,
}

pub(super) struct FirefoxSink<W> {
    write: W,
    stacks: Stacks,
    tables: Tables,
    /// Places of stacks in the table, by number.
    places: HashMap<u64, Option<usize>>,
    samples: Vec<Sample>,
    /// Blocks that are live: number and bytes, by address.
    live: HashMap<u64, (u64, i64)>,
    blocks: u64,
    /// Of the blocks, each of this many is kept.
    step: u64,
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
            step: 1,
            program: String::new(),
            losses: Losses::default(),
            most: MOST,
        }
    }

    /// Returns whether a block is in the sample; a hash of its number decides, as programs allocate in rhythms.
    fn is_kept(&self, block: u64) -> bool {
        (block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & (self.step - 1) == 0
    }

    fn put(&mut self, event: &Event<'_>, block: u64, bytes: i64, address: u64) {
        if !self.is_kept(block) {
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
        if self.samples.len() > self.most && self.step < 1 << 31 {
            self.step *= 2;
            let before = self.samples.len();
            let mut samples = std::mem::take(&mut self.samples);
            samples.retain(|sample| self.is_kept(sample.block));
            self.samples = samples;
            self.losses.add(Loss::Sampled, (before - self.samples.len()) as u64);
        }
    }

    fn begins(&mut self, event: &Event<'_>, call: &Call) {
        self.losses.note_if(call.size == UNKNOWN_SIZE, Loss::Size);
        let size = if call.size == UNKNOWN_SIZE { 0 } else { call.size };
        let bytes = i64::try_from(size).unwrap_or(i64::MAX);
        // A block that lies there ended without a record.
        self.ends(event, call.address);
        let block = self.blocks;
        self.blocks += 1;
        self.live.insert(call.address, (block, bytes));
        self.put(event, block, bytes, call.address);
    }

    /// Ends a block; returns whether it was live.
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
        let Self { write, tables, samples, program, losses, .. } = *self;
        let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("program").to_owned();
        let mut out = BufWriter::new(write);
        let profile = Profile {
            meta: meta(),
            libs: tables.libs(),
            threads: [tables.thread(&name, &samples)],
            pages: [],
            profiler_overhead: [],
            counters: [],
        };
        serde_json::to_writer(&mut out, &profile).map_err(std::io::Error::from)?;
        out.flush()?;
        Ok(losses)
    }
}

/// The tables of a thread: columns, whose rows refer to each other by their places.
#[derive(Default)]
struct Tables {
    strings: HashMap<String, usize>,
    string_list: Vec<String>,
    /// Paths of modules.
    libraries: Vec<String>,
    library_places: HashMap<String, usize>,
    /// Name, file, and module.
    functions: HashMap<(usize, Option<usize>, Option<usize>), usize>,
    function_list: Vec<(usize, Option<usize>, Option<usize>)>,
    /// Function and line.
    frames: HashMap<(usize, Option<u64>), usize>,
    frame_list: Vec<(usize, Option<u64>)>,
    /// The stack that it is put on, and a frame.
    stacks: HashMap<(Option<usize>, usize), usize>,
    stack_list: Vec<(Option<usize>, usize)>,
}

/// Returns the place of a key in a list, where it is appended if it is not there.
fn place<K: Clone + Eq + std::hash::Hash>(places: &mut HashMap<K, usize>, list: &mut Vec<K>, key: K) -> usize {
    let next = list.len();
    *places.entry(key).or_insert_with_key(|key| {
        list.push(key.clone());
        next
    })
}

impl Tables {
    fn string(&mut self, text: &str) -> usize {
        place(&mut self.strings, &mut self.string_list, text.to_owned())
    }

    fn stack(&mut self, stacks: &Stacks, number: u64) -> Option<usize> {
        let mut on = None;
        let places = stacks.frames(number).iter().take(text::DEPTH).rev();
        for location in places.filter_map(|place| stacks.locations().get(*place as usize)) {
            let module = (!location.module.is_empty())
                .then(|| place(&mut self.library_places, &mut self.libraries, location.module.clone()));
            let names: Vec<String> = location.names().collect();
            // The outermost of inlined functions is last.
            for (number, name) in names.iter().enumerate().rev() {
                let (file, line) = match location.functions.get(number) {
                    Some(Function { file, line, .. }) => (file.as_str(), *line),
                    None => ("", 0),
                };
                let name = self.string(name);
                let file = (!file.is_empty()).then(|| self.string(file));
                let function = place(&mut self.functions, &mut self.function_list, (name, file, module));
                let frame = place(&mut self.frames, &mut self.frame_list, (function, (line > 0).then_some(line)));
                on = Some(place(&mut self.stacks, &mut self.stack_list, (on, frame)));
            }
        }
        on
    }

    fn libs(&self) -> Vec<Value> {
        let of = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            json!({
                "name": name, "path": path, "debugName": name, "debugPath": path, "arch": null, "breakpadId": "", "codeId": null,
            })
        };
        self.libraries.iter().map(of).collect()
    }

    fn thread<'t>(mut self, name: &'t str, samples: &'t [Sample]) -> Thread<'t> {
        let libraries = self.libraries.clone();
        let library_names: Vec<usize> =
            libraries.iter().map(|path| self.string(path.rsplit('/').next().unwrap_or_default())).collect();
        let column = |value: Value, length: usize| vec![value; length];
        let (frames, functions, stacks) = (&self.frame_list, &self.function_list, &self.stack_list);
        let frame_table = json!({
            "length": frames.len(), "address": column((-1).into(), frames.len()),
            "inlineDepth": column(0.into(), frames.len()), "category": column(0.into(), frames.len()),
            "subcategory": column(0.into(), frames.len()),
            "func": frames.iter().map(|frame| frame.0).collect::<Vec<_>>(),
            "nativeSymbol": column(Value::Null, frames.len()), "innerWindowID": column(0.into(), frames.len()),
            "line": frames.iter().map(|frame| frame.1).collect::<Vec<_>>(),
            "column": column(Value::Null, frames.len()),
        });
        let resource = |module: Option<usize>| module.map_or_else(|| json!(-1), |module| json!(module));
        let func_table = json!({
            "length": functions.len(),
            "name": functions.iter().map(|function| function.0).collect::<Vec<_>>(),
            "isJS": column(false.into(), functions.len()), "relevantForJS": column(false.into(), functions.len()),
            "resource": functions.iter().map(|function| resource(function.2)).collect::<Vec<_>>(),
            "fileName": functions.iter().map(|function| function.1).collect::<Vec<_>>(),
            "lineNumber": column(Value::Null, functions.len()), "columnNumber": column(Value::Null, functions.len()),
        });
        // 1 is a library.
        let resource_table = json!({
            "length": libraries.len(), "lib": (0..libraries.len()).collect::<Vec<_>>(), "name": library_names,
            "host": column(Value::Null, libraries.len()), "type": column(1.into(), libraries.len()),
        });
        let stack_table = json!({
            "length": stacks.len(),
            "prefix": stacks.iter().map(|stack| stack.0).collect::<Vec<_>>(),
            "frame": stacks.iter().map(|stack| stack.1).collect::<Vec<_>>(),
        });
        Thread {
            frame_table,
            func_table,
            resource_table,
            stack_table,
            markers: json!({
                "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
            }),
            native_symbols: json!({"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []}),
            samples: json!({
                "length": 0, "weightType": "samples", "stack": [], "timeDeltas": [], "weight": [], "threadCPUDelta": [],
            }),
            native_allocations: Allocations::new(samples),
            string_array: self.string_list,
            name,
            process_name: name,
            is_main_thread: true,
            paused_ranges: [],
            pid: "1",
            tid: "1",
            process_type: "default",
            process_startup_time: 0,
            process_shutdown_time: None,
            register_time: 0,
            unregister_time: None,
            show_markers_in_timeline: false,
        }
    }
}

fn meta() -> Value {
    json!({
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
        "debug": false, "extensions": {"length": 0, "baseURL": [], "id": [], "name": []}, "interval": 1.0,
        "preprocessedProfileVersion": VERSION, "version": 24, "processType": 0, "product": "hatf",
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}, "startTime": 0.0,
        "symbolicated": true, "pausedRanges": [], "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true,
        "markerSchema": [],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'t> {
    meta: Value,
    libs: Vec<Value>,
    threads: [Thread<'t>; 1],
    pages: [(); 0],
    profiler_overhead: [(); 0],
    counters: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thread<'t> {
    frame_table: Value,
    func_table: Value,
    resource_table: Value,
    stack_table: Value,
    markers: Value,
    native_symbols: Value,
    samples: Value,
    native_allocations: Allocations,
    string_array: Vec<String>,
    name: &'t str,
    process_name: &'t str,
    is_main_thread: bool,
    paused_ranges: [(); 0],
    pid: &'static str,
    tid: &'static str,
    process_type: &'static str,
    process_startup_time: u64,
    process_shutdown_time: Option<u64>,
    register_time: u64,
    unregister_time: Option<u64>,
    show_markers_in_timeline: bool,
}

/// The samples, column by column. Times are in milliseconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Allocations {
    length: usize,
    weight_type: &'static str,
    time: Vec<f64>,
    weight: Vec<i64>,
    stack: Vec<Option<usize>>,
    memory_address: Vec<u64>,
    thread_id: Vec<u64>,
}

impl Allocations {
    #[expect(clippy::cast_precision_loss, reason = "the format has times as floating-point numbers")]
    fn new(samples: &[Sample]) -> Self {
        Self {
            length: samples.len(),
            weight_type: "bytes",
            time: samples.iter().map(|sample| sample.time as f64 / 1e6).collect(),
            weight: samples.iter().map(|sample| sample.bytes).collect(),
            stack: samples.iter().map(|sample| sample.stack).collect(),
            memory_address: samples.iter().map(|sample| sample.address).collect(),
            thread_id: samples.iter().map(|sample| sample.thread).collect(),
        }
    }
}
