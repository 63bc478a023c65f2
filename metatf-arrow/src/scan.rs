//! One reading of a table: batches by this thread, or by several, in the order of the trace.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use metatf::dynamic::Trace;

use crate::reading::{Chunk, Reading, Stop};
use crate::record_table::{Lead, RecordTable};
use crate::{Batches, Error, Result, Scan, Table};

/// Batches that wait to be taken.
const WAITING: usize = 4;

/// What a group gives: a batch, or how many records it had, at its end.
enum Piece {
    Chunk(Chunk),
    End(u64),
}

/// The batches of a scan.
struct BatchReader {
    schema: SchemaRef,
    batches: Input,
    /// Rows that are still wanted.
    limit: u64,
}

enum Input {
    Here(Box<Here>),
    Threads(Receiver<Result<RecordBatch, ArrowError>>),
    Ended,
}

/// Reading by this thread.
struct Here {
    trace: Trace<'static>,
    reading: Reading,
    maker: Maker,
}

/// Makes batches of what was read.
#[derive(Clone)]
struct Maker {
    table: RecordTable,
    schema: SchemaRef,
    /// The column of the record's number among those wanted.
    number: Option<usize>,
}

impl Table for RecordTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let all = self.schema.fields().len();
        let wanted = scan.columns.clone().unwrap_or_else(|| (0..all).collect());
        if let Some(column) = wanted.iter().find(|&&column| column >= all) {
            return Err(Error::new(&self.source.path, format!("the table {} has no column {column}", self.name)));
        }
        batches(self, wanted, scan)
    }
}

/// Reads the columns of a table.
fn batches(table: &RecordTable, wanted: Vec<usize>, scan: &Scan) -> Result<Batches> {
    let mut trace = table.source.open()?;
    trace.reader_mut().set_all(table.is_element);
    let schema = table.schema.project(&wanted).map_err(|e| Error::new(&table.source.path, e))?;
    let schema = Arc::new(schema);
    let number = wanted.iter().position(|&column| table.lead.get(column) == Some(&Lead::Number));
    let maker = Maker { table: table.clone(), schema: SchemaRef::clone(&schema), number };
    let reading = Reading::new(table, &wanted);
    let threads = match scan.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let is_split = threads > 1 && trace.reader().container().split().is_some_and(|split| !split.has_small_groups());
    let batches = if is_split {
        let (sender, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("metatf-scan".to_owned());
        thread
            .spawn(move || read_groups(trace, &reading, &maker, threads, &sender))
            .map_err(|e| Error::new(&table.source.path, format!("there is no thread to read it: {e}")))?;
        Input::Threads(receiver)
    } else {
        Input::Here(Box::new(Here { trace, reading, maker }))
    };
    Ok(Box::new(BatchReader { schema, batches, limit: scan.limit.unwrap_or(u64::MAX) }))
}

/// Reads groups by several threads, and sends batches in their order. Ends when nobody takes them.
fn read_groups(
    mut trace: Trace<'static>,
    reading: &Reading,
    maker: &Maker,
    threads: usize,
    sender: &SyncSender<Result<RecordBatch, ArrowError>>,
) {
    let mut before = 0;
    let read = trace.par_groups().threads(threads).ahead(2).streamed(
        |group, out| {
            let mut reading = reading.clone();
            while let Some(chunk) = reading.next_chunk(group)? {
                if !out.send(Piece::Chunk(chunk)) {
                    return Err(Stop::Unwanted);
                }
            }
            let _ = out.send(Piece::End(group.reader().records_read()));
            Ok(())
        },
        |piece| match piece {
            Piece::Chunk(chunk) => sender.send(maker.batch(chunk, before)).map_err(|_| Stop::Unwanted),
            Piece::End(records) => {
                before += records;
                Ok(())
            }
        },
    );
    match read {
        Ok(()) | Err(Stop::Unwanted) => {}
        // Where nobody takes it, nobody misses it.
        Err(stop) => drop(sender.send(Err(maker.error(stop, before)))),
    }
}

impl Maker {
    /// Makes a batch, before whose group there are `before` records.
    fn batch(&self, mut chunk: Chunk, before: u64) -> Result<RecordBatch, ArrowError> {
        if let Some(number) = self.number.and_then(|column| chunk.arrays.get_mut(column)).filter(|_| before > 0) {
            *number = moved(number, before);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), chunk.arrays, &options)
    }

    fn error(&self, stop: Stop, before: u64) -> ArrowError {
        let source = &self.table.source;
        let error = match stop {
            Stop::Trace(error) => source.error(&error),
            Stop::Value { record, field, fault } => Error::new(
                &source.path,
                format!(
                    "record {} ({}), field {field}: {fault}; opened with stored values, it is read as it is",
                    before + record,
                    self.table.name
                ),
            ),
            Stop::Arrow(error) => return error,
            Stop::Unwanted => Error::new(&source.path, "nobody reads on"),
        };
        ArrowError::ExternalError(Box::new(error))
    }
}

/// Numbers of records, behind `before` others.
fn moved(numbers: &ArrayRef, before: u64) -> ArrayRef {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;
    let numbers = numbers.as_primitive_opt::<Int64Type>();
    let values = numbers.into_iter().flat_map(|numbers| numbers.values().iter());
    Arc::new(values.map(|number| number.wrapping_add_unsigned(before)).collect::<Int64Array>())
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.limit == 0 {
            self.batches = Input::Ended;
        }
        let next = match &mut self.batches {
            Input::Here(here) => {
                let Here { trace, reading, maker } = &mut **here;
                match reading.next_chunk(trace) {
                    Ok(chunk) => chunk.map(|chunk| maker.batch(chunk, 0)),
                    Err(stop) => Some(Err(maker.error(stop, 0))),
                }
            }
            Input::Threads(receiver) => receiver.recv().ok(),
            Input::Ended => None,
        };
        match &next {
            Some(Ok(batch)) => self.limit = self.limit.saturating_sub(batch.num_rows() as u64),
            _ => self.batches = Input::Ended,
        }
        next
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
