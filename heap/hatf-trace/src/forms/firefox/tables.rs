//! The document for the Firefox Profiler, whose tables are stored by column.

use hashbrown::HashMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::text;
use crate::stacks::{Function, Stacks};

/// The version of the format.
const VERSION: u32 = 55;
/// An allocation, or a free with a negative number of bytes.
pub(super) struct Sample {
    /// The number of the block.
    pub(super) block: u64,
    pub(super) time: u64,
    pub(super) bytes: i64,
    /// The index of the stack in the table.
    pub(super) stack: Option<usize>,
    pub(super) address: u64,
    pub(super) thread: u64,
}

/// The tables of a thread, stored by column. Rows refer to each other by index.
#[derive(Default)]
pub(super) struct Tables {
    strings: HashMap<String, usize>,
    string_list: Vec<String>,
    /// Module paths.
    libraries: Vec<String>,
    library_places: HashMap<String, usize>,
    /// Name, file and module.
    functions: HashMap<(usize, Option<usize>, Option<usize>), usize>,
    function_list: Vec<(usize, Option<usize>, Option<usize>)>,
    /// Function and line.
    frames: HashMap<(usize, Option<u64>), usize>,
    frame_list: Vec<(usize, Option<u64>)>,
    /// Parent stack and frame.
    stacks: HashMap<(Option<usize>, usize), usize>,
    stack_list: Vec<(Option<usize>, usize)>,
}

/// Returns the index of a key in a list. Appends the key if it is not in the list.
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

    pub(super) fn stack(&mut self, stacks: &Stacks, number: u64) -> Option<usize> {
        let mut on = None;
        let places = stacks.frames(number).iter().take(text::DEPTH).rev();
        for location in places.filter_map(|place| stacks.locations().get(*place as usize)) {
            let module = (!location.module.is_empty())
                .then(|| place(&mut self.library_places, &mut self.libraries, location.module.clone()));
            let names: Vec<String> = location.names().collect();
            // The outermost of the inlined functions is last.
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

    fn thread<'t>(mut self, name: &'t str, samples: &'t [Sample], mean: u64) -> Thread<'t> {
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
        // Type 1 is a library.
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
            native_allocations: Allocations::new(samples, mean),
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

/// Builds a profile of one thread from samples. Each sample represents `mean` bytes, or its own size if that is larger.
pub(super) fn profile<'t>(tables: Tables, name: &'t str, samples: &'t [Sample], mean: u64) -> Profile<'t> {
    let libs = tables.libs();
    let threads = [tables.thread(name, samples, mean)];
    Profile { meta: meta(mean), libs, threads, pages: [], profiler_overhead: [], counters: [] }
}

/// Builds the `meta` object of the profile. The viewer shows the product name above the profile, so this name indicates
/// whether the profile is a sample.
fn meta(mean: u64) -> Value {
    let product = match mean {
        1 => "hatf".to_owned(),
        _ => format!("hatf, sampled at one block per {mean} bytes (sums are estimates)"),
    };
    json!({
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
        "debug": false, "extensions": {"length": 0, "baseURL": [], "id": [], "name": []}, "interval": 1.0,
        "preprocessedProfileVersion": VERSION, "version": 24, "processType": 0, "product": product,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}, "startTime": 0.0,
        "symbolicated": true, "pausedRanges": [], "usesOnlyOneStackType": true, "sourceCodeIsNotOnSearchfox": true,
        "markerSchema": [],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile<'t> {
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

/// The samples, stored by column. Times are in milliseconds.
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
    #[expect(clippy::cast_precision_loss, reason = "the format stores times as floating-point numbers")]
    fn new(samples: &[Sample], mean: u64) -> Self {
        let mean = i64::try_from(mean).unwrap_or(i64::MAX);
        let weight = |sample: &Sample| match mean {
            1 => sample.bytes,
            _ => sample.bytes.signum() * sample.bytes.abs().max(mean),
        };
        Self {
            length: samples.len(),
            weight_type: "bytes",
            time: samples.iter().map(|sample| sample.time as f64 / 1e6).collect(),
            weight: samples.iter().map(weight).collect(),
            stack: samples.iter().map(|sample| sample.stack).collect(),
            memory_address: samples.iter().map(|sample| sample.address).collect(),
            thread_id: samples.iter().map(|sample| sample.thread).collect(),
        }
    }
}
