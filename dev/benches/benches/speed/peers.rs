//! Other formats.

use crate::Input;
use crate::reading::Expected;
use crate::report::{Cell, Table};
use crate::suite::Suite;
use ::rkyv::util::AlignedVec;
use metatf_bench::peers::{Call, binary, bincode, postcard, prost, rkyv, zerocopy};
use metatf_bench::{Counts, Result, hand};
use std::hint::black_box;

/// A format that is read from and written to bytes.
struct Peer {
    name: &'static str,
    label: &'static str,
    encode: fn(&[Call], &mut Vec<u8>) -> Result<()>,
    all: fn(&[u8]) -> Result<u64>,
    count: fn(&[u8]) -> Result<Counts>,
}

const PEERS: [Peer; 7] = [
    Peer {
        name: "prost",
        label: "Protocol Buffers (prost)",
        encode: prost::encode,
        all: prost::all,
        count: prost::count,
    },
    Peer {
        name: "bincode-variable",
        label: "bincode 2, variable",
        encode: |calls, out| bincode::encode(calls, bincode::variable(), out),
        all: |bytes| bincode::all(bytes, bincode::variable()),
        count: |bytes| bincode::count(bytes, bincode::variable()),
    },
    Peer {
        name: "bincode-fixed",
        label: "bincode 2, fixed",
        encode: |calls, out| bincode::encode(calls, bincode::fixed(), out),
        all: |bytes| bincode::all(bytes, bincode::fixed()),
        count: |bytes| bincode::count(bytes, bincode::fixed()),
    },
    Peer { name: "postcard", label: "postcard", encode: postcard::encode, all: postcard::all, count: postcard::count },
    Peer {
        name: "binrw",
        label: "binrw",
        encode: binary::binrw_encode,
        all: binary::binrw_all,
        count: binary::binrw_count,
    },
    Peer { name: "deku", label: "deku", encode: binary::deku_encode, all: binary::deku_all, count: binary::deku_count },
    Peer {
        name: "zerocopy",
        label: "zerocopy, structs of 32 bytes",
        encode: |calls, out| {
            zerocopy::encode(calls, out);
            Ok(())
        },
        all: zerocopy::all,
        count: zerocopy::count,
    },
];

pub(crate) fn run(suite: &mut Suite, input: &Input) -> Result<()> {
    let calls: Vec<Call> = input.events.iter().map(Call::from).collect();
    let expected = Expected::of(input);
    let content = hand::content(&input.plain)?;
    let base = suite.rate("peer", "hand", &Some(expected.all), || Ok(hand::plain::all(black_box(&content))))?;
    let mut table = Table::new(
        "Other formats: million records a second",
        &[
            "",
            "encode",
            "decode, all fields",
            "to the hand-written loop",
            "count by tag",
            "bytes a record",
            "with zstd 3",
        ],
    );
    for Peer { name, label, encode, all, count } in PEERS {
        let mut bytes = Vec::new();
        let id = |what: &str| format!("{name}-{what}");
        let encoded = suite.rate("peer", &id("encode"), &(), || encode(black_box(&calls), &mut bytes))?;
        let all = suite.rate("peer", &id("all"), &expected.all, || all(black_box(&bytes)))?;
        let count = suite.rate("peer", &id("count"), &expected.counts, || count(black_box(&bytes)))?;
        let [raw, zstd] = sizes(&bytes, calls.len())?;
        table.row(label, [encoded, all, all.ratio(base), count, raw, zstd]);
    }
    archived(suite, &mut table, &calls, &expected, base)?;
    #[cfg(feature = "arrow")]
    columnar(suite, &mut table, &calls, &expected, base)?;
    #[cfg(not(feature = "arrow"))]
    suite.leave_out("Arrow IPC and Parquet: `--features arrow` adds them");
    suite.table(table);
    Ok(())
}

#[cfg(feature = "arrow")]
fn columnar(suite: &mut Suite, table: &mut Table, calls: &[Call], expected: &Expected, base: Cell) -> Result<()> {
    use ::prost::bytes::Bytes;
    use arrow_buffer::Buffer;
    use metatf_bench::peers::arrow;

    let mut bytes = Vec::new();
    let encoded = suite.rate("peer", "arrow-encode", &(), || arrow::ipc_encode(black_box(calls), &mut bytes))?;
    let sizes = sizes(&bytes, calls.len())?;
    let buffer = Buffer::from_vec(bytes);
    let all = suite.rate("peer", "arrow-all", &expected.all, || arrow::ipc_all(black_box(&buffer)))?;
    let count = suite.rate("peer", "arrow-count", &expected.counts, || arrow::ipc_count(black_box(&buffer)))?;
    let [raw, zstd] = sizes;
    table.row("Arrow IPC", [encoded, all, all.ratio(base), count, raw, zstd]);

    let size = |bytes: &[u8]| Cell::Number(bytes.len() as f64 / calls.len() as f64);
    let mut compressed = Vec::new();
    arrow::parquet_encode(calls, true, &mut compressed)?;
    let mut bytes = Vec::new();
    let encoded =
        suite.rate("peer", "parquet-encode", &(), || arrow::parquet_encode(black_box(calls), false, &mut bytes))?;
    let bytes = Bytes::from(bytes);
    let all = suite.rate("peer", "parquet-all", &expected.all, || arrow::parquet_all(black_box(&bytes)))?;
    let count = suite.rate("peer", "parquet-count", &expected.counts, || arrow::parquet_count(black_box(&bytes)))?;
    table.row("Parquet", [encoded, all, all.ratio(base), count, size(&bytes), size(&compressed)]);
    Ok(())
}

fn archived(suite: &mut Suite, table: &mut Table, calls: &Vec<Call>, expected: &Expected, base: Cell) -> Result<()> {
    let mut bytes = AlignedVec::new();
    let encoded = suite.rate("peer", "rkyv-encode", &(), || {
        bytes = rkyv::encode(black_box(calls), std::mem::take(&mut bytes))?;
        Ok(())
    })?;
    let [raw, zstd] = sizes(&bytes, calls.len())?;
    let all = suite.rate("peer", "rkyv-all", &expected.all, || Ok(rkyv::all(rkyv::checked(black_box(&bytes))?)))?;
    let count =
        suite.rate("peer", "rkyv-count", &expected.counts, || Ok(rkyv::count(rkyv::checked(black_box(&bytes))?)))?;
    table.row("rkyv, checked", [encoded, all, all.ratio(base), count, raw, zstd]);
    let all = suite
        .rate("peer", "rkyv-unchecked-all", &expected.all, || Ok(rkyv::all(rkyv::unchecked(black_box(&bytes)))))?;
    let count = suite.rate("peer", "rkyv-unchecked-count", &expected.counts, || {
        Ok(rkyv::count(rkyv::unchecked(black_box(&bytes))))
    })?;
    table.row("rkyv, unchecked", [encoded, all, all.ratio(base), count, raw, zstd]);
    Ok(())
}

/// Returns the bytes per record, uncompressed and compressed.
fn sizes(bytes: &[u8], records: usize) -> Result<[Cell; 2]> {
    let zstd = zstd::bulk::compress(bytes, 3)?;
    Ok([bytes.len(), zstd.len()].map(|length| Cell::Number(length as f64 / records as f64)))
}
