//! A table of all traces below an address.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::exec_datafusion_err;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::{ListingTableUrl, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt as _;
use metatf_arrow::OpenOptions;
use object_store::ObjectMeta;

use crate::fetch::fetch;
use crate::source::columns_of;
use crate::{TableName, TraceSource};

/// Minimum size of a trace range that is read separately, in bytes.
const RANGE: u64 = 1 << 20;

/// A table over the traces that were below an address when it was opened.
#[derive(Debug)]
pub struct TraceTable {
    name: TableName,
    url: ListingTableUrl,
    schema: SchemaRef,
    traces: Vec<ObjectMeta>,
}

impl TraceTable {
    /// Finds the traces (`*.mtf`) below an address, such as a directory or `file:///traces/`, sorted by name.
    ///
    /// # Errors
    /// Returns an error if the table does not exist, the object store is unknown or cannot be listed, or there are no
    /// traces.
    pub async fn open(session: &dyn Session, name: &str, url: &str) -> Result<Self> {
        let none = || exec_datafusion_err!("there is no table {name} of heap traces");
        let schema = hatf_arrow::open::<&str>(&[]).ok().and_then(|tables| tables.get(name)).ok_or_else(none)?.schema();
        let (url, traces) = list(session, url).await?;
        Ok(Self { name: TableName::Heap(name.to_owned()), url, schema, traces })
    }

    /// Returns the record tables of the first trace below an address that can be opened, by name. The tables cover all
    /// traces there, which must have the same DTD. Errors of other traces are reported by the queries that read them.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open). If no trace can be opened, returns the error of the first
    /// trace.
    pub async fn open_records(session: &dyn Session, url: &str) -> Result<Vec<(String, Self)>> {
        let (url, traces) = list(session, url).await?;
        let store = session.runtime_env().object_store(&url)?;
        let mut first = None;
        for trace in &traces {
            let fetched = fetch(&*store, &trace.location).await?;
            let tables = match metatf_arrow::open(fetched.path(), &OpenOptions::default()) {
                Ok(tables) => tables,
                Err(error) => {
                    first.get_or_insert_with(|| exec_datafusion_err!("{}: {error}", trace.location));
                    continue;
                }
            };
            let all = tables.iter().map(|table| {
                let (name, schema) = (table.name().to_owned(), Arc::new(columns_of(&table.schema())));
                let kind = TableName::Records(name.clone());
                (name, Self { name: kind, url: url.clone(), schema, traces: traces.clone() })
            });
            return Ok(all.collect());
        }
        Err(first.unwrap_or_else(|| exec_datafusion_err!("{url}: no traces found")))
    }

    /// Returns the ranges of a trace that are read separately. A heap trace is a single range.
    fn ranges(&self, trace: &ObjectMeta, partitions: usize) -> Vec<PartitionedFile> {
        let file = PartitionedFile::from(trace.clone());
        let ranges = match self.name {
            TableName::Heap(_) => 1,
            TableName::Records(_) => (trace.size / RANGE).clamp(1, partitions.max(1) as u64),
        };
        let end = |range: u64| i64::try_from(u128::from(trace.size) * u128::from(range) / u128::from(ranges));
        let ends = (0..ranges).filter_map(|range| Some((end(range).ok()?, end(range + 1).ok()?)));
        ends.map(|(from, to)| file.clone().with_range(from, to)).collect()
    }
}

/// Returns the traces below an address, sorted by name.
async fn list(session: &dyn Session, url: &str) -> Result<(ListingTableUrl, Vec<ObjectMeta>)> {
    let url = ListingTableUrl::parse(url)?;
    let store = session.runtime_env().object_store(&url)?;
    let mut traces: Vec<_> = store.list(Some(url.prefix())).try_collect().await?;
    traces.retain(|trace| trace.location.extension() == Some("mtf"));
    if traces.is_empty() {
        return Err(exec_datafusion_err!("{url}: no traces (*.mtf) found"));
    }
    traces.sort_by(|a, b| a.location.cmp(&b.location));
    Ok((url, traces))
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = TraceSource::new(self.name.clone(), self.url.prefix(), TableSchema::from(self.schema()));
        let wanted = session.config().target_partitions().max(1);
        let files: Vec<_> = self.traces.iter().flat_map(|trace| self.ranges(trace, wanted)).collect();
        // Similar traces are adjacent in the list. Distribute them in turn, so that no partition receives all large
        // traces.
        let partitions = wanted.clamp(1, files.len().max(1));
        let mut groups = vec![Vec::new(); partitions];
        for (number, file) in files.into_iter().enumerate() {
            if let Some(group) = groups.get_mut(number % partitions) {
                group.push(file);
            }
        }
        let files = FileScanConfigBuilder::new(self.url.object_store(), Arc::new(source))
            .with_file_groups(groups.into_iter().map(FileGroup::new).collect())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(files))
    }
}
