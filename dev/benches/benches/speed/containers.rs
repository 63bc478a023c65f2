//! Plain HATF 1.0 in every container and from every source.

use crate::Input;
use crate::reading::Expected;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf::container::{Codec, Filter, WriteOptions};
use metatf_bench::Result;
use metatf_bench::ours::hatf10::{Fit, plain, stored};
use std::fs::File;
use std::hint::black_box;
use std::io::Write;

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let expected = Expected::of(input).all;
    let records = input.events.len() as f64;
    let mut table = Table::new(
        "Reading plain HATF 1.0 by `for_each`, all fields: million records a second",
        &["", "from memory", "mapped file", "`Read` of a file", "pipe", "bytes a record"],
    );
    let with = |codec| WriteOptions { codec, filter: Filter::None, ..WriteOptions::default() };
    let ways = [
        ("stored", "version 1, stored", stored()),
        ("lz4", "version 1, LZ4", with(Codec::Lz4)),
        ("zstd", "version 1, zstd 3", with(Codec::Zstd(3))),
        ("version-0", "version 0", WriteOptions { version: 0, ..stored() }),
    ];
    for (name, label, options) in ways {
        let trace = plain::write(&input.events, &options, Fit::Widen, true, Vec::new())?;
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&trace)?;
        let path = file.path();
        let id = |source: &str| format!("{name}-{source}");
        let cells = [
            suite.rate("container", &id("memory"), &expected, || plain::each_all(black_box(&trace)))?,
            suite.rate("container", &id("mapped"), &expected, || plain::all_open(path))?,
            suite.rate("container", &id("read"), &expected, || plain::all_read(File::open(path)?))?,
            suite.rate("container", &id("pipe"), &expected, || through_pipe(&trace))?,
            Cell::Number(trace.len() as f64 / records),
        ];
        table.row(label, cells);
    }
    suite.table(table);
    Ok(())
}

/// Fills the pipe from another thread, whose time is not measured.
fn through_pipe(trace: &[u8]) -> Result<u64> {
    std::thread::scope(|scope| {
        let (reader, mut writer) = std::io::pipe()?;
        let filled = scope.spawn(move || writer.write_all(trace));
        let sum = plain::all_read(reader);
        filled.join().map_err(|_| "the thread that fills the pipe panicked")??;
        sum
    })
}
