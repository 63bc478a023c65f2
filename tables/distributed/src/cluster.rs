//! Runs queries on workers, and retries a query if some workers are gone.

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

/// Time limit for connecting to a worker.
const PATIENCE: Duration = Duration::from_secs(5);

/// Workers, and the fleet that they read.
#[derive(Clone, Debug)]
pub struct Cluster {
    workers: Vec<Url>,
    folder: PathBuf,
    token: Option<Token>,
}

/// The result of a query.
#[derive(Debug)]
pub struct Answer {
    /// Rows of the result.
    pub batches: Vec<RecordBatch>,
    /// The errors of previous attempts, with the number of workers in each.
    pub failed: Vec<(usize, String)>,
    /// Number of workers that computed the result.
    pub workers: usize,
}

/// The reachable workers.
struct Living(Vec<Url>);

#[async_trait]
impl WorkerResolver for Living {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

impl Cluster {
    /// Creates a cluster of workers at these addresses (`http://HOST:PORT`). All workers must have access to the files
    /// of the fleet in the directory `folder`.
    #[must_use]
    pub fn new(workers: Vec<Url>, folder: &Path) -> Self {
        Self { workers, folder: folder.to_owned(), token: None }
    }

    /// Sets the token to send with queries.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Runs a query. If it fails and a worker has disappeared in the meantime, runs the query again from the beginning
    /// on the remaining workers. No row is returned until all rows have arrived, so a retry cannot return duplicates.
    ///
    /// # Errors
    /// Returns an error if the query is invalid, a trace is corrupt, or no workers are left.
    pub async fn query(&self, query: &str) -> Result<Answer> {
        let mut failed = Vec::new();
        let mut workers = living(&self.workers).await;
        loop {
            if workers.is_empty() {
                let before =
                    failed.last().map(|(_, error)| format!("; the previous error was: {error}")).unwrap_or_default();
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
            // Building the rows of a trace costs much more than reading its bytes, so distribute the traces over all
            // workers.
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

/// Returns the workers that accept a connection.
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
