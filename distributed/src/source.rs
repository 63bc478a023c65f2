//! Where DataFusion gets the rows of a table of traces from: a `FileSource` whose files are traces.
//!
//! A file may come in byte ranges, as engines cut large ones. A trace is read as a whole by the one who has its first byte; the other ranges of it
//! are empty. So each row comes once, however files are cut.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, types::Int32Type};
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
use hatf::calls::{Folding, Places};
use hatf::stacks::Stacks;
use hatf_arrow::Names;
use metatf_arrow::{Scan, Table as _};
use object_store::ObjectStore;
use object_store::path::Path as Location;
use tokio::sync::mpsc;

use crate::fetch::{Fetched, fetch};

/// Batches that wait to be taken.
const WAITING: usize = 2;

/// A table of traces as a source of files.
#[derive(Clone, Debug)]
pub struct TraceSource {
    /// The name of the table.
    table: String,
    /// Below what traces are named.
    root: Location,
    schema: TableSchema,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
}

impl TraceSource {
    /// A source of the table of this name and schema. The column `trace` has the location of a trace below `root`.
    #[must_use]
    pub fn new(table: &str, root: &Location, schema: TableSchema) -> Self {
        let projection = SplitProjection::unprojected(&schema);
        Self {
            table: table.to_owned(),
            root: root.clone(),
            schema,
            projection,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The name of its table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Below what its traces are named.
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

    /// Batches have as many rows as the tables make.
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
    table: String,
    root: Location,
    columns: Vec<usize>,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        if file.range.is_some_and(|range| range.start > 0) {
            return Ok(Box::pin(async { Ok(futures::stream::empty().boxed()) }));
        }
        let location = file.object_meta.location;
        let name = name_of(&location, &self.root);
        let (store, table, columns) = (Arc::clone(&self.store), self.table.clone(), self.columns.clone());
        Ok(Box::pin(async move {
            let fetched = fetch(&*store, &location).await?;
            let (sender, batches) = mpsc::channel(WAITING);
            // A scan waits for the thread that reads the trace; it ends when nobody takes its batches.
            tokio::task::spawn_blocking(move || read(&fetched, &table, columns, &name, &sender));
            Ok(futures::stream::unfold(batches, async |mut batches| Some((batches.recv().await?, batches))).boxed())
        }))
    }
}

/// The location of a trace below the root.
pub(crate) fn name_of(location: &Location, root: &Location) -> String {
    match location.prefix_match(root) {
        Some(parts) => parts.collect::<Location>().to_string(),
        None => location.to_string(),
    }
}

/// Names functions as traces do, and gives each stack the program's own.
struct OwnNames;

impl Names for OwnNames {
    fn own_functions(&self, stacks: &Stacks) -> Vec<String> {
        Places::own_functions(stacks, &Folding::default())
    }
}

/// Reads a table of a trace, and sends its batches. An error names the trace.
fn read(fetched: &Fetched, table: &str, columns: Vec<usize>, name: &str, sender: &mpsc::Sender<Result<RecordBatch>>) {
    eprintln!("{table} of {name}");
    let failed = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let path = format!("{}: ", fetched.path().display());
        exec_datafusion_err!("{name}: {}", text.strip_prefix(&path).unwrap_or(&text))
    };
    let batches = hatf_arrow::open(&[fetched.path()]).and_then(|tables| {
        let none = || metatf_arrow::Error::new(fetched.path(), format!("there is no table {table}"));
        let table = tables.with_names(Arc::new(OwnNames)).get(table).ok_or_else(none)?;
        // Several traces are read at once, so each by one thread.
        table.scan(&Scan { columns: Some(columns), threads: 1, ..Scan::default() })
    });
    let batches = match batches {
        Ok(batches) => batches,
        Err(error) => return drop(sender.blocking_send(Err(failed(&error)))),
    };
    for batch in batches {
        let batch = batch.map_err(|error| failed(&metatf_arrow::message(&error))).and_then(|batch| named(batch, name));
        let is_last = batch.is_err();
        if sender.blocking_send(batch).is_err() || is_last {
            return;
        }
    }
}

/// Gives rows the name of their trace in place of the path of the file.
fn named(batch: RecordBatch, name: &str) -> Result<RecordBatch> {
    let schema = batch.schema();
    let Ok(place) = schema.index_of("trace") else { return Ok(batch) };
    let keys = Int32Array::from_value(0, batch.num_rows());
    let names: ArrayRef = Arc::new(StringArray::from_iter_values([name]));
    let names: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names)?);
    let mut arrays = batch.columns().to_vec();
    if let Some(array) = arrays.get_mut(place) {
        *array = names;
    }
    RecordBatch::try_new(schema, arrays).map_err(DataFusionError::from)
}
