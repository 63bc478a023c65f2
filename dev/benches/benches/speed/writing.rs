//! The project's writers, writing to memory.

use crate::Input;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf::container::{Codec, Filter, WriteOptions};
use metatf_bench::ours::hatf10::{Fit, plain, split, stored};
use metatf_bench::ours::heap;
use metatf_bench::{Event, Result, hand};
use std::hint::black_box;

type Write = fn(&[Event], Vec<u8>) -> metatf::Result<Vec<u8>>;

fn with(codec: Codec) -> WriteOptions {
    WriteOptions { codec, filter: Filter::None, ..WriteOptions::default() }
}

fn version_0() -> WriteOptions {
    WriteOptions { version: 0, ..stored() }
}

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let events = &*input.events;
    let mut table = Table::new(
        "Writing to memory: million records a second",
        &["", "all fields", "to the hand-written loop", "bytes a record"],
    );
    let records = events.len() as f64;

    let mut out = Vec::new();
    let base = suite.rate("write", "hand", &(), || {
        hand::plain::write(black_box(events), &mut out);
        Ok(())
    })?;
    table.row("plain HATF 1.0: hand-written loop", [base, Cell::Ratio(1.0), Cell::Number(out.len() as f64 / records)]);
    let summed = suite.rate("write", "hand-summed", &(), || {
        hand::stored::write(black_box(events), &mut out);
        Ok(())
    })?;
    let size = Cell::Number(out.len() as f64 / records);
    table.row("plain HATF 1.0: hand-written loop that makes check sums", [summed, summed.ratio(base), size]);

    let ways: [(&str, &str, Write); 13] = [
        ("strict", "plain HATF 1.0: `write`, strict", |e, out| plain::write(e, &stored(), Fit::Strict, true, out)),
        ("widening", "plain HATF 1.0: `write`, widening", |e, out| plain::write(e, &stored(), Fit::Widen, true, out)),
        ("strict-at-once", "plain HATF 1.0: `write_all`, strict", |e, out| {
            plain::write_all(e, &stored(), Fit::Strict, true, out)
        }),
        ("widening-at-once", "plain HATF 1.0: `write_all`, widening", |e, out| {
            plain::write_all(e, &stored(), Fit::Widen, true, out)
        }),
        ("version-0", "plain HATF 1.0, version 0: `write`", |e, out| {
            plain::write(e, &version_0(), Fit::Widen, true, out)
        }),
        ("version-0-at-once", "plain HATF 1.0, version 0: `write_all`", |e, out| {
            plain::write_all(e, &version_0(), Fit::Widen, true, out)
        }),
        ("lz4", "plain HATF 1.0, LZ4", |e, out| plain::write(e, &with(Codec::Lz4), Fit::Widen, true, out)),
        ("zstd", "plain HATF 1.0, zstd 3", |e, out| plain::write(e, &with(Codec::Zstd(3)), Fit::Widen, true, out)),
        ("split", "`HATF10-split`", |e, out| split::write(e, &stored(), Fit::Widen, false, out)),
        ("heap-split", "`heap-split.dtd`, zstd", |e, out| heap::split::write(e, &heap::options(), out)),
        ("heap-values", "`heap-values.dtd`, zstd", |e, out| heap::values::write(e, &heap::options(), out)),
        ("heap", "`heap.dtd`, zstd", |e, out| heap::model::write(e, &heap::options(), out)),
        ("heap-timed", "`heap.dtd` with times, zstd", |e, out| heap::timed::write(e, &heap::options(), out)),
    ];
    for (name, label, write) in ways {
        let mut out = Vec::new();
        let rate = suite.rate("write", name, &(), || {
            out = write(black_box(events), std::mem::take(&mut out))?;
            Ok(())
        })?;
        table.row(label, [rate, rate.ratio(base), Cell::Number(out.len() as f64 / records)]);
    }
    suite.table(table);
    Ok(())
}
