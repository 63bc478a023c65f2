//! Sessions of workers and clients, and sessions without workers.

use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider as _};
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt as _, Worker, WorkerQueryContext};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::interceptor::InterceptedService;

use crate::{Guard, TraceCodec, TraceTable};

/// Creates a session that reads traces in this process, without workers, on up to `threads` threads.
#[must_use]
pub fn in_process(threads: usize) -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads))
}

/// Registers the tables of the traces below `FOLDER/traces` and the tables `FOLDER/*.csv` in a session. Record tables
/// are in the schema `records`: `records.malloc`.
///
/// # Errors
/// Returns an error if there are no traces, or if a file is not CSV.
pub async fn register(session: &SessionContext, folder: &Path) -> Result<()> {
    let traces = format!("{}/", folder.join("traces").display());
    for name in hatf_arrow::Tables::names() {
        let table = TraceTable::open(&session.state(), name, &traces).await?;
        session.register_table(name, Arc::new(table))?;
    }
    let records = MemorySchemaProvider::new();
    for (name, table) in TraceTable::open_records(&session.state(), &traces).await? {
        records.register_table(name, Arc::new(table))?;
    }
    let catalog = session.catalog("datafusion").ok_or_else(|| exec_datafusion_err!("the session has no catalog"))?;
    catalog.register_schema("records", Arc::new(records))?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some("csv"), Some(name)) =
            (path.extension().and_then(|e| e.to_str()), path.file_stem().and_then(|n| n.to_str()))
        {
            session.register_csv(name, &path.display().to_string(), CsvReadOptions::new()).await?;
        }
    }
    Ok(())
}

/// Serves all clients that the guard admits at this address, until the process ends.
///
/// # Errors
/// Returns an error if the guard forbids the address, or if the server fails.
pub async fn serve(listener: TcpListener, guard: Guard) -> Result<()> {
    guard.listens(listener.local_addr()?)?;
    let admits = guard.clone();
    let worker = Worker::from_session_builder(move |context: WorkerQueryContext| {
        let guard = guard.clone();
        async move {
            let builder = SessionStateBuilder::with_distributed_user_codec(context.builder, TraceCodec);
            // Workers also send requests to each other.
            let builder = match guard.token() {
                Some(token) => builder.with_distributed_passthrough_headers(token.headers()?.into_headers())?,
                None => builder,
            };
            Ok(builder.with_distributed_worker_plan_rewrite_handler(guard).build())
        }
    });
    tonic::transport::Server::builder()
        .add_service(InterceptedService::new(worker.into_worker_server(), move |request| admits.admits(request)))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))
}
