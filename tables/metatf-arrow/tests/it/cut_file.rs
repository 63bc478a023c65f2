//! If another process truncates a file that is being read, reading returns an error, and no signal kills this process.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use metatf::container::{Codec, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_arrow::{OpenOptions, Scan, message, open};

use crate::common::file;

/// Returns a trace of many chunks and groups, which is longer than the part read before the first batch.
fn trace() -> Vec<u8> {
    let dtd = b"section s 1 { r: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }";
    let schema = Schema::parse("numbers.dtd", dtd).unwrap();
    let options = WriteOptions { codec: Codec::Stored, trial: None, group_size: 1 << 20, ..WriteOptions::default() };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &options).unwrap();
    let mut owned = OwnedRecord::default();
    let record = u16::try_from(schema.dtd.records.len() - 1).unwrap();
    for n in 0..4_000_000 {
        owned.clear();
        owned.push_number(n);
        writer.record(1, record, &owned).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn cut_while_it_is_read() {
    let trace = trace();
    assert!(trace.len() > 32 << 20);
    for threads in [1, 2] {
        // Truncate the file after the part that was read, inside it, and at the beginning.
        for length in [24 << 20, 1 << 10, 0] {
            let file = file(&trace);
            let path = file.path().to_str().unwrap();
            let tables = open(path, &OpenOptions::default()).unwrap();
            let mut batches = tables[0].scan(&Scan { threads, ..Scan::default() }).unwrap();
            let mut rows = batches.next().unwrap().unwrap().num_rows();
            let cut = Command::new("truncate").args([&format!("--size={length}"), path]).status().unwrap();
            assert!(cut.success());
            let mut error = None;
            for batch in batches {
                match batch {
                    Ok(batch) => rows += batch.num_rows(),
                    Err(stop) => error = Some(message(&stop)),
                }
            }
            let error =
                error.unwrap_or_else(|| panic!("{rows} rows of a file cut to {length} bytes, {threads} threads"));
            assert!(
                error.starts_with(path) && error.contains("the file was truncated while it was being read"),
                "{error}"
            );
            assert!(rows < 4_000_000);
        }
    }
}
