//! Controls access to a worker, and restricts the files that it reads.
//!
//! Plans arrive over the network, and DataFusion also decodes scans of arbitrary files and sinks. Therefore, each plan
//! is checked before it runs: it may only read traces and CSV tables below one directory, and must not write.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use datafusion::common::exec_datafusion_err;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerPlanRewriteHandler};
use object_store::path::Path as Location;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::TraceSource;

/// Minimum length of a token in bytes. Shorter tokens can be guessed.
const LEAST: usize = 16;

/// The header that contains the token.
const HEADER: &str = "authorization";

/// A secret shared by workers and their clients.
#[derive(Clone)]
pub struct Token(Arc<str>);

/// Omits the text of the token, to keep it out of logs.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The access rules of a worker.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The directory as specified, and with symbolic links resolved.
    roots: Vec<Location>,
    token: Option<Token>,
}

impl Token {
    /// Creates a token, which must consist of at least 16 visible ASCII characters.
    ///
    /// # Errors
    /// Returns an error if the token is shorter or contains other characters.
    pub fn new(text: &str) -> Result<Self> {
        if text.len() < LEAST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(exec_datafusion_err!("the token must have at least {LEAST} visible ASCII characters"));
        }
        Ok(Self(text.into()))
    }

    /// Returns the headers of a request with this token.
    pub(crate) fn headers(&self) -> Result<MetadataMap> {
        let mut headers = MetadataMap::new();
        let value = format!("Bearer {}", self.0)
            .parse()
            .map_err(|_| exec_datafusion_err!("the token cannot be sent in a header"))?;
        headers.insert(HEADER, value);
        Ok(headers)
    }

    /// Returns whether a request contains the token. The duration of the check does not reveal how much of a wrong
    /// token is correct.
    fn is_in(&self, headers: &MetadataMap) -> bool {
        let given = headers.get(HEADER).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let (given, wanted) = (given.unwrap_or_default().as_bytes(), self.0.as_bytes());
        let differs = given.iter().zip(wanted).fold(0, |differs, (a, b)| differs | (a ^ b));
        given.len() == wanted.len() && differs == 0
    }
}

impl Guard {
    /// Allows plans to read files below a directory for all clients that know the token. Without a token, the worker
    /// can only listen on loopback addresses.
    ///
    /// # Errors
    /// Returns an error if the directory does not exist.
    pub fn new(folder: &Path, token: Option<Token>) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| exec_datafusion_err!("{}: {error}", folder.display());
        let named = std::path::absolute(folder).map_err(|error| wrong(&error))?;
        let real = folder.canonicalize().map_err(|error| wrong(&error))?;
        let roots =
            [named, real].into_iter().map(|path| Location::from_absolute_path(path).map_err(|error| wrong(&error)));
        Ok(Self { roots: roots.collect::<Result<_>>()?, token })
    }

    /// Returns the token.
    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Checks the address that a worker listens on.
    ///
    /// # Errors
    /// Returns an error if other machines can reach the address and there is no token.
    pub(crate) fn listens(&self, address: SocketAddr) -> Result<()> {
        if self.token.is_some() || address.ip().is_loopback() {
            return Ok(());
        }
        Err(exec_datafusion_err!(
            "{address}: other machines can reach this address, so a token is required: set METATF_WORKER_TOKEN, or listen on 127.0.0.1"
        ))
    }

    /// Checks a request.
    #[expect(clippy::result_large_err, reason = "tonic's")]
    pub(crate) fn admits(&self, request: Request<()>) -> Result<Request<()>, Status> {
        match &self.token {
            Some(token) if !token.is_in(request.metadata()) => {
                Err(Status::unauthenticated("the worker's token is missing or incorrect"))
            }
            _ => Ok(request),
        }
    }

    /// Checks a plan and its children.
    fn check(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
        if plan.name() == "DataSinkExec" {
            return Err(exec_datafusion_err!("a worker does not write files"));
        }
        let scan = plan.downcast_ref::<DataSourceExec>();
        if let Some(files) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) {
            self.check_files(files)?;
        }
        plan.children().into_iter().try_for_each(|child| self.check(child))
    }

    fn check_files(&self, files: &FileScanConfig) -> Result<()> {
        let source = files.file_source();
        if source.downcast_ref::<TraceSource>().is_none() && source.file_type() != "csv" {
            return Err(exec_datafusion_err!(
                "a worker reads only traces and CSV tables, but the plan reads {}",
                source.file_type()
            ));
        }
        if files.object_store_url.as_str() != "file:///" {
            return Err(exec_datafusion_err!("a worker reads only local files, not {}", files.object_store_url));
        }
        let is_below = |location: &Location| self.roots.iter().any(|root| location.prefix_matches(root));
        let mut all = files.file_groups.iter().flat_map(|group| group.iter());
        match all.find(|file| !is_below(&file.object_meta.location)) {
            Some(file) => Err(exec_datafusion_err!("/{} is outside the worker's directory", file.object_meta.location)),
            None => Ok(()),
        }
    }
}

impl WorkerPlanRewriteHandler for Guard {
    fn rewrite_worker_plan(&self, event: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
        self.check(&event.plan)?;
        Ok(WorkerPlanRewriteEventResponse::new(event.plan))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::{CsvSource, FileScanConfigBuilder};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::prelude::SessionContext;

    use super::*;

    /// Plans that a client of this project never sends, but that DataFusion decodes.
    #[tokio::test]
    async fn other_plans_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let guard = Guard::new(folder.path(), None).unwrap();
        let context = SessionContext::new();
        let write = format!("copy (select 1) to '{}/out.csv'", folder.path().display());
        let mut plans =
            vec![(context.sql(&write).await.unwrap().create_physical_plan().await.unwrap(), "does not write")];
        let inside = folder.path().join("a.csv").display().to_string();
        for (store, path, refused) in [
            ("file:///", inside.as_str(), ""),
            ("file:///", "/etc/passwd", "etc/passwd is outside the worker's directory"),
            ("s3://bucket", &inside, "only local files, not s3://bucket"),
        ] {
            let schema = Arc::new(arrow_schema::Schema::empty());
            let scan =
                FileScanConfigBuilder::new(ObjectStoreUrl::parse(store).unwrap(), Arc::new(CsvSource::new(schema)))
                    .with_file(PartitionedFile::new(path, 10))
                    .build();
            plans.push((DataSourceExec::from_data_source(scan), refused));
        }
        for (plan, refused) in plans {
            match guard.check(&plan) {
                Ok(()) => assert_eq!(refused, ""),
                Err(error) => assert!(!refused.is_empty() && error.to_string().contains(refused), "{error}"),
            }
        }
    }
}
