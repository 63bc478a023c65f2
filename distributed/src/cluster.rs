//! Queries that workers answer, with another try where some are gone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{DistributedExt as _, SessionStateBuilderExt as _, WorkerResolver};
use tokio::net::TcpStream;
use url::Url;

use crate::{Token, TraceCodec, register};

/// How long a worker has to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Workers, and the fleet that they read.
#[derive(Clone, Debug)]
pub struct Cluster {
    workers: Vec<Url>,
    folder: PathBuf,
    token: Option<Token>,
}

/// The answer to a query.
#[derive(Debug)]
pub struct Answer {
    /// Its rows.
    pub batches: Vec<RecordBatch>,
    /// The error of each try before, with the number of workers that it had.
    pub failed: Vec<(usize, String)>,
    /// The workers that gave it.
    pub workers: usize,
}

/// Workers that are there.
struct Living(Vec<Url>);

#[async_trait]
impl WorkerResolver for Living {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

impl Cluster {
    /// Workers at these addresses (`http://HOST:PORT`), which all see the files of the fleet in `folder`.
    #[must_use]
    pub fn new(workers: Vec<Url>, folder: &Path) -> Self {
        Self { workers, folder: folder.to_owned(), token: None }
    }

    /// Asks with a token.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Asks a query. If it fails and a worker is gone meanwhile, it is asked again from the beginning, of those that are left: rows are given when all are
    /// there, so none comes twice.
    ///
    /// # Errors
    /// The query is wrong, a trace is damaged, or no workers are left.
    pub async fn query(&self, query: &str) -> Result<Answer> {
        let mut failed = Vec::new();
        let mut workers = living(&self.workers).await;
        loop {
            if workers.is_empty() {
                let before = failed.last().map(|(_, error)| format!("; before, {error}")).unwrap_or_default();
                return Err(exec_datafusion_err!("no worker accepts connections{before}"));
            }
            let error = match self.ask(&workers, query).await {
                Ok(batches) => return Ok(Answer { batches, failed, workers: workers.len() }),
                Err(error) => error,
            };
            let left = living(&workers).await;
            if left.len() == workers.len() {
                return Err(error);
            }
            failed.push((workers.len(), error.to_string()));
            workers = left;
        }
    }

    async fn ask(&self, workers: &[Url], query: &str) -> Result<Vec<RecordBatch>> {
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(SessionConfig::new().with_target_partitions(2))
            .with_distributed_worker_resolver(Living(workers.to_vec()))
            .with_distributed_user_codec(TraceCodec)
            .with_distributed_planner()
            // To make the rows of a trace is much more work than to read its bytes: all workers get some.
            .with_distributed_file_scan_config_bytes_per_partition(1)?;
        let state = match &self.token {
            Some(token) => state.with_distributed_passthrough_headers(token.headers()?.into_headers())?,
            None => state,
        };
        let state = state.build();
        let session = SessionContext::new_with_state(state);
        register(&session, &self.folder).await?;
        session.sql(query).await?.collect().await
    }
}

/// Those workers that accept a connection.
async fn living(workers: &[Url]) -> Vec<Url> {
    let mut living = Vec::new();
    for worker in workers {
        let address = (worker.host_str().unwrap_or_default().to_owned(), worker.port_or_known_default().unwrap_or(80));
        if matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_))) {
            living.push(worker.clone());
        }
    }
    living
}
