//! The source of the rows of a trace table: a DataFusion `FileSource` whose files are traces.
//!
//! Engines divide large files into byte ranges. In a record table, a range contains the rows of the groups that begin
//! in it. A heap trace is read completely in the range that contains the first byte; its other ranges are empty.
//! Therefore, each row occurs exactly once, regardless of how files are divided.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray, types::Int32Type,
};
use arrow_schema::{DataType, Field, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, exec_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::StreamExt as _;
use metatf_arrow::{Batches, OpenOptions, Scan, Table as _};
use object_store::ObjectStore;
use object_store::path::Path as Location;
use tokio::sync::mpsc;

use crate::fetch::{Fetched, fetch};

/// Maximum number of batches that wait for the receiver.
const WAITING: usize = 2;

/// Name of the column that contains the trace name in heap tables.
const TRACE: &str = "trace";

/// Name of the column that contains the trace name in record tables, whose fields may have any other name.
const TRACE_OF_RECORDS: &str = "@trace";

/// A table that can be read from traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableName {
    /// A table of `docs/heap-tables.md`.
    Heap(String),
    /// Records of one type, in traces of any DTD, with an additional first column `@trace`.
    Records(String),
}

/// A trace table as a file source.
#[derive(Clone, Debug)]
pub struct TraceSource {
    table: TableName,
    /// The location to which trace names are relative.
    root: Location,
    schema: TableSchema,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
}

