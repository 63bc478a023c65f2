//! Record views, in loops and one by one, for comparison with owned records.

use crate::Value;
use crate::columns::Placed;
use metatf::columns::Columns;
use metatf::dynamic::{Item, RecordView, Trace};
use metatf::format::Step;

/// Returns the records of a trace with their offsets, read by `try_for_each` and, after the loop is left, by
/// `next_record`, and the final result. If `mixed` is set, some records are read by columns in between and not
/// returned.
///
/// # Panics
/// Panics if a view is inconsistent.
pub fn records(trace: &mut Trace<'_>, mixed: bool) -> (Vec<(u64, Placed)>, metatf::Result<()>) {
    let (mut records, mut enough, mut columns) = (Vec::new(), 1, Columns::default());
    let format = trace.schema().format.clone();
    let placed = |record: &RecordView<'_>| {
        let declared = &format.records[usize::from(record.record())];
        if !declared.is_catch_all() {
            assert_eq!(record.numbers()[0], u64::from(declared.tag), "the tag");
        }
        assert_eq!(record.numbers().len(), record.len());
        if declared.steps.iter().all(|step| !matches!(step, Step::Repeat { .. })) {
            assert_eq!(record.len(), declared.leaves.len(), "places are leaves");
        }
        let values = record.iter().skip(declared.first_value()).map(|item| match item {
            Item::Number(number) => Value::Number(number),
            Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        });
        (record.at().offset, (record.section(), record.record(), values.collect()))
    };
    let end = loop {
        let mut given = 0;
        let left = trace.try_for_each(|record| {
            records.push(placed(&record));
            given += 1;
            if given == enough { Err(None) } else { Ok(()) }
        });
        match left {
            Ok(()) => break Ok(()),
            Err(Some(error)) => break Err(error),
            Err(None) => {}
        }
        match trace.next_record() {
            Ok(Some(record)) => records.push(placed(&record)),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if mixed && let Err(error) = trace.next_columns(&mut columns) {
            break Err(error);
        }
        enough = enough * 2 + 1;
    };
    (records, end)
}
