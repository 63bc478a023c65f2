//! Checks the labels of columns (spec 5.2, filter 4): readers that decode single leaves must get the values that the
//! records have.

use metatf::columns::Columns;
use metatf::container::Reader;
use metatf::dynamic::Trace;
use metatf::format::{Format, LeafKind};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

/// The values of each leaf, by section, record and leaf.
type Values = BTreeMap<(usize, u16, u8), DefaultHasher>;

/// Number of the filter `columns`.
const COLUMNS: u8 = 4;

/// Returns whether any chunk is stored in columns.
pub(crate) fn has_columns(reader: &mut Reader<'_>) -> bool {
    let chunks = reader.chunks().map_or(0, <[_]>::len);
    (0..chunks).any(|chunk| reader.filter_of(chunk).is_ok_and(|filter| filter == COLUMNS))
}

/// Reads a trace by records and then by columns. Returns the name of the first leaf that differs. All leaves are read
/// together, because reading each of them alone would take as long for each leaf if a chunk must be assembled.
///
/// # Errors
/// Returns an error from `open`, or the first error in the trace.
pub(crate) fn first_wrong<'t, E: From<metatf::Error>>(
    mut open: impl FnMut() -> Result<Trace<'t>, E>,
) -> Result<Option<String>, E> {
    let mut trace = open()?;
    let format = trace.schema().format.clone();
    let by_records = read(&mut trace, &format, Columns::of(&format))?;
    let stored = Columns::of_leaves(&format, |_, record, leaf| is_stored(&format, record, leaf));
    let by_columns = read(&mut open()?, &format, stored)?;
    let differs =
        by_records.iter().find(|(leaf, values)| by_columns.get(leaf).map(Hasher::finish) != Some(values.finish()));
    let name = differs.and_then(|(&(_, record, leaf), _)| {
        let record = format.records.get(usize::from(record))?;
        Some(format!("{}.{}", record.name, record.leaves.get(usize::from(leaf))?.path))
    });
    Ok(name)
}

fn read(trace: &mut Trace<'_>, format: &Format, mut columns: Columns) -> metatf::Result<Values> {
    let mut all = Values::new();
    while trace.next_columns(&mut columns)? {
        for records in columns.records() {
            let leaves = format.records.get(usize::from(records.record())).map_or(0, |record| record.leaves.len());
            for leaf in (0..=u8::MAX).take(leaves).filter(|&leaf| is_stored(format, records.record(), leaf)) {
                let values = all.entry((records.section(), records.record(), leaf)).or_default();
                records.numbers(leaf).iter().for_each(|&number| values.write_u64(number));
                for array in records.arrays(leaf).iter() {
                    values.write_usize(array.len());
                    values.write(array);
                }
            }
        }
    }
    Ok(all)
}

/// Returns whether readers can decode the leaf without the others.
fn is_stored(format: &Format, record: u16, leaf: u8) -> bool {
    let leaf = format.records.get(usize::from(record)).and_then(|record| record.leaves.get(usize::from(leaf)));
    leaf.is_some_and(|leaf| {
        let is_stored =
            !matches!(leaf.kind, LeafKind::Computed(_) | LeafKind::Scanned(_) | LeafKind::Until(_) | LeafKind::Rest);
        is_stored && leaf.constant.is_none()
    })
}
