//! Damaged traces, files that are not traces, and abandoned scans.

use std::fs::{self, File};

use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use metatf_arrow::{Scan, message};

use crate::rows::trace;

/// Reads all tables and returns the errors.
fn errors(path: &std::path::Path) -> Vec<String> {
    let mut errors = Vec::new();
    for table in hatf_arrow::open(&[path]).unwrap().all() {
        match table.scan(&Scan::default()) {
            Ok(mut batches) => {
                errors.extend(batches.by_ref().filter_map(Result::err).map(|error| message(&error)));
                assert!(batches.next().is_none());
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    errors
}

#[test]
fn no_traces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.mtf");
    assert!(hatf_arrow::open(&[&path]).is_err_and(|error| error.to_string().contains("none.mtf")));
    assert!(hatf_arrow::open(&[folder.path()]).is_err());
    for bytes in [&b""[..], b"\x7fMTF", b"some text that is no trace", &[0xff; 100]] {
        fs::write(&path, bytes).unwrap();
        let errors = errors(&path);
        assert_eq!(errors.len(), hatf_arrow::Tables::names().count(), "{errors:?}");
        assert!(errors.iter().all(|error| error.matches("none.mtf").count() >= 1), "{errors:?}");
    }
}

/// Any damaged trace yields rows or an error that names the trace.
#[test]
fn damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.mtf"), folder.path().join("damaged.mtf"));
    let mut source = TraceReader::open(&trace("gawk.raw32.zst")).unwrap();
    let mut sink = File::create(&whole).unwrap();
    let mut writer = HeapWriter::new(&mut sink, &HeapOptions::default()).unwrap();
    source.give(&mut writer).unwrap();
    writer.finish().unwrap();
    let whole = fs::read(&whole).unwrap();
    let mut state = 0x9e37_79b9_u64;
    let mut failed = 0;
    for round in 0..24_usize {
        let mut bytes = whole.clone();
        for _ in 0..=round % 3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = usize::try_from(state >> 33).unwrap() % bytes.len();
            if round % 4 == 3 {
                bytes.truncate(place.max(1));
            } else {
                bytes[place] ^= 1 << (state >> 20 & 7);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let errors = errors(&path);
        failed += usize::from(!errors.is_empty());
        assert!(errors.iter().all(|error| error.contains("damaged.mtf")), "{errors:?}");
    }
    assert!(failed > 0);
}

/// An abandoned scan ends its thread; nothing blocks.
#[test]
fn given_up() {
    let table = hatf_arrow::open(&[trace("perl_hash.raw32.zst")]).unwrap().get("objects").unwrap();
    for _ in 0..8 {
        assert!(table.scan(&Scan::default()).unwrap().next().unwrap().is_ok());
    }
}
