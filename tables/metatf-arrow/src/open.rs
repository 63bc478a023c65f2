//! Opens the tables of a trace.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    /// The tables of spans and events. Their indices follow those of `records`.
    spans: Vec<Arc<SpanTable>>,
}

/// Opens a trace as tables, one for each record type.
///
/// A table has the name of its record. If different sections declare records of the same name, the section name is
/// prepended: `first_event`, `second_event`. A record that may occur in several sections has one table with an
/// additional column `@section`. A stream section is also a table, unless its elements are numbers to which no record
/// refers; its column `@offset` contains the values of references.
///
/// If annotations define which records begin and end spans, there are two more tables: `spans` contains the paired
/// records, and `events` contains the other records with a time. If a record already has one of these names, the table
/// gets the next free number, such as `spans_2`.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a trace, or if no DTD is found for it.
pub fn open_tables(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Tables> {
    let source = Arc::new(Source::new(path.as_ref(), options)?);
    let records: Vec<_> = record_tables(&source, options.stored).into_iter().map(Arc::new).collect();
    let spans = span_tables(&source, &records, options.stored).into_iter().map(Arc::new).collect();
    Ok(Tables { records, spans })
}

/// Opens a trace and returns [all its tables](open_tables).
///
/// # Errors
/// Returns the same errors as [`open_tables`].
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Vec<Arc<dyn Table>>> {
    Ok(open_tables(path, options)?.all())
}

impl Tables {
    /// Returns all tables in DTD order, followed by the tables of spans and events.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Table>> {
        let records = self.records.iter().map(|table| Arc::clone(table) as Arc<dyn Table>);
        records.chain(self.spans.iter().map(|table| Arc::clone(table) as Arc<dyn Table>)).collect()
    }

    /// Returns the number of record tables, which come first. The other tables are derived from the same records.
    #[must_use]
    pub fn of_records(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of references to missing elements in the columns read so far. These columns contain null.
    #[must_use]
    pub fn dangling(&self) -> u64 {
        self.records.first().map_or(0, |table| table.source.dangling.load(Ordering::Relaxed))
    }

    /// Returns the table of spans, regardless of its name.
    #[must_use]
    pub fn spans(&self) -> Option<Arc<dyn Table>> {
        self.made_of(What::Spans)
    }

    /// Returns the table of events, regardless of its name.
    #[must_use]
    pub fn events(&self) -> Option<Arc<dyn Table>> {
        self.made_of(What::Events)
    }

    fn made_of(&self, what: What) -> Option<Arc<dyn Table>> {
        let table = self.spans.iter().find(|table| table.what == what);
        table.map(|table| Arc::clone(table) as Arc<dyn Table>)
    }

    /// Reads the rows of the table at index `table` from the groups that begin in a byte range of the file. `columns`
    /// are column indices (`None` for all), and `threads` is the number of threads (0 for one per processor). If a file
    /// is divided into ranges, each row is in exactly one range and has the same number as in a full scan. Tables of
    /// spans and events, and traces that cannot be divided, belong to the range that contains the first byte.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be opened, or the table or a column does not exist. Later errors are
    /// returned in place of a batch.
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

    /// Reads several tables at once. Each table is specified by its index and its column indices (`None` for all);
    /// `threads` is the number of threads (0 for one per processor). The trace is read once for all tables that need
    /// only the columns of the dynamic reader, once for all tables with references, repetitions or several sections,
    /// and once for spans and events.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be opened, or a table or column does not exist. Later errors are returned
    /// in place of a batch.
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
            passes.push(placed(Pass::new(tables, None, threads, None)?, places));
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

/// Replaces the table index of each batch with its index among all requested tables.
fn placed(
    pass: impl Iterator<Item = Result<(usize, RecordBatch), ArrowError>> + Send + 'static,
    places: Vec<usize>,
) -> Together {
    Box::new(pass.map(move |next| next.map(|(table, batch)| (places.get(table).copied().unwrap_or(0), batch))))
}

/// Opens a trace with the dynamic reader, using the same DTD as its tables.
///
/// # Errors
/// Returns the same errors as [`open_tables`].
pub fn open_records(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Trace<'static>> {
    Source::new(path.as_ref(), options)?.open()
}
