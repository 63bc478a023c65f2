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
use object_store::ObjectMeta;

use crate::TraceSource;

/// One of the tables of heap traces, over the traces that lay below an address when it was opened.
#[derive(Debug)]
pub struct TraceTable {
    name: String,
    url: ListingTableUrl,
    schema: SchemaRef,
    traces: Vec<ObjectMeta>,
}

impl TraceTable {
    /// Finds the traces (`*.mtf`) below an address, such as a folder or `file:///traces/`, in the order of their names.
    ///
    /// # Errors
    /// There is no such table; no store is known for the address, or it cannot be listed; no traces are there.
    pub async fn open(session: &dyn Session, name: &str, url: &str) -> Result<Self> {
        let none = || exec_datafusion_err!("there is no table {name} of heap traces");
        let schema = hatf_arrow::open::<&str>(&[]).ok().and_then(|tables| tables.get(name)).ok_or_else(none)?.schema();
        let url = ListingTableUrl::parse(url)?;
        let store = session.runtime_env().object_store(&url)?;
        let mut traces: Vec<_> = store.list(Some(url.prefix())).try_collect().await?;
        traces.retain(|trace| trace.location.extension() == Some("mtf"));
        if traces.is_empty() {
            return Err(exec_datafusion_err!("{url}: there are no traces (*.mtf)"));
        }
        traces.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(Self { name: name.to_owned(), url, schema, traces })
    }
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
        let source = TraceSource::new(&self.name, self.url.prefix(), TableSchema::from(self.schema()));
        // Traces of one class lie side by side: dealt out one by one, no partition has all the large ones.
        let partitions = session.config().target_partitions().clamp(1, self.traces.len());
        let mut groups = vec![Vec::new(); partitions];
        for (number, trace) in self.traces.iter().enumerate() {
            if let Some(group) = groups.get_mut(number % partitions) {
                group.push(PartitionedFile::from(trace.clone()));
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
