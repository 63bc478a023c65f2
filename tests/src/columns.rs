//! Turns columns back into records, to compare the column readers with readers that go record by record.

use crate::Value;
use metatf::columns::{Columns, RecordColumns};
use metatf::dynamic::Trace;
use metatf::format::{ExprOp, Format, LeafKind, Step, Steps};
use metatf::reader::Event;
use metatf::typed::Source;
use metatf::{Error, Row};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Position of the next value of each leaf, for each record type.
#[derive(Debug, Default)]
pub struct Cursors(Vec<((usize, u16), Vec<usize>)>);

impl Cursors {
    /// Returns the row of the next record of a type, in a batch that the cursors traverse from its start.
    ///
    /// # Panics
    /// Panics if the columns contain no such record.
    pub fn row<'c>(
        &'c mut self,
        format: &'c Format,
        columns: &'c Columns,
        (section, record): (usize, u16),
    ) -> ColumnRow<'c> {
        let found = self.0.iter().position(|(place, _)| *place == (section, record));
        let index = found.unwrap_or_else(|| {
            self.0.push(((section, record), vec![0; 256]));
            self.0.len() - 1
        });
        let columns = columns.record(section, record).expect("a record that is in order has columns");
        ColumnRow { format, columns, record, next: &mut self.0[index].1, last: vec![0; 256] }
    }
}

/// One record read from columns.
#[derive(Debug)]
pub struct ColumnRow<'c> {
    format: &'c Format,
    columns: &'c RecordColumns,
    record: u16,
    next: &'c mut Vec<usize>,
    last: Vec<u64>,
}

/// Returns whether a leaf is just the length of the byte array right after it. Such a leaf has no column.
fn is_length(format: &Format, record: u16, leaf: u8) -> bool {
    let record = &format.records[usize::from(record)];
    let behind = |pair: &[Step]| pair == [Step::Number(leaf), Step::Bytes(leaf + 1)];
    match record.leaves.get(usize::from(leaf) + 1).map(|leaf| &leaf.kind) {
        Some(LeafKind::Variable(program)) => **program == [ExprOp::Leaf(leaf)] && record.steps.windows(2).any(behind),
        _ => false,
    }
}

impl ColumnRow<'_> {
    fn step(&mut self, leaf: u8) -> usize {
        let next = &mut self.next[usize::from(leaf)];
        *next += 1;
        *next - 1
    }
}

impl<'c> Row<'c> for ColumnRow<'c> {
    type Error = Error;

    fn stop(&mut self, error: Error) -> Error {
        error
    }

    fn number(&mut self, leaf: u8) -> metatf::Result<u64> {
        let value = if is_length(self.format, self.record, leaf) {
            let index = self.next[usize::from(leaf) + 1];
            self.columns.arrays(leaf + 1).get(index).expect("as many arrays as records").len() as u64
        } else {
            let index = self.step(leaf);
            *self.columns.numbers(leaf).get(index).expect("as many values as records")
        };
        self.last[usize::from(leaf)] = value;
        Ok(value)
    }

    fn bytes(&mut self, leaf: u8) -> metatf::Result<&'c [u8]> {
        let index = self.step(leaf);
        let columns = self.columns;
        Ok(columns.arrays(leaf).get(index).expect("as many arrays as records"))
    }

    fn items(&mut self, count: u64) -> metatf::Result<usize> {
        Ok(usize::try_from(count).expect("it was read"))
    }
}

impl<'c> Source<'c> for ColumnRow<'c> {
    fn last(&self, leaf: u8) -> u64 {
        self.last[usize::from(leaf)]
    }
}

/// A record: its section, its index in the format, and its values.
pub type Placed = (usize, u16, Vec<Value>);

