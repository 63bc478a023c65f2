//! The project's readers on traces of all kinds.

use crate::Input;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf_bench::ours::{hatf10, heap, universal};
use metatf_bench::{Counts, Result, events, hand};
use std::hint::black_box;

/// The expected results of the loops over an entire trace.
pub(crate) struct Expected {
    pub(crate) all: u64,
    /// The sum including the sizes of reallocations.
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

/// A combination of reader and trace.
struct Way<'a> {
    name: &'a str,
    label: &'a str,
    trace: &'a [u8],
    loops: Loops,
    /// The expected sum over all fields.
    sum: u64,
    /// The hand-written loop used for comparison.
    base: Cell,
}

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let expected = Expected::of(input);
    let records = input.events.len() as f64;
    let mut table = Table::new(
        "Reading: million records a second",
        &["", "all fields", "to the hand-written loop", "one field", "count by tag", "bytes a record"],
    );

    let content = hand::content(&input.plain)?;
    let hand = [
        suite.rate("read", "hand-all", &Some(expected.all), || Ok(hand::plain::all(black_box(&content))))?,
        suite.rate("read", "hand-one", &Some(expected.one), || Ok(hand::plain::one(black_box(&content))))?,
        suite.rate("read", "hand-count", &Some(expected.counts), || Ok(hand::plain::count(black_box(&content))))?,
    ];
    let plain = by_hand(&mut table, "plain HATF 1.0: hand-written loop", hand, content.len() as f64 / records);
    let trace = &input.plain;
    let stored = [
        suite.rate("read", "hand-stored-all", &Some(expected.all), || Ok(hand::stored::all(black_box(trace))))?,
        suite.rate("read", "hand-stored-one", &Some(expected.one), || Ok(hand::stored::one(black_box(trace))))?,
        suite
            .rate("read", "hand-stored-count", &Some(expected.counts), || Ok(hand::stored::count(black_box(trace))))?,
    ];
    let label = "plain HATF 1.0: hand-written loop that verifies check sums";
    table.row(
        label,
        [stored[0], stored[0].ratio(plain), stored[1], stored[2], Cell::Number(trace.len() as f64 / records)],
    );
    let generated: Loops = (hatf10::plain::all, hatf10::plain::one, hatf10::plain::count);
    let each: Loops = (hatf10::plain::each_all, hatf10::plain::each_one, hatf10::plain::each_count);
    let columns: Loops = (hatf10::plain::columns_all, hatf10::plain::columns_one, hatf10::plain::columns_count);
    let universal_columns: Loops = (universal::columns_all, universal::columns_one, universal::columns_count);
    let universal_each: Loops = (universal::each_all, universal::each_one, universal::each_count);
    let universal: Loops = (universal::all, universal::one, universal::count);
    let sum = expected.all;
    let ways = [
        ("plain", "plain HATF 1.0: generated, `next`", generated),
        ("plain-each", "plain HATF 1.0: generated, `for_each`", each),
        ("plain-columns", "plain HATF 1.0: generated, columns", columns),
        ("plain-universal", "plain HATF 1.0: universal, `next_record`", universal),
        ("plain-universal-each", "plain HATF 1.0: universal, `for_each`", universal_each),
        ("plain-universal-columns", "plain HATF 1.0: universal, columns", universal_columns),
    ];
    for (name, label, loops) in ways {
        let way = Way { name, label, trace: &input.plain, loops, sum, base: plain };
        row(suite, &mut table, &way, &expected, records)?;
    }
    let only = [("only", "`next_record`", hatf10::plain::only_one as fn(&[u8]) -> Result<u64>)];
    for (name, label, one) in only.into_iter().chain([("only-each", "`for_each`", hatf10::plain::only_each_one as _)]) {
        let one = suite.rate("read", &format!("plain-{name}"), &expected.one, || one(black_box(&input.plain)))?;
        let label = format!("plain HATF 1.0: generated, `only` and {label}");
        table.row(label, [Cell::None, Cell::None, one, Cell::None, Cell::Number(input.plain.len() as f64 / records)]);
    }

    let trace = hatf10::best_trace(&input.plain)?;
    let chunks = hand::best::chunks(&trace)?;
    let hand = [
        suite.rate("read", "best-hand-all", &Some(expected.all), || Ok(hand::best::all(black_box(&chunks))))?,
        suite.rate("read", "best-hand-one", &Some(expected.one), || Ok(hand::best::one(black_box(&chunks))))?,
        suite.rate("read", "best-hand-count", &Some(expected.counts), || Ok(hand::best::count(black_box(&chunks))))?,
    ];
    let best = by_hand(&mut table, "full of metadata (`best`): hand-written loop", hand, trace.len() as f64 / records);
    let ways = [
        ("best", "full of metadata (`best`): generated, `next`", generated),
        ("best-each", "full of metadata (`best`): generated, `for_each`", each),
        ("best-columns", "full of metadata (`best`): generated, columns", columns),
        ("best-universal", "full of metadata (`best`): universal, `next_record`", universal),
        ("best-universal-each", "full of metadata (`best`): universal, `for_each`", universal_each),
        ("best-universal-columns", "full of metadata (`best`): universal, columns", universal_columns),
    ];
    for (name, label, loops) in ways {
        let way = Way { name, label, trace: &trace, loops, sum, base: best };
        row(suite, &mut table, &way, &expected, records)?;
    }

    let trace = hatf10::split::write(&input.events, &hatf10::stored(), hatf10::Fit::Widen, false, Vec::new())?;
    let loops: Loops = (hatf10::split::each_all, hatf10::split::each_one, hatf10::split::each_count);
    let label = "`HATF10-split`: generated, `for_each`";
    row(suite, &mut table, &Way { name: "split", label, trace: &trace, loops, sum, base: plain }, &expected, records)?;

    let (model, values, split) = (heap::model::write, heap::values::write, heap::split::write);
    let times = heap::timed::sum(input.events.len());
    let ways: [(_, _, heap::Write, Loops, u64); 4] = [
        ("heap", "`heap.dtd`", model, (heap::model::each_all, heap::model::each_one, heap::model::each_count), 0),
        (
            "heap-timed",
            "`heap.dtd` with times",
            heap::timed::write,
            (heap::timed::each_all, heap::model::each_one, heap::model::each_count),
            times,
        ),
        (
            "heap-values",
            "`heap-values.dtd`",
            values,
            (heap::values::each_all, heap::values::each_one, heap::values::each_count),
            0,
        ),
        (
            "heap-split",
            "`heap-split.dtd`",
            split,
            (heap::split::each_all, heap::split::each_one, heap::split::each_count),
            0,
        ),
    ];
    for (name, label, write, loops, more) in ways {
        let trace = write(&input.events, &heap::options(), Vec::new())?;
        let label = &format!("{label}, zstd: generated, `for_each`");
        let way = Way { name, label, trace: &trace, loops, sum: expected.more.wrapping_add(more), base: plain };
        row(suite, &mut table, &way, &expected, records)?;
    }
    suite.table(table);
    Ok(())
}

/// Adds the row of a hand-written loop. Returns the rate for comparison with other loops.
fn by_hand(table: &mut Table, label: &str, [all, one, count]: [Cell; 3], length: f64) -> Cell {
    table.row(label, [all, all.ratio(all), one, count, Cell::Number(length)]);
    all
}

fn row(suite: &mut Suite, table: &mut Table, way: &Way<'_>, expected: &Expected, records: f64) -> Result<()> {
    let Way { name, label, trace, loops: (all, one, count), sum, base } = *way;
    let all = suite.rate("read", &format!("{name}-all"), &sum, || all(black_box(trace)))?;
    let one = suite.rate("read", &format!("{name}-one"), &expected.one, || one(black_box(trace)))?;
    let count = suite.rate("read", &format!("{name}-count"), &expected.counts, || count(black_box(trace)))?;
    table.row(label, [all, all.ratio(base), one, count, Cell::Number(trace.len() as f64 / records)]);
    Ok(())
}
