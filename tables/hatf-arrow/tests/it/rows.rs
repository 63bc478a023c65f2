//! Helpers that read tables.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::{Array as _, RecordBatch};
use metatf_arrow::Scan;

/// Returns a trace of the repository.
pub(crate) fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../heap/hatf/tests/data").join(name)
}

/// Reads a table.
pub(crate) fn read(path: &Path, table: &str, threads: usize) -> Vec<RecordBatch> {
    let table = hatf_arrow::open(&[path]).unwrap().get(table).unwrap();
    table.scan(&Scan { threads, ..Scan::default() }).unwrap().map(Result::unwrap).collect()
}

/// Reads all tables in one pass and returns the batches of each.
pub(crate) fn read_together(path: &Path, threads: usize) -> Vec<(&'static str, Vec<RecordBatch>)> {
    let names: Vec<_> = hatf_arrow::Tables::names().collect();
    let mut all: Vec<_> = names.iter().map(|name| (*name, Vec::new())).collect();
    for next in hatf_arrow::open(&[path]).unwrap().scan_together(&names, threads).unwrap() {
        let (place, batch) = next.unwrap();
        all[place].1.push(batch);
    }
    all
}

/// Returns a column of numbers.
pub(crate) fn numbers(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
    let column = |batch: &RecordBatch| batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().clone();
    batches.iter().flat_map(|batch| column(batch).iter().collect::<Vec<_>>()).collect()
}

/// Returns the sum of a column.
pub(crate) fn sum(batches: &[RecordBatch], column: &str) -> u64 {
    numbers(batches, column).into_iter().map(|number| u64::try_from(number.unwrap_or(0)).unwrap()).sum()
}

/// Returns a column of words.
pub(crate) fn words(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let words = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap();
        let words = column.as_dictionary::<Int8Type>().downcast_dict::<arrow_array::StringArray>().unwrap();
        (0..words.len())
            .map(|row| words.values().value(usize::try_from(words.keys().value(row)).unwrap()).to_owned())
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(words).collect()
}
