//! One pass over a trace that returns the batches of one or several tables in trace order, on one or several threads.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use metatf::container::{TimeLeaf, TimeRange};
use metatf::dynamic::Trace;
use metatf_parser::schema::Leaf;

use crate::reading::{Chunk, Reading, Stop};
use crate::record_table::{Lead, RecordTable};
use crate::source::Source;
use crate::{Batches, Error, Result, Scan, Table, Together};

/// Maximum number of batches that wait for the receiver.
const WAITING: usize = 4;

/// Output of a group, which is a batch of a table or, at the end, the number of records in the group.
enum Piece {
    Chunk(usize, Chunk),
    End(u64),
}

/// The batches of a table.
pub(crate) struct BatchReader {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Together,
    /// Number of rows that are still needed.
    pub(crate) limit: u64,
}

/// A batch and the index of its table among the tables being read.
type Made = Result<(usize, RecordBatch), ArrowError>;

/// One pass over a trace that returns the batches of one or several tables.
pub(crate) enum Pass {
    Here(Box<Here>),
    Threads(Receiver<Made>),
    Ended,
}

/// A pass on the calling thread.
pub(crate) struct Here {
    trace: Trace<'static>,
    reading: Reading,
    makers: Vec<Maker>,
}

/// Builds the batches of a table.
#[derive(Clone)]
struct Maker {
    table: Arc<RecordTable>,
    schema: SchemaRef,
    /// Index of the column with the record number among the requested columns.
    number: Option<usize>,
}

impl RecordTable {
    /// Returns the requested columns, or all if `columns` is `None`.
    pub(crate) fn wanted(&self, columns: Option<&[usize]>) -> Result<Arc<[usize]>> {
        chosen(self, &self.source, columns)
    }

    /// Reads the rows in groups that begin in this byte range of the file, or all rows if the range is `None`.
    pub(crate) fn scan_range(
        &self,
        columns: Option<&[usize]>,
        bytes: Option<Range<u64>>,
        threads: usize,
        limit: Option<u64>,
    ) -> Result<Batches> {
        self.scan_rows(columns, bytes, threads, limit, None)
    }

    /// Reads rows like [`scan_range`](Self::scan_range), at least those with these values of a leaf.
    fn scan_rows(
        &self,
        columns: Option<&[usize]>,
        bytes: Option<Range<u64>>,
        threads: usize,
        limit: Option<u64>,
        times: Option<&(Arc<Leaf>, TimeRange)>,
    ) -> Result<Batches> {
        let wanted = self.wanted(columns)?;
        let maker = Maker::new(Arc::new(self.clone()), &wanted)?;
        let schema = SchemaRef::clone(&maker.schema);
        let batches = Box::new(Pass::new(vec![(maker.table, wanted)], bytes, threads, times)?);
        Ok(Box::new(BatchReader { schema, batches, limit: limit.unwrap_or(u64::MAX) }))
    }
}

impl RecordTable {
    /// Skips the groups whose times show that no row has a value of the leaf in the range.
    fn skip_groups(&self, trace: &mut Trace<'_>, (leaf, wanted): &(Arc<Leaf>, TimeRange)) -> metatf::Result<()> {
        let record = self.source.schema.record(self.record).filter(|_| !self.is_element);
        let Some((record, id)) = record.and_then(|record| Some((record, record.time()?))) else { return Ok(()) };
        if record.leaf(id) != Some(&**leaf) {
            return Ok(());
        }
        let Some(times) = trace.reader_mut().group_times()? else { return Ok(()) };
        let is_listed = |&section: &usize| {
            let section = self.source.schema.section(section)?.number;
            let leaf = TimeLeaf { section, tag: record.tag?, leaf: id.0 };
            times.leaves.contains(&leaf).then_some(())
        };
        if self.sections.iter().all(|section| is_listed(section).is_some()) {
            trace.reader_mut().only_times(*wanted)?;
        }
        Ok(())
    }
}

/// Returns the requested columns of a table, or all if `columns` is `None`.
pub(crate) fn chosen(table: &impl Table, source: &Source, columns: Option<&[usize]>) -> Result<Arc<[usize]>> {
    let all = table.schema().fields().len();
    let chosen: Arc<[usize]> = columns.map_or_else(|| (0..all).collect(), Into::into);
    match chosen.iter().find(|&&column| column >= all) {
        Some(column) => Err(Error::new(&source.path, format!("the table {} has no column {column}", table.name()))),
        None => Ok(chosen),
    }
}

impl Table for RecordTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn leaves(&self) -> Vec<(String, Arc<Leaf>)> {
        let record = self.source.schema.record(self.record);
        record.map_or_else(Vec::new, |record| self.layout.leaves(record))
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        self.scan_rows(scan.columns.as_deref(), None, scan.threads, scan.limit, scan.times.as_ref())
    }
}

