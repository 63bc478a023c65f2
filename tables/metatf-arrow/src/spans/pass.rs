//! One pass over a trace that pairs records and returns batches of spans and events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_tools::roles::Role;
use metatf_tools::spans::{Found, Instant, Kinds, Pairs, Span, Wanted};

use super::column::{Filling, Row};
use super::{SpanTable, What};
use crate::reading::{ROWS, WEIGHT};
use crate::source::Source;
use crate::{Error, Result};

/// A pass that returns batches, each with the index of its table among the tables being read.
pub(crate) struct SpanPass {
    source: Arc<Source>,
    trace: Trace<'static>,
    kinds: Kinds,
    pairs: Pairs,
    /// Whether records contain process and thread numbers.
    has_process: bool,
    has_thread: bool,
    /// Names of threads by process and thread number.
    thread_names: HashMap<(u64, u64), String>,
    /// Results that have not been converted to rows.
    found: VecDeque<Found>,
    tables: Vec<Filled>,
    ended: bool,
    /// An error to return after the rows before it.
    stop: Option<Error>,
}

/// A table that is being read.
struct Filled {
    table: Arc<SpanTable>,
    schema: SchemaRef,
    columns: Vec<Filling>,
    rows: usize,
}

impl SpanPass {
    /// Starts reading columns of at least one table of a trace.
    pub(crate) fn new(tables: Vec<(Arc<SpanTable>, Arc<[usize]>)>) -> Result<Self> {
        let tables = tables.into_iter().map(|(table, wanted)| Filled::new(table, &wanted));
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let Some(source) = tables.first().map(|filled| Arc::clone(&filled.table.source)) else {
            return Err(Error::new("", "no table was requested"));
        };
        let with_values = tables.iter().any(Filled::needs_values);
        let trace = source.open()?;
        let kinds = Kinds::new(&source.schema, with_values);
        let pairs = Pairs::new(&kinds, Wanted::default());
        let has = |role| kinds.have_role(&source.schema, role);
        Ok(Self {
            trace,
            pairs,
            has_process: has(Role::Process),
            has_thread: has(Role::Thread),
            kinds,
            source,
            thread_names: HashMap::new(),
            found: VecDeque::new(),
            tables,
            ended: false,
            stop: None,
        })
    }

    /// Reads some of the next records. Records before an error are treated like the last records of a trace.
    fn read(&mut self) {
        let mut found = Vec::new();
        let read = self.read_some(&mut found);
        self.ended = !matches!(read, Ok(true));
        self.stop = read.err().map(|error| self.source.error(&error));
        if self.ended {
            self.pairs.rest(&mut found);
            self.pairs.unended(&mut found);
        }
        self.found.extend(found);
    }

    /// Pairs some of the next records. Returns false at the end.
    fn read_some(&mut self, found: &mut Vec<Found>) -> metatf::Result<bool> {
        for _ in 0..1024 {
            let Some(event) = self.trace.reader_mut().next_event()? else { return Ok(false) };
            let Event::Record(at) = event else { continue };
            if !self.kinds.need(at.record) {
                continue;
            }
            self.trace.decode(event)?;
            let number = self.trace.reader().records_read().saturating_sub(1);
            if let Some(seen) = self.kinds.seen(&self.source.schema, at.record, self.trace.record()) {
                self.pairs.take(number, seen, found);
            }
        }
        Ok(true)
    }

    /// Converts a result to a row.
    fn put(&mut self, found: Found) {
        match found {
            Found::Span(span) => self.span(&span, true),
            Found::Open(span) => self.span(&span, false),
            Found::Event(event) => self.event(event),
            Found::Thread { process, thread, name } => drop(self.thread_names.insert((process, thread), name)),
            Found::Part(_) | Found::Flow { .. } => {}
        }
    }

    fn span(&mut self, span: &Span, has_ended: bool) {
        let row = Row {
            record: span.record,
            name: &span.name,
            time: span.begin,
            ended: has_ended.then_some(span),
            busy: span.busy,
            process: self.has_process.then_some(span.process),
            thread: self.has_thread.then_some(span.thread),
            thread_name: self.thread_names.get(&(span.process, span.thread)).map(String::as_str),
            number: span.number,
            above: span.above.as_ref(),
            origin: span.origin.as_deref(),
            message: None,
            values: &span.values,
        };
        let put = self.tables.iter_mut().try_for_each(|filled| filled.put(What::Spans, &row));
        self.end_at(put);
    }

    fn event(&mut self, mut event: Instant) {
        let message = event.values.take_message();
        let row = Row {
            record: event.record,
            name: &event.name,
            time: event.time,
            ended: None,
            busy: None,
            process: self.has_process.then_some(event.process),
            thread: self.has_thread.then_some(event.thread),
            thread_name: self.thread_names.get(&(event.process, event.thread)).map(String::as_str),
            number: None,
            above: event.above.as_ref(),
            origin: event.origin.as_deref(),
            message: message.as_deref(),
            values: &event.values,
        };
        let put = self.tables.iter_mut().try_for_each(|filled| filled.put(What::Events, &row));
        self.end_at(put);
    }

    /// Stops reading if a row could not be added.
    fn end_at(&mut self, put: Result<()>) {
        if let Err(error) = put {
            self.stop = Some(error);
            self.ended = true;
            self.found.clear();
        }
    }

    /// Returns the index of a table whose batch is complete.
    fn full(&self) -> Option<usize> {
        self.tables.iter().position(Filled::is_full)
    }
}

impl Iterator for SpanPass {
    type Item = Result<(usize, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.full().is_none() {
            match self.found.pop_front() {
                Some(found) => self.put(found),
                None if self.ended => break,
                None => self.read(),
            }
        }
        let place = self.full().or_else(|| self.tables.iter().position(|filled| filled.rows > 0));
        match place.and_then(|place| Some((place, self.tables.get_mut(place)?))) {
            Some((place, filled)) => {
                let batch = filled.finish();
                if batch.is_err() {
                    // The iterator ends after an error.
                    (self.ended, self.stop) = (true, None);
                    self.found.clear();
                    self.tables.clear();
                }
                Some(batch.map(|batch| (place, batch)))
            }
            None => self.stop.take().map(|error| Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl Filled {
    fn new(table: Arc<SpanTable>, wanted: &[usize]) -> Result<Self> {
        let schema = table.schema.project(wanted).map_err(|e| Error::new(&table.source.path, e))?;
        let columns = wanted.iter().filter_map(|&column| table.columns.get(column));
        let columns = columns.map(|&column| Filling::new(column, table.time)).collect();
        Ok(Self { schema: Arc::new(schema), columns, table, rows: 0 })
    }

    fn needs_values(&self) -> bool {
        self.columns.iter().any(Filling::needs_values)
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS || self.columns.iter().map(Filling::weight).sum::<usize>() >= WEIGHT
    }

    /// Adds a row if it belongs to this table.
    fn put(&mut self, what: What, row: &Row<'_>) -> Result<()> {
        if self.table.what != what {
            return Ok(());
        }
        for column in &mut self.columns {
            column.put(row).map_err(|fault| {
                let (name, record, column) = (&self.table.name, row.record, column.name());
                let message = format!(
                    "record {record} ({name}), column {column}: {fault}; to read the value unconverted, open the trace with stored values"
                );
                Error::new(&self.table.source.path, message)
            })?;
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let arrays = self.columns.iter_mut().map(|column| column.finish(rows)).collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}
