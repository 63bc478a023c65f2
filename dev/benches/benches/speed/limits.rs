//! Measures two limits of the machine, which are memory bandwidth and structs that need no decoding. The third limit,
//! fully specialized loops, is listed with the readers it is compared with.

use crate::Input;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf_bench::{Result, events, hand};
use std::hint::black_box;

/// A number of bytes that exceeds all caches.
const BEYOND_CACHES: usize = 256 << 20;

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let content = hand::content(&input.plain)?;
    let mut packed = Vec::new();
    hand::packed::write(&input.events, &mut packed);
    let all = events::sum(&input.events);
    let one = events::alloc_sizes(&input.events);
    let counts = events::counts(&input.events);

    let mut table = Table::new(
        "Limits: million records a second",
        &["", "all fields", "one field", "count by tag", "bytes a record", "GB/s"],
    );
    let length = |bytes: &[u8]| bytes.len() as f64 / input.events.len() as f64;
    let row = |table: &mut Table, name: &str, cells: [Cell; 3], bytes: &[u8]| {
        let speed = match cells {
            [Cell::Rate(rate), ..] => Cell::Number(rate * length(bytes) / 1e3),
            _ => Cell::None,
        };
        let [all, one, count] = cells;
        table.row(name, [all, one, count, Cell::Number(length(bytes)), speed]);
    };

    let sum = hand::bandwidth(&content);
    let cached = suite.rate("limits", "bytes", &sum, || Ok(hand::bandwidth(black_box(&content))))?;
    row(&mut table, "sum over the bytes of plain HATF 1.0, in the cache", [cached, Cell::None, Cell::None], &content);
    let many = content.repeat(BEYOND_CACHES / content.len() + 1);
    let sum = hand::bandwidth(&many);
    let copies = (many.len() / content.len()) as f64;
    let memory = suite.rate("limits", "memory", &sum, || Ok(hand::bandwidth(black_box(&many))))?.times(copies);
    row(&mut table, "the same, from memory", [memory, Cell::None, Cell::None], &content);
    drop(many);

    let cells = [
        suite.rate("limits", "packed-all", &all, || Ok(hand::packed::all(black_box(&packed))))?,
        suite.rate("limits", "packed-one", &one, || Ok(hand::packed::one(black_box(&packed))))?,
        suite.rate("limits", "packed-count", &counts, || Ok(hand::packed::count(black_box(&packed))))?,
    ];
    row(&mut table, "structs of 32 bytes", cells, &packed);

    suite.table(table);
    Ok(())
}
