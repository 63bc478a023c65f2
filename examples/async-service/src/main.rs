//! `example-async-service [TRACE [REQUESTS]]`: answers requests until it is interrupted or terminated, or until each
//! worker has answered this many requests, and appends a record of each request to the trace. Without arguments, each
//! worker answers 100 requests, and the trace is temporary.

use example_async_service::service::Request;
use example_async_service::trace_log::{TraceLog, WriterFailed};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Number of tasks that answer requests.
const WORKERS: u64 = 8;

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[..] {
        [_] => {
            let path = std::env::temp_dir().join(format!("async-service-{}.mtf", std::process::id()));
            serve(&path, 100).await?;
            Ok(std::fs::remove_file(path)?)
        }
        [_, path] => serve(Path::new(path), u64::MAX).await,
        [_, path, requests] => serve(Path::new(path), requests.parse()?).await,
        _ => Err("usage: example-async-service [TRACE [REQUESTS]]".into()),
    }
}

/// Runs the service until a signal, or until each worker has answered this many requests.
async fn serve(path: &Path, requests: u64) -> Result {
    // region: service
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (log, writer) = TraceLog::open(path)?;
    let (stop, stopped) = watch::channel(());
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        workers.spawn(answer(worker, requests, start, log.clone(), stopped.clone()));
    }
    // The trace is finished when the last worker has dropped its clone.
    drop(log);
    println!("answering requests");
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
        () = async { while workers.join_next().await.is_some() {} } => {}
    }
    // Each worker answers its current request, and the writer writes all records that are still in the channel.
    drop(stop);
    while workers.join_next().await.is_some() {}
    println!("the trace contains {} requests", writer.await??);
    // endregion
    Ok(())
}

/// Answers requests until the service stops.
async fn answer(
    worker: u64,
    requests: u64,
    start: Instant,
    log: TraceLog,
    stopped: watch::Receiver<()>,
) -> Result<(), WriterFailed> {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    // The channel is closed when the service stops.
    for number in (0..requests).take_while(|_| stopped.has_changed().is_ok()) {
        let begun = start.elapsed();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let time = start.elapsed();
        log.request(Request { time: micros(time), worker, number, took: micros(time - begun) }).await?;
    }
    Ok(())
}