impl TraceSource {
    /// Creates a source of the table with this name and schema. The column `trace` contains the location of a trace
    /// relative to `root`.
    #[must_use]
    pub fn new(table: TableName, root: &Location, schema: TableSchema) -> Self {
        let projection = SplitProjection::unprojected(&schema);
        Self { table, root: root.clone(), schema, projection, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Returns the location to which trace names are relative.
    #[must_use]
    pub fn root(&self) -> &Location {
        &self.root
    }
}

impl FileSource for TraceSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let columns = self.projection.file_indices.clone();
        let opener = Opener { store, table: self.table.clone(), root: self.root.clone(), columns };
        ProjectionOpener::try_new(self.projection.clone(), Arc::new(opener), self.schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Ignores the batch size, because the tables determine it.
    fn with_batch_size(&self, _: usize) -> Arc<dyn FileSource> {
        Arc::new(self.clone())
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "trace"
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Opens the traces of one partition.
struct Opener {
    store: Arc<dyn ObjectStore>,
    table: TableName,
    root: Location,
    columns: Vec<usize>,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let byte = |at: i64| u64::try_from(at).unwrap_or(0);
        let bytes = file.range.as_ref().map_or(0..u64::MAX, |range| byte(range.start)..byte(range.end));
        if matches!(self.table, TableName::Heap(_)) && bytes.start > 0 {
            return Ok(Box::pin(async { Ok(futures::stream::empty().boxed()) }));
        }
        let location = file.object_meta.location;
        let name = name_of(&location, &self.root);
        let (store, table, columns) = (Arc::clone(&self.store), self.table.clone(), self.columns.clone());
        Ok(Box::pin(async move {
            let fetched = fetch(&*store, &location).await?;
            let (sender, batches) = mpsc::channel(WAITING);
            // The scan waits for the thread that reads the trace. The thread ends when its receiver is gone.
            tokio::task::spawn_blocking(move || read(&fetched, &table, &columns, bytes, &name, &sender));
            Ok(futures::stream::unfold(batches, async |mut batches| Some((batches.recv().await?, batches))).boxed())
        }))
    }
}

/// Returns the location of a trace relative to the root.
pub(crate) fn name_of(location: &Location, root: &Location) -> String {
    match location.prefix_match(root) {
        Some(parts) => parts.collect::<Location>().to_string(),
        None => location.to_string(),
    }
}

/// Reads a table of a trace, or the part of it in a byte range, and sends its batches. Errors contain the name of the
/// trace.
fn read(
    fetched: &Fetched,
    table: &TableName,
    columns: &[usize],
    bytes: Range<u64>,
    name: &str,
    sender: &mpsc::Sender<Result<RecordBatch>>,
) {
    let failed = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let path = format!("{}: ", fetched.path().display());
        exec_datafusion_err!("{name}: {}", text.strip_prefix(&path).unwrap_or(&text))
    };
    let batches = match table {
        TableName::Heap(table) => {
            eprintln!("{table} of {name}");
            heap_table(fetched, table, columns)
        }
        TableName::Records(table) => {
            eprintln!("{table} of {name}, bytes {} to {}", bytes.start, bytes.end);
            records(fetched, table, columns, bytes)
        }
    };
    let batches = match batches {
        Ok(batches) => batches,
        Err(error) => return drop(sender.blocking_send(Err(failed(&error)))),
    };
    for batch in batches {
        let batch = batch.map_err(|error| failed(&metatf_arrow::message(&error))).and_then(|batch| match table {
            TableName::Heap(_) => named(batch, name),
            TableName::Records(_) => with_name(&batch, columns, name),
        });
        let is_last = batch.is_err();
        if sender.blocking_send(batch).is_err() || is_last {
            return;
        }
    }
}

/// Reads a heap table on a single thread, because several traces are read at the same time.
fn heap_table(fetched: &Fetched, table: &str, columns: &[usize]) -> metatf_arrow::Result<Batches> {
    let none = || metatf_arrow::Error::new(fetched.path(), format!("there is no table {table}"));
    let tables = hatf_arrow::open(&[fetched.path()])?;
    let scan = Scan { columns: Some(columns.to_vec()), threads: 1, ..Scan::default() };
    tables.get(table).ok_or_else(none)?.scan(&scan)
}

/// Reads a record table without the column of the trace name.
fn records(fetched: &Fetched, table: &str, columns: &[usize], bytes: Range<u64>) -> metatf_arrow::Result<Batches> {
    let none = || metatf_arrow::Error::new(fetched.path(), format!("there is no table {table}"));
    let tables = metatf_arrow::open_tables(fetched.path(), &OpenOptions::default())?;
    let place = tables.all().iter().position(|known| known.name() == table).ok_or_else(none)?;
    let columns: Vec<usize> = columns.iter().filter_map(|column| column.checked_sub(1)).collect();
    tables.scan_range(place, Some(&columns), bytes, 1)
}

/// Returns the columns of a record table, preceded by the column of the trace name.
pub(crate) fn columns_of(table: &Schema) -> Schema {
    Schema::new(std::iter::once(column_of_name()).chain(table.fields().iter().cloned()).collect::<Vec<_>>())
}

fn column_of_name() -> Arc<Field> {
    let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(Field::new(TRACE_OF_RECORDS, kind, false))
}

/// Adds the name of the trace to records if the name is requested.
fn with_name(batch: &RecordBatch, columns: &[usize], name: &str) -> Result<RecordBatch> {
    let (schema, mut fields, mut arrays) = (batch.schema(), Vec::new(), Vec::new());
    let mut read = batch.columns().iter().zip(schema.fields());
    for column in columns {
        if *column == 0 {
            fields.push(column_of_name());
            arrays.push(names(batch.num_rows(), name)?);
        } else if let Some((array, field)) = read.next() {
            fields.push(Arc::clone(field));
            arrays.push(Arc::clone(array));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(DataFusionError::from)
}

fn names(rows: usize, name: &str) -> Result<ArrayRef> {
    let (keys, names) = (Int32Array::from_value(0, rows), StringArray::from_iter_values([name]));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(names))?))
}

/// Replaces the path of the file with the name of the trace.
fn named(batch: RecordBatch, name: &str) -> Result<RecordBatch> {
    let schema = batch.schema();
    let Ok(place) = schema.index_of(TRACE) else { return Ok(batch) };
    let names = names(batch.num_rows(), name)?;
    let mut arrays = batch.columns().to_vec();
    if let Some(array) = arrays.get_mut(place) {
        *array = names;
    }
    RecordBatch::try_new(schema, arrays).map_err(DataFusionError::from)
}