/// Returns the records of a trace, read by columns, and the result at the end of the trace.
///
/// # Panics
/// Panics if the columns are inconsistent.
pub fn records(trace: &mut Trace<'_>) -> (Vec<Placed>, metatf::Result<()>) {
    let (mut records, mut columns) = (Vec::new(), Columns::default());
    loop {
        match trace.next_columns(&mut columns) {
            Ok(true) => {}
            Ok(false) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
        let format = &trace.schema().format;
        assert_eq!(columns.first(), records.len() as u64);
        assert_eq!(columns.records().map(RecordColumns::len).sum::<usize>(), columns.len());
        let mut cursors = Cursors::default();
        for (section, record) in columns.order() {
            let row = &mut cursors.row(format, &columns, (section, record));
            let mut taking = Taking { row, values: Vec::new() };
            let record_format = &format.records[usize::from(record)];
            let Ok(()) = record_format.walk(record_format.first_value(), &mut taking);
            records.push((section, record, taking.values));
        }
    }
}

/// Columns of a complete trace.
#[derive(Debug, Default, PartialEq)]
struct Leaves {
    /// Section and record of each record.
    order: Vec<(usize, u16)>,
    /// Values of each leaf, keyed by section, record and leaf.
    values: BTreeMap<(usize, u16, u8), Vec<Value>>,
}

/// Returns the values in the columns of one record type, leaf by leaf.
fn values_of<'c>(format: &Format, records: &'c RecordColumns) -> impl Iterator<Item = (u8, Vec<Value>)> + 'c {
    let count = format.records[usize::from(records.record())].leaves.len();
    (0..u8::try_from(count).expect("a record has at most 255 leaves")).map(|leaf| {
        let numbers = records.numbers(leaf).iter().map(|&n| Value::Number(n));
        (leaf, numbers.chain(records.arrays(leaf).iter().map(|bytes| Value::Bytes(bytes.to_vec()))).collect())
    })
}

/// Reads the wanted leaves, and returns them with the result at the end of the trace.
fn leaves(trace: &mut Trace<'_>, wanted: impl Fn(usize, u16, u8) -> bool) -> (Leaves, metatf::Result<()>) {
    let mut columns = Columns::of_leaves(&trace.schema().format, wanted);
    let mut leaves = Leaves::default();
    loop {
        match trace.next_columns(&mut columns) {
            Ok(true) => {}
            Ok(false) => return (leaves, Ok(())),
            Err(error) => return (leaves, Err(error)),
        }
        leaves.order.extend(columns.order());
        for records in columns.records() {
            for (leaf, values) in values_of(&trace.schema().format, records) {
                leaves.values.entry((records.section(), records.record(), leaf)).or_default().extend(values);
            }
        }
    }
}

/// Checks that a subset of the leaves has the same values when it is read without the other leaves.
///
/// # Panics
/// Panics if the values differ.
pub fn check_some_leaves<'t>(mut open: impl FnMut() -> Trace<'t>) {
    for odd in [0, 1] {
        check_selection(&mut open(), &mut open(), |section, record, leaf| {
            (section + usize::from(record) + usize::from(leaf)) % 2 == odd
        });
    }
}

/// Reads a subset of the leaves, which must not panic.
pub fn read_some_leaves(trace: &mut Trace<'_>) {
    // The values need not be those of the records.
    let _ =
        leaves(trace, |section, record, leaf| (section + usize::from(record) + usize::from(leaf)).is_multiple_of(2));
}

/// Checks that the wanted leaves have the same values when they are read without the other leaves, from another trace
/// of the same records.
///
/// # Panics
/// Panics if the values, the records or the result differ.
pub fn check_selection(all: &mut Trace<'_>, some: &mut Trace<'_>, is_wanted: impl Fn(usize, u16, u8) -> bool) {
    let (all, end) = leaves(all, |_, _, _| true);
    let (some, some_end) = leaves(some, &is_wanted);
    assert_eq!(some_end, end, "some leaves alone");
    assert_eq!(some.order, all.order, "the records of some leaves alone");
    for (place @ (section, record, leaf), values) in &all.values {
        let expected = if is_wanted(*section, *record, *leaf) { &values[..] } else { &[] };
        let found = some.values.get(place).map_or(&[][..], Vec::as_slice);
        assert_eq!(found, expected, "some leaves alone: {place:?}");
    }
}

