//! Turns columns back into records, to compare the column readers with readers that go record by record.

use crate::Value;
use metatf::columns::{Columns, RecordColumns};
use metatf::dynamic::Trace;
use metatf::format::{ExprOp, Format, LeafKind, Step, Steps};
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

impl ColumnRow<'_> {
    /// Returns whether this leaf is just the length of the byte array right after it. Such a leaf has no column.
    fn is_length(&self, leaf: u8) -> bool {
        let record = &self.format.records[usize::from(self.record)];
        let behind = |pair: &[Step]| pair == [Step::Number(leaf), Step::Bytes(leaf + 1)];
        match record.leaves.get(usize::from(leaf) + 1).map(|leaf| &leaf.kind) {
            Some(LeafKind::Variable(program)) => {
                **program == [ExprOp::Leaf(leaf)] && record.steps.windows(2).any(behind)
            }
            _ => false,
        }
    }

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
        let value = if self.is_length(leaf) {
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

/// Values of each leaf, keyed by section, record and leaf, and the result at the end of the trace.
type Leaves = (BTreeMap<(usize, u16, u8), Vec<Value>>, metatf::Result<()>);

/// Reads the wanted leaves, one leaf at a time.
fn leaves(trace: &mut Trace<'_>, wanted: impl Fn(usize, u16, u8) -> bool) -> Leaves {
    let mut columns = Columns::of_leaves(&trace.schema().format, wanted);
    let mut leaves: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    loop {
        match trace.next_columns(&mut columns) {
            Ok(true) => {}
            Ok(false) => return (leaves, Ok(())),
            Err(error) => return (leaves, Err(error)),
        }
        for records in columns.records() {
            let count = trace.schema().format.records[usize::from(records.record())].leaves.len();
            for leaf in 0..u8::try_from(count).expect("a record has at most 255 leaves") {
                let values = leaves.entry((records.section(), records.record(), leaf)).or_default();
                values.extend(records.numbers(leaf).iter().map(|&n| Value::Number(n)));
                values.extend(records.arrays(leaf).iter().map(|bytes| Value::Bytes(bytes.to_vec())));
            }
        }
    }
}

/// Checks that a subset of the leaves has the same values when it is read without the other leaves.
///
/// # Panics
/// Panics if the values differ.
pub fn check_some_leaves<'t>(mut open: impl FnMut() -> Trace<'t>) {
    let (all, end) = leaves(&mut open(), |_, _, _| true);
    for odd in [0, 1] {
        let is_wanted =
            |section: usize, record: u16, leaf: u8| (section + usize::from(record) + usize::from(leaf)) % 2 == odd;
        let (some, some_end) = leaves(&mut open(), is_wanted);
        assert_eq!(some_end, end, "some leaves alone");
        for (place @ (section, record, leaf), values) in &all {
            let expected = if is_wanted(*section, *record, *leaf) { &values[..] } else { &[] };
            let found = some.get(place).map_or(&[][..], Vec::as_slice);
            assert_eq!(found, expected, "some leaves alone: {place:?}");
        }
    }
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
