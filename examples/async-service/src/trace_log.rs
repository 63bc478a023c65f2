//! Sends records from asynchronous tasks to a writer on a thread for blocking work.

use crate::service::{Request, Writer};
use metatf::container::AppendFile;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Number of records that can wait for the writer. If it is reached, tasks wait until the writer has caught up.
const WAITING: usize = 1024;
/// Number of records that the writer receives at a time.
const BATCH: usize = 256;
/// Time without records after which the writer flushes, because it may be idle for longer.
const IDLE: Duration = Duration::from_secs(1);

/// A handle through which tasks add records to the trace. The trace is finished after all clones have been dropped.
#[derive(Clone, Debug)]
pub struct TraceLog(mpsc::Sender<Request>);

/// The writer failed, so no more records can be written. [`TraceLog::open`] returns a task with the reason.
#[derive(Debug)]
pub struct WriterFailed;

impl TraceLog {
    /// Opens a trace and starts its writer. The task finishes the trace and returns the number of records.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or is not a trace of this service.
    pub fn open(path: &Path) -> metatf::Result<(Self, JoinHandle<metatf::Result<u64>>)> {
        let trace = Writer::new(AppendFile::open(path)?)?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let runtime = Handle::current();
        Ok((Self(sender), tokio::task::spawn_blocking(move || write(&runtime, receiver, trace))))
    }

    /// Adds a record. If the channel is full, waits until there is space.
    ///
    /// # Errors
    /// Returns an error if the writer has failed.
    pub async fn request(&self, request: Request) -> Result<(), WriterFailed> {
        self.0.send(request).await.map_err(|_| WriterFailed)
    }
}

// region: write
/// Writes records until all senders have been dropped.
fn write(runtime: &Handle, mut records: mpsc::Receiver<Request>, mut trace: Writer<AppendFile>) -> metatf::Result<u64> {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        match runtime.block_on(async { timeout(IDLE, records.recv_many(&mut batch, BATCH)).await }) {
            Ok(0) => break,
            Ok(_) => batch.drain(..).try_for_each(|request| trace.request(&request))?,
            Err(_) => trace.flush()?,
        }
    }
    let written = trace.records_written();
    trace.finish()?;
    Ok(written)
}
// endregion
