//! Hostile traces need no more memory than spec 7 allows: the content of the chunks of a group in use, and a small
//! multiple of the input.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::ALLOCATOR;
use metatf::container::{Class, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf_test::alone;
use metatf_tests::runtime;
use metatf_tests::targets::{crc32c, vectors};

/// Reads a complete trace in every way and keeps nothing.
fn read(schema: &Schema, bytes: &[u8]) {
    for salvage in [false, true] {
        let open = if salvage { Reader::salvage_slice } else { Reader::from_slice };
        let sources = [open(bytes), if salvage { Reader::salvage_read(bytes) } else { Reader::from_read(bytes) }];
        for container in sources.into_iter().flatten() {
            let Ok(mut trace) = Trace::new(schema.clone(), container) else { continue };
            trace.reader_mut().set_salvage(salvage);
            trace.reader_mut().set_all(true);
            while let Ok(Some(_)) = trace.next_entry() {}
        }
    }
}

/// Fixed costs: tables by section number, the window of a stream, decoders, a temporary file's buffer.
const FIXED: usize = 1 << 20;

#[test]
fn hostile_lengths_cost_nothing() {
    if !alone("memory::hostile_lengths_cost_nothing") {
        return;
    }
    for path in vectors().into_iter().filter(|p| p.extension().is_some_and(|e| e == "mtf")) {
        let Ok(text) = std::fs::read(path.with_file_name("format.dtd")) else { continue };
        let Some(dtd) = metatf_parser::parse("format.dtd", &text).dtd else { continue };
        let schema = Schema::new(dtd);
        let bytes = std::fs::read(&path).unwrap();
        // Only limits bound items that store nothing (spec 3.3), and columns of equal bytes (spec 5.2).
        let case = path.parent().and_then(|p| p.file_name()).map_or_else(String::new, |n| n.to_string_lossy().into());
        let is_at_limit = matches!(&*case, "items-limit" | "x-items-over" | "x-items-of-elements")
            || ["x-columns-edge-", "x-dictionary-", "x-predicted-edge-"].iter().any(|long| case.starts_with(long));
        let fixed = if is_at_limit { 16 * FIXED } else { FIXED };
        // Set each part of the headers and some parts of the rest (lengths, counts, offsets) to a huge number.
        let last = bytes.len().saturating_sub(4).min(600);
        for at in (0..last).filter(|at| *at < 64 || at % 23 == 0) {
            for huge in [[0xff; 4], [0, 0, 0, 4]] {
                let mut bytes = bytes.clone();
                bytes[at..at + 4].copy_from_slice(&huge);
                let cost = ALLOCATOR.peak(|| read(&schema, &bytes));
                let bound = fixed + 64 * bytes.len();
                assert!(cost < bound, "{}: {cost} bytes for {} at {at} {huge:?}", path.display(), bytes.len());
            }
        }
    }
    chunks_that_lie();
    items_that_store_nothing();
}

/// The header of a chunk is valid by its CRC, but claims 64 MiB of content for a few bytes.
fn chunks_that_lie() {
    let schema =
        runtime::schema("section s 1 { t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }");
    for codec in 0..4 {
        let chunk = chunk(codec, &[1, 2, 3, 4, 5, 6, 7, 8], 64 << 20);
        let bytes = [header(Class::Bits32), chunk].concat();
        // The decompressor may allocate its tables, but not the claimed content.
        let cost = ALLOCATOR.peak(|| read(&schema, &bytes));
        assert!(cost < 8 << 20, "codec {codec}: {cost} bytes");
    }
}

fn header(class: Class) -> Vec<u8> {
    let mut bytes = vec![0x7f, b'M', b'T', b'F', class.number(), 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

fn chunk(codec: u8, payload: &[u8], raw_len: u32) -> Vec<u8> {
    let mut bytes = b"MTFC".to_vec();
    bytes.extend([1, 0, codec, 0, 3, 0, 1, 1]);
    bytes.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    bytes.extend(raw_len.to_le_bytes());
    bytes.extend([0; 24]);
    let crc = [&bytes[..], payload].concat();
    bytes.extend(crc32c(&crc).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Spec 3.3 limits items that store nothing, so a record of a few bytes cannot have billions of them.
fn items_that_store_nothing() {
    let schema = runtime::schema(
        "section s 1 { t: (tag, n*(a, m*b)) {
             tag.value = 4; n.width = 8; n.interpretation = none; m.interpretation = default 1000;
             a.interpretation = default 1; b.interpretation = stride 0 1;
         } }",
    );
    for count in [u64::MAX, 1 << 40, 65_600, 66] {
        let record = [&[4_u8][..], &count.to_le_bytes()].concat();
        let mut bytes = header(Class::Bits32);
        bytes.extend(chunk(0, &record, u32::try_from(record.len()).unwrap()));
        // Set the record count of the chunk header to 1.
        let cost = ALLOCATOR.peak(|| read(&schema, &bytes));
        assert!(cost < 8 << 20, "{count} items: {cost} bytes");
    }
}
