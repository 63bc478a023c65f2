//! From a file to its tables.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use metatf::dynamic::Trace;

use crate::record_table::{RecordTable, record_tables};
use crate::scan::Pass;
use crate::source::{OpenOptions, Source};
use crate::spans::{SpanPass, SpanTable, What, span_tables};
use crate::{Batches, Error, Result, Table, Together};

/// The tables of a trace.
#[derive(Clone, Debug)]
pub struct Tables {
    records: Vec<Arc<RecordTable>>,
    /// Their places are behind those of records.
    spans: Vec<Arc<SpanTable>>,
}

/// Opens a trace as tables: one for each type of record.
///
/// A table is named after its record; where records of one name stand in several sections, after section and record: `first_event`,
/// `second_event`. A record that may stand in several sections is one table, with a column `@section`. Stream sections whose elements
/// others point to are tables, too, with the column `@offset` that is pointed to.
///
/// If annotations say which records begin and end spans, there are tables of what pairing them gives: `spans`, and `events` of the other
/// records that have a time. A record that is called so itself keeps the name; the table is then `spans_2`, or the next number that is free.
///
/// # Errors
/// The file cannot be read, or is not a trace; there is no DTD for it.
pub fn open_tables(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Tables> {
    let source = Arc::new(Source::new(path.as_ref(), options)?);
    let records: Vec<_> = record_tables(&source, options.stored).into_iter().map(Arc::new).collect();
    let spans = span_tables(&source, &records, options.stored).into_iter().map(Arc::new).collect();
    Ok(Tables { records, spans })
}

/// Opens a trace, and gives [all its tables](open_tables).
///
/// # Errors
/// As for [`open_tables`].
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Vec<Arc<dyn Table>>> {
    Ok(open_tables(path, options)?.all())
}

impl Tables {
    /// All of them, in the order of the DTD; those of spans and events are last.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Table>> {
        let records = self.records.iter().map(|table| Arc::clone(table) as Arc<dyn Table>);
        records.chain(self.spans.iter().map(|table| Arc::clone(table) as Arc<dyn Table>)).collect()
    }

    /// How many of them are tables of records: the first ones. Those behind are made of the same records.
    #[must_use]
    pub fn of_records(&self) -> usize {
        self.records.len()
    }

    /// The spans, whatever the table is called.
    #[must_use]
    pub fn spans(&self) -> Option<Arc<dyn Table>> {
        self.made_of(What::Spans)
    }

    /// The events, whatever the table is called.
    #[must_use]
    pub fn events(&self) -> Option<Arc<dyn Table>> {
        self.made_of(What::Events)
    }

    fn made_of(&self, what: What) -> Option<Arc<dyn Table>> {
        let table = self.spans.iter().find(|table| table.what == what);
        table.map(|table| Arc::clone(table) as Arc<dyn Table>)
    }

    /// Reads the rows of a table, by its place, that stand in groups which begin in these bytes of the file: columns by their places (`None`:
    /// all), by this many threads (0: one for each processor). However a file is cut into ranges, each row is in one, with the same number
    /// as in a scan of all. A trace that cannot be cut, and spans and events, are in the range with the first byte.
    ///
    /// # Errors
    /// The trace cannot be opened; there is no such table or column. What is wrong further on is an error of a batch.
    pub fn scan_range(
        &self,
        table: usize,
        columns: Option<&[usize]>,
        bytes: Range<u64>,
        threads: usize,
    ) -> Result<Batches> {
        let none = || Error::new("", format!("there is no table {table}"));
        match table.checked_sub(self.records.len()) {
            None => self.records.get(table).ok_or_else(none)?.scan_range(columns, Some(bytes), threads, None),
            Some(table) => self.spans.get(table).ok_or_else(none)?.scan_range(columns, Some(bytes), None),
        }
    }

    /// Reads several tables at once, each by its place and with these columns of it (`None`: all), by this many threads (0: one for each
    /// processor). The trace is read once for all tables that need no more than the columns of the universal reader, and once for those
    /// that do: with references, repetitions, or rows of several sections. So it is for spans and events.
    ///
    /// # Errors
    /// The trace cannot be opened; a table has no such column. What is wrong further on is an error of a batch.
    pub fn scan_together(&self, wanted: &[(usize, Option<Vec<usize>>)], threads: usize) -> Result<Together> {
        let tables = wanted.iter().enumerate().filter_map(|(place, (table, columns))| {
            let table = Arc::clone(self.records.get(*table)?);
            let columns = table.wanted(columns.as_deref());
            Some(columns.map(|columns| (place, table, columns)))
        });
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let (by_columns, others): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|(_, table, columns)| table.is_by_columns(columns));
        let mut passes = Vec::new();
        for tables in [by_columns, others].into_iter().filter(|tables| !tables.is_empty()) {
            let (places, tables) = tables.into_iter().map(|(place, table, columns)| (place, (table, columns))).unzip();
            passes.push(placed(Pass::new(tables, None, threads)?, places));
        }
        let spans = wanted.iter().enumerate().filter_map(|(place, (table, columns))| {
            let table = Arc::clone(self.spans.get(table.checked_sub(self.records.len())?)?);
            let columns = table.wanted(columns.as_deref());
            Some(columns.map(|columns| (place, (table, columns))))
        });
        let (places, spans): (Vec<_>, Vec<_>) = spans.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        if !spans.is_empty() {
            passes.push(placed(SpanPass::new(spans)?, places));
        }
        let mut failed = false;
        let batches = passes.into_iter().flatten();
        Ok(Box::new(batches.take_while(move |next| !std::mem::replace(&mut failed, next.is_err()))))
    }
}

/// Gives batches the places of their tables among all that are wanted.
fn placed(
    pass: impl Iterator<Item = Result<(usize, RecordBatch), ArrowError>> + Send + 'static,
    places: Vec<usize>,
) -> Together {
    Box::new(pass.map(move |next| next.map(|(table, batch)| (places.get(table).copied().unwrap_or(0), batch))))
}

/// Opens a trace for the universal reader, by the DTD that its tables are made by.
///
/// # Errors
/// As for [`open_tables`].
pub fn open_records(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Trace<'static>> {
    Source::new(path.as_ref(), options)?.open()
}
