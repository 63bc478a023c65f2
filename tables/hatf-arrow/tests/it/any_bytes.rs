//! The body of the fuzz target `tables`: for any file contents, reading the tables yields rows or an error that names
//! the file.
//!
//! `dev/fuzz/fuzz_targets/tables.rs` also includes this file.
#![allow(clippy::panic, clippy::expect_used, reason = "what is wrong has to panic")]

use std::io::Write as _;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use metatf_arrow::{OpenOptions, Scan, Table, Together, message};
use metatf_tests::targets::{trace_input, with_spans};

/// Maximum size of a batch in bytes. It exceeds the size that tables aim for, because the last record may be large.
const MOST: usize = 256 << 20;

/// Reads tables of an input, which consists of a byte of switches, a byte that selects the DTD (0 for the embedded
/// DTD), and the file. If the top bit of the second byte is set, checksums are corrected. The file is read as records,
/// which may form spans, or as a heap trace. All tables are read at once, each table alone, and by byte ranges of the
/// file.
///
/// # Panics
/// Panics if different ways of reading yield different results, an error does not name the file, or memory is not
/// limited.
pub(crate) fn tables(input: &[u8]) {
    let Some((switches, dtd, trace)) = trace_input(input) else { return };
    let on = |bit: u8| switches & 1 << bit != 0;
    let mut file = tempfile::NamedTempFile::new().expect("there is room for it");
    file.write_all(&trace).expect("there is room for it");
    let path = file.path();
    let threads = if on(0) { 2 } else { 1 };
    if on(7) {
        let Ok(heap) = hatf_arrow::open(&[path]) else { return };
        let names: Vec<&str> = hatf_arrow::Tables::names().collect();
        let alone = heap.all().iter().map(|table| alone(&**table, threads, path)).collect();
        compare(alone, heap.scan_together(&names, threads), path);
        return;
    }
    let dtd = dtd.map(|dtd| if on(3) { with_spans(&dtd) } else { dtd });
    let options =
        OpenOptions { force_dtd: dtd.is_some() && (on(6) || on(3)), dtd, stored: on(1), mapped: on(2), strict: on(4) };
    let tables = match metatf_arrow::open_tables(path, &options) {
        Ok(tables) => tables,
        Err(error) => return named(&error.to_string(), path),
    };
    let all = tables.all();
    let read: Vec<_> = all.iter().map(|table| alone(&**table, threads, path)).collect();
    let middle = trace.len() as u64 / 2;
    for (place, whole) in read.iter().enumerate() {
        let ranges = [0..middle, middle..u64::MAX].map(|bytes| tables.scan_range(place, None, bytes, threads));
        let ranges = ranges
            .map(|batches| drain(batches.into_iter().flatten().map(|next| next.map(|batch| (0, batch))), 1, path));
        let rows = ranges.iter().map(|(rows, _)| rows.iter().sum::<usize>()).sum::<usize>();
        match whole {
            Some(whole) if ranges.iter().all(|(_, is_whole)| *is_whole) => assert_eq!(rows, *whole, "rows of ranges"),
            Some(_) => panic!("a range has an error, and the whole has none"),
            None => {}
        }
    }
    let parts: Vec<_> = (0..all.len()).map(|table| (table, None)).collect();
    compare(read, tables.scan_together(&parts, threads), path);
}

/// Returns the number of rows of a table, or `None` if there is an error.
fn alone(table: &dyn Table, threads: usize, path: &Path) -> Option<usize> {
    match table.scan(&Scan { threads, ..Scan::default() }) {
        Ok(batches) => {
            let (rows, is_whole) = drain(batches.map(|next| next.map(|batch| (0, batch))), 1, path);
            is_whole.then(|| rows.iter().sum())
        }
        Err(error) => {
            named(&error.to_string(), path);
            None
        }
    }
}

/// Checks that tables read at once have the same rows as tables read alone.
fn compare(alone: Vec<Option<usize>>, together: metatf_arrow::Result<Together>, path: &Path) {
    let whole: Option<Vec<usize>> = alone.iter().copied().collect();
    let together = match together {
        Ok(together) => drain(together, alone.len(), path),
        Err(error) => {
            named(&error.to_string(), path);
            (Vec::new(), false)
        }
    };
    match (whole, together) {
        (Some(whole), (rows, true)) => assert_eq!(rows, whole, "rows of tables that are read at once"),
        (None, (_, false)) => {}
        (whole, (rows, is_whole)) => panic!("alone {whole:?}, at once {rows:?}, whole: {is_whole}"),
    }
}

/// Returns the row counts of the tables, and whether there was no error.
fn drain(
    batches: impl Iterator<Item = Result<(usize, RecordBatch), ArrowError>>,
    tables: usize,
    path: &Path,
) -> (Vec<usize>, bool) {
    let mut rows = vec![0; tables];
    let mut batches = batches.fuse();
    for next in batches.by_ref() {
        match next {
            Ok((table, batch)) => {
                assert!(batch.get_array_memory_size() < MOST, "a batch of {} bytes", batch.get_array_memory_size());
                rows[table] += batch.num_rows();
            }
            Err(error) => {
                named(&message(&error), path);
                assert!(batches.next().is_none(), "after an error nothing comes");
                return (rows, false);
            }
        }
    }
    (rows, true)
}

fn named(error: &str, path: &Path) {
    assert!(error.contains(&*path.to_string_lossy()), "it does not name the file: {error}");
}
