//! The `stacks` table: the frames of each stack.

use std::collections::BTreeSet;

use hatf_lab::Heap;
use hatf_lab::blocks::ROWS;
use hatf_trace::stack_hash::StackHashes;
use hatf_trace::stacks::{Location, Stacks};

use super::{AtEnd, Collector, Row, Take, trace_column};
use crate::Names;
use crate::column::{Column, Of};
use crate::frame::FrameRow;

/// A stack.
pub(crate) struct StackRow {
    stack: u64,
    depth: u64,
    frames: Vec<FrameRow>,
}

/// Returns one row per function of a location, or one row without a function if the location has no functions.
fn frames(location: &Location) -> impl Iterator<Item = FrameRow> + '_ {
    (0..location.functions.len().max(1)).map(|place| {
        let function = location.functions.get(place);
        FrameRow {
            function: function.map_or_else(String::new, |function| function.name.clone()),
            file: function.map_or_else(String::new, |function| function.file.clone()),
            line: function.map_or(0, |function| function.line),
            module: location.module.clone(),
            build_id: location.build_id.clone(),
            offset: location.offset,
            inlined: place + 1 < location.functions.len(),
        }
    })
}

impl StackRow {
    fn new(stacks: &Stacks, number: u64, stack: u64) -> Self {
        Self { stack, depth: stacks.frames(number).len() as u64, frames: stacks.get(number).flat_map(frames).collect() }
    }
}

impl Row for StackRow {
    const NAME: &'static str = "stacks";
    const COLUMNS: &'static [Column<Self>] = &[
        trace_column!(),
        Column {
            name: "stack_hash",
            unit: "",
            doc: "hash of the stack, computed from the build id and offset of each frame",
            of: Of::Hash(|s| s.stack),
        },
        Column {
            name: "depth",
            unit: "",
            doc: "number of frames, without inlined functions",
            of: Of::Count(|s| s.depth),
        },
        Column {
            name: "frames",
            unit: "",
            doc: "its functions, innermost first; offset is the return address in the module's file",
            of: Of::Frames(|s| &s.frames),
        },
    ];

    const NAMED: bool = true;

    fn collector(mut take: Take<'_, Self>) -> Box<dyn Collector + '_> {
        let finish = move |(), heap: &Heap, _: &dyn Names| {
            let (mut hashes, mut given) = (StackHashes::default(), BTreeSet::new());
            let mut rows = Vec::new();
            for number in 1..heap.stacks.count() {
                let hash = hashes.of(&heap.stacks, number);
                if given.insert(hash) {
                    rows.push(Self::new(&heap.stacks, number, hash));
                }
                if rows.len() >= ROWS {
                    take(&rows)?;
                    rows.clear();
                }
            }
            take(&rows)
        };
        Box::new(AtEnd { observer: (), finish })
    }
}
