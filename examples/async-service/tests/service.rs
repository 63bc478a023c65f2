//! Checks that no record is lost with many senders, and when a signal ends the service.
#![allow(clippy::unwrap_used, reason = "tests")]

use example_async_service::service::{Request, Trace};
use example_async_service::trace_log::TraceLog;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Reads a complete trace, and checks that the requests of each worker are numbered from 0. Returns their total number.
fn requests(path: &Path) -> u64 {
    let mut next = [0; 256];
    let mut trace = Trace::open(path).unwrap();
    let mut total = 0;
    trace
        .only::<Request>()
        .for_each(|request| {
            let next = &mut next[usize::try_from(request.worker).unwrap()];
            // A later run of the service counts from 0 again.
            assert!(request.number == *next || request.number == 0, "{request:?} follows number {next}");
            *next = request.number + 1;
            total += 1;
        })
        .unwrap();
    assert!(trace.warnings().is_empty(), "{:?}", trace.warnings());
    assert_eq!(trace.header().nrecords, total);
    total
}

#[tokio::test]
async fn many_tasks_wait_for_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.mtf");
    let (log, writer) = TraceLog::open(&path).unwrap();
    let tasks = (0..16).map(|worker| {
        let log = log.clone();
        tokio::spawn(async move {
            for number in 0..5000 {
                log.request(Request { time: number, worker, number, took: 1 }).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    drop(log);
    assert_eq!(writer.await.unwrap().unwrap(), 80_000);
    assert_eq!(requests(&path), 80_000);
}

#[test]
fn a_signal_ends_the_service_after_all_records_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.mtf");
    let mut total = 0;
    for signal in ["-TERM", "-INT"] {
        let mut service = Command::new(env!("CARGO_BIN_EXE_example-async-service"));
        let mut service = service.arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(service.stdout.take().unwrap());
        let mut text = String::new();
        output.read_line(&mut text).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(Command::new("kill").args([signal, &service.id().to_string()]).status().unwrap().success());
        output.read_to_string(&mut text).unwrap();
        assert!(service.wait().unwrap().success(), "{signal}: {text}");
        let all = requests(&path);
        assert!(all > total, "{signal}: {all} requests after {total}");
        total = all;
        assert_eq!(text, format!("answering requests\nthe trace contains {all} requests\n"));
    }
}