impl Pass {
    /// Starts reading columns of at least one table of a trace, from the groups that begin in this byte range of the
    /// file, or from all groups if the range is `None`. The rows of a single table with other values of the leaf in `times`
    /// may be omitted.
    pub(crate) fn new(
        tables: Vec<(Arc<RecordTable>, Arc<[usize]>)>,
        bytes: Option<Range<u64>>,
        threads: usize,
        times: Option<&(Arc<Leaf>, TimeRange)>,
    ) -> Result<Self> {
        let makers = tables.iter().map(|(table, wanted)| Maker::new(Arc::clone(table), wanted));
        let makers = makers.collect::<Result<Vec<_>>>()?;
        let Some(source) = makers.first().map(|maker| Arc::clone(&maker.table.source)) else { return Ok(Self::Ended) };
        let reading = Reading::new(tables);
        let mut trace = source.open()?;
        trace.reader_mut().set_all(reading.has_elements());
        if let ([maker], Some(times)) = (makers.as_slice(), times) {
            maker.table.skip_groups(&mut trace, times).map_err(|error| source.error(&error))?;
        }
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let split = || trace.reader().container().split();
        let is_split = match &bytes {
            Some(_) => split().is_some(),
            None => threads > 1 && split().is_some_and(|split| !split.has_small_groups()),
        };
        if !is_split && bytes.as_ref().is_some_and(|bytes| !bytes.contains(&0)) {
            return Ok(Self::Ended);
        }
        if !is_split {
            return Ok(Self::Here(Box::new(Here { trace, reading, makers })));
        }
        let (sender, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("metatf-scan".to_owned());
        thread
            .spawn(move || read_groups(trace, &reading, &makers, bytes.unwrap_or(0..u64::MAX), threads, &sender))
            .map_err(|e| Error::new(&source.path, format!("could not start a thread to read the trace: {e}")))?;
        Ok(Self::Threads(receiver))
    }
}

/// Reads groups on several threads and sends batches in trace order. Returns early if the receiver is gone.
fn read_groups(
    mut trace: Trace<'static>,
    reading: &Reading,
    makers: &[Maker],
    bytes: Range<u64>,
    threads: usize,
    sender: &SyncSender<Made>,
) {
    let mut before = trace.reader().records_before(bytes.start).unwrap_or(0);
    let read = trace.par_groups().that_begin_in(bytes).threads(threads).ahead(2).streamed(
        |group, out| {
            let mut reading = reading.clone();
            while let Some((table, chunk)) = reading.next_chunk(group)? {
                if !out.send(Piece::Chunk(table, chunk)) {
                    return Err(Stop::Unwanted);
                }
            }
            let _ = out.send(Piece::End(group.reader().records_read()));
            Ok(())
        },
        |piece| match piece {
            Piece::Chunk(table, chunk) => sender.send(made(makers, table, chunk, before)).map_err(|_| Stop::Unwanted),
            Piece::End(records) => {
                before += records;
                Ok(())
            }
        },
    );
    match read {
        Ok(()) | Err(Stop::Unwanted) => {}
        // If the receiver is gone, the error is not needed.
        Err(stop) => drop(sender.send(Err(error(makers, stop, before)))),
    }
}

/// Builds a batch of a table. `before` is the number of records before the group.
fn made(makers: &[Maker], table: usize, chunk: Chunk, before: u64) -> Made {
    let maker = makers.get(table).ok_or_else(|| ArrowError::SchemaError("no such table".to_owned()))?;
    Ok((table, maker.batch(chunk, before)?))
}

fn error(makers: &[Maker], stop: Stop, before: u64) -> ArrowError {
    let place = match stop {
        Stop::Value { table, .. } => table,
        _ => 0,
    };
    match makers.get(place) {
        Some(maker) => maker.error(stop, before),
        None => ArrowError::SchemaError("no such table".to_owned()),
    }
}

impl Maker {
    fn new(table: Arc<RecordTable>, wanted: &[usize]) -> Result<Self> {
        let schema = table.schema.project(wanted).map_err(|e| Error::new(&table.source.path, e))?;
        let number = wanted.iter().position(|&column| table.lead.get(column) == Some(&Lead::Number));
        Ok(Self { table, schema: Arc::new(schema), number })
    }

    /// Builds a batch. `before` is the number of records before the group.
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
            Stop::Value { record, field, fault, .. } => Error::new(
                &source.path,
                format!(
                    "record {} ({}), field {field}: {fault}; to read the value unconverted, open the trace with stored values",
                    before + record,
                    self.table.name
                ),
            ),
            Stop::Arrow(error) => return error,
            Stop::Unwanted => Error::new(&source.path, "the receiver has stopped reading"),
        };
        ArrowError::ExternalError(Box::new(error))
    }
}

/// Adds `before` to record numbers.
fn moved(numbers: &ArrayRef, before: u64) -> ArrayRef {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int64Type;
    let numbers = numbers.as_primitive_opt::<Int64Type>();
    let values = numbers.into_iter().flat_map(|numbers| numbers.values().iter());
    Arc::new(values.map(|number| number.wrapping_add_unsigned(before)).collect::<Int64Array>())
}

impl Iterator for Pass {
    type Item = Made;

    fn next(&mut self) -> Option<Made> {
        let next = match self {
            Self::Here(here) => {
                let Here { trace, reading, makers } = &mut **here;
                match reading.next_chunk(trace) {
                    Ok(chunk) => chunk.map(|(table, chunk)| made(makers, table, chunk, 0)),
                    Err(stop) => Some(Err(error(makers, stop, 0))),
                }
            }
            Self::Threads(receiver) => receiver.recv().ok(),
            Self::Ended => None,
        };
        if !matches!(next, Some(Ok(_))) {
            *self = Self::Ended;
        }
        next
    }
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.limit == 0 {
            self.batches = Box::new(std::iter::empty());
        }
        let next = self.batches.next()?.map(|(_, batch)| batch);
        if let Ok(batch) = &next {
            self.limit = self.limit.saturating_sub(batch.num_rows() as u64);
        }
        Some(next)
    }
}

impl RecordBatchReader for BatchReader {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}