/// Assigns the values of a record to its leaves.
struct Assigning<'v> {
    values: std::slice::Iter<'v, Value>,
    last: Vec<u64>,
    leaves: BTreeMap<u8, Vec<Value>>,
}

impl Assigning<'_> {
    fn next(&mut self, leaf: u8) {
        let value = self.values.next().expect("a record has all of its values").clone();
        if let Value::Number(number) = value {
            self.last[usize::from(leaf)] = number;
        }
        self.leaves.entry(leaf).or_default().push(value);
    }
}

impl Steps for Assigning<'_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.next(leaf);
        Ok(())
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.next(leaf);
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        Ok(self.last[usize::from(count)])
    }
}

/// Checks that a trace returns the expected records if the wanted leaves are read by columns, and other records one by
/// one in between. `turns` decides what comes next, and whether a single record is decoded or skipped.
///
/// # Panics
/// Panics if a value, a record or the result differs.
pub fn check_mixed(
    trace: &mut Trace<'_>,
    expected: &[Placed],
    is_wanted: impl Fn(usize, u16, u8) -> bool,
    mut turns: impl FnMut() -> u8,
) -> metatf::Result<()> {
    let format = trace.schema().format.clone();
    let mut columns = Columns::of_leaves(&format, &is_wanted);
    let mut at = 0;
    loop {
        let turn = turns();
        if turn.is_multiple_of(4) {
            if !trace.next_columns(&mut columns)? {
                break;
            }
            assert_eq!(columns.first(), at as u64, "records before the columns");
            let batch = &expected[at..at + columns.len()];
            assert!(columns.order().eq(batch.iter().map(|(section, record, _)| (*section, *record))), "the records");
            let mut leaves: BTreeMap<_, Vec<Value>> = BTreeMap::new();
            for (section, record, values) in batch {
                let mut row = Assigning { values: values.iter(), last: vec![0; 256], leaves: BTreeMap::new() };
                let declared = &format.records[usize::from(*record)];
                let Ok(()) = declared.walk(declared.first_value(), &mut row);
                for (leaf, values) in row.leaves {
                    if is_wanted(*section, *record, leaf) && !is_length(&format, *record, leaf) {
                        leaves.entry((*section, *record, leaf)).or_default().extend(values);
                    }
                }
            }
            let found = columns.records().flat_map(|records| {
                let place = |(leaf, values)| ((records.section(), records.record(), leaf), values);
                values_of(&format, records).map(place)
            });
            let found: BTreeMap<_, _> = found.filter(|(_, values): &(_, Vec<_>)| !values.is_empty()).collect();
            assert_eq!(found, leaves, "columns between single records, from record {at}");
            at += batch.len();
            continue;
        }
        let Some(event) = trace.reader_mut().next_event()? else { break };
        let Event::Record(place) = event else { continue };
        let (section, record, values) = &expected[at];
        assert_eq!((place.section, place.record), (*section, *record), "record {at}");
        if turn % 4 > 1 {
            trace.decode(event)?;
            let found: Vec<Value> = trace.record().iter().map(crate::runtime::value).collect();
            assert_eq!(found, *values, "record {at}");
        }
        at += 1;
    }
    assert_eq!(at, expected.len(), "as many records");
    Ok(())
}

/// Row whose values are being collected.
struct Taking<'t, 'c> {
    row: &'t mut ColumnRow<'c>,
    values: Vec<Value>,
}

impl Steps for Taking<'_, '_> {
    type Error = Infallible;

    fn number(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.values.push(Value::Number(self.row.number(leaf).expect("columns hold it")));
        Ok(())
    }

    fn bytes(&mut self, leaf: u8) -> Result<(), Infallible> {
        self.values.push(Value::Bytes(self.row.bytes(leaf).expect("columns hold it").to_vec()));
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64, Infallible> {
        Ok(self.row.last(count))
    }
}
