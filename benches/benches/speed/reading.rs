//! Our readers, over traces of all sorts.

use crate::Input;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf_bench::ours::{hatf10, heap};
use metatf_bench::{Counts, Result, events, hand};
use std::hint::black_box;

/// What a loop over a whole trace comes to.
pub(crate) struct Expected {
    pub(crate) all: u64,
    /// With the sizes of reallocations.
    pub(crate) more: u64,
    pub(crate) one: u64,
    pub(crate) counts: Counts,
}

impl Expected {
    pub(crate) fn of(input: &Input) -> Self {
        let all = events::sum(&input.events);
        Self {
            all,
            more: all.wrapping_add(events::realloc_sizes(&input.events)),
            one: events::alloc_sizes(&input.events),
            counts: events::counts(&input.events),
        }
    }
}

/// The three loops over a trace.
type Loops = (fn(&[u8]) -> Result<u64>, fn(&[u8]) -> Result<u64>, fn(&[u8]) -> Result<Counts>);

/// The name and the label of a way to read, its loops, and what they come to.
struct Way<'a> {
    name: &'a str,
    label: &'a str,
    trace: &'a [u8],
    loops: Loops,
    sum: u64,
}

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let expected = Expected::of(input);
    let content = hand::content(&input.plain)?;
    let base = suite.rate("read", "hand", &Some(expected.all), || Ok(hand::plain::all(black_box(&content))))?;

    let best = hatf10::best_trace(&input.plain)?;
    let split = hatf10::split::write(&input.events, &hatf10::stored(), hatf10::Fit::Widen, false, Vec::new())?;
    let model = heap::model::write(&input.events, &heap::options(), Vec::new())?;
    let values = heap::values::write(&input.events, &heap::options(), Vec::new())?;
    let columns = heap::split::write(&input.events, &heap::options(), Vec::new())?;

    let (hatf, more) = (expected.all, expected.more);
    let generated: Loops = (hatf10::plain::all, hatf10::plain::one, hatf10::plain::count);
    let universal: Loops = (hatf10::universal_all, hatf10::universal_one, hatf10::universal_count);
    let split_loops: Loops = (hatf10::split::all, hatf10::split::one, hatf10::split::count);
    let model_loops: Loops = (heap::model::all, heap::model::one, heap::model::count);
    let values_loops: Loops = (heap::values::all, heap::values::one, heap::values::count);
    let columns_loops: Loops = (heap::split::all, heap::split::one, heap::split::count);
    let ways = [
        ("plain", "plain HATF 1.0: generated, `next`", &input.plain, generated, hatf),
        ("plain-universal", "plain HATF 1.0: universal", &input.plain, universal, hatf),
        ("best", "full of metadata (`best`): generated, `next`", &best, generated, hatf),
        ("best-universal", "full of metadata (`best`): universal", &best, universal, hatf),
        ("split", "`HATF10-split`: generated, `next`", &split, split_loops, hatf),
        ("heap", "`heap.dtd`, zstd: generated, `next`", &model, model_loops, more),
        ("heap-values", "`heap-values.dtd`, zstd: generated, `next`", &values, values_loops, more),
        ("heap-split", "`heap-split.dtd`, zstd: generated, `next`", &columns, columns_loops, more),
    ];
    let mut table = Table::new(
        "Reading: million records a second",
        &["", "all fields", "to the hand-written loop", "one field", "count by tag", "bytes a record"],
    );
    for (name, label, trace, loops, sum) in ways {
        let way = Way { name, label, trace, loops, sum };
        row(suite, &mut table, &way, base, &expected, input.events.len())?;
    }
    suite.table(table);
    Ok(())
}

fn row(
    suite: &mut Suite,
    table: &mut Table,
    way: &Way<'_>,
    base: Cell,
    expected: &Expected,
    records: usize,
) -> Result<()> {
    let Way { name, label, trace, loops: (all, one, count), sum } = *way;
    let all = suite.rate("read", &format!("{name}-all"), &sum, || all(black_box(trace)))?;
    let one = suite.rate("read", &format!("{name}-one"), &expected.one, || one(black_box(trace)))?;
    let count = suite.rate("read", &format!("{name}-count"), &expected.counts, || count(black_box(trace)))?;
    let length = Cell::Number(trace.len() as f64 / records as f64);
    table.row(label, [all, all.ratio(base), one, count, length]);
    Ok(())
}
