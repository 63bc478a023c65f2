//! Counters of the agent, in Prometheus text format.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hatf_trace::{Error, Result};

/// Clock ticks per second of CPU times in `/proc`, which Linux fixes at 100 on all machines that `hatf` supports.
pub(super) const TICKS_PER_SECOND: u64 = 100;
/// Maximum number of clients at the same time. Further connections are closed.
const CLIENTS: usize = 8;
/// Maximum number of bytes of a request.
const REQUEST_MAX: usize = 8 << 10;
/// Timeout of a single read or write.
const WAIT: Duration = Duration::from_millis(500);
/// Maximum duration of a request.
const REQUEST_TIME: Duration = Duration::from_secs(2);

/// Reasons why a recording ended.
pub(super) const ENDS: [&str; 5] = ["process", "time", "cpu", "memory", "disk"];
/// Reasons why a recording failed.
pub(super) const FAILURES: [&str; 3] = ["start", "attach", "killed"];

/// The counters.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) active: AtomicU64,
    pub(super) started: AtomicU64,
    pub(super) ended: [AtomicU64; ENDS.len()],
    pub(super) failed: [AtomicU64; FAILURES.len()],
    pub(super) events: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) disk: AtomicU64,
    pub(super) cpu_ticks: AtomicU64,
    pub(super) memory: AtomicU64,
    pub(super) uploaded: AtomicU64,
    pub(super) uploads_failed: AtomicU64,
    pub(super) conversions_failed: AtomicU64,
}

impl Counters {
    /// Adds 1 to the counter of a reason.
    pub(super) fn count<const N: usize>(counters: &[AtomicU64; N], reasons: [&str; N], reason: &str) {
        for (counter, _) in counters.iter().zip(reasons).filter(|(_, known)| *known == reason) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counters in Prometheus text format.
    fn text(&self) -> String {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let cpu = number(&self.cpu_ticks) as f64 / TICKS_PER_SECOND as f64;
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP hatf_agent_{name} {help}\n# TYPE hatf_agent_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "hatf_agent_{name}{labels} {value}");
            }
        };
        let one = |value: f64| [(String::new(), value)];
        let of = |counter: &AtomicU64| one(number(counter) as f64);
        let by = |counters: &[AtomicU64], reasons: &[&str]| -> Vec<(String, f64)> {
            let labels = reasons.iter().map(|reason| format!("{{reason=\"{reason}\"}}"));
            labels.zip(counters.iter().map(|counter| number(counter) as f64)).collect()
        };
        metric("recordings", "gauge", "Active recordings.", &of(&self.active));
        metric("recordings_started_total", "counter", "Started recordings.", &of(&self.started));
        metric("recordings_ended_total", "counter", "Ended recordings.", &by(&self.ended, &ENDS));
        metric("recordings_failed_total", "counter", "Failed recordings.", &by(&self.failed, &FAILURES));
        metric("events_total", "counter", "Events in the traces of ended recordings.", &of(&self.events));
        metric("lost_events_total", "counter", "Lost events of ended recordings.", &of(&self.lost));
        metric("disk_bytes", "gauge", "Size of all files in the directory.", &of(&self.disk));
        metric("recorder_cpu_seconds_total", "counter", "CPU time of all recorders.", &one(cpu));
        metric("recorder_memory_bytes", "gauge", "Resident memory of all recorders.", &of(&self.memory));
        metric("uploads_total", "counter", "Uploaded files.", &of(&self.uploaded));
        metric("uploads_failed_total", "counter", "Failed attempts to upload a file.", &of(&self.uploads_failed));
        metric("conversions_failed_total", "counter", "Failed conversions.", &of(&self.conversions_failed));
        text
    }
}

/// Serves the counters at an address or at the path of a Unix socket.
pub(super) fn serve(address: &str, counters: &Arc<Counters>) -> Result<()> {
    let problem = || Error::system(address.to_owned());
    if address.contains('/') {
        let path = Path::new(address);
        // A killed agent leaves its socket.
        let is_socket = fs::symlink_metadata(path).is_ok_and(|of| of.file_type().is_socket());
        if is_socket && UnixStream::connect(path).is_err() {
            fs::remove_file(path).map_err(problem())?;
        }
        let listener = UnixListener::bind(path).map_err(problem())?;
        let accept = move || {
            let (client, _) = listener.accept()?;
            client.set_read_timeout(Some(WAIT))?;
            client.set_write_timeout(Some(WAIT))?;
            Ok(client)
        };
        start(accept, counters).map_err(problem())
    } else {
        let listener = TcpListener::bind(address).map_err(problem())?;
        let accept = move || {
            let (client, _) = listener.accept()?;
            client.set_read_timeout(Some(WAIT))?;
            client.set_write_timeout(Some(WAIT))?;
            Ok(client)
        };
        start(accept, counters).map_err(problem())
    }
}

fn start<C: Read + Write + Send + 'static>(
    accept: impl Fn() -> io::Result<C> + Send + 'static,
    counters: &Arc<Counters>,
) -> io::Result<()> {
    let (counters, clients) = (Arc::clone(counters), Arc::new(AtomicUsize::new(0)));
    let server = move || loop {
        let Ok(mut client) = accept() else {
            // Too many open files, for example.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        if clients.load(Ordering::Acquire) >= CLIENTS {
            continue;
        }
        clients.fetch_add(1, Ordering::AcqRel);
        let (counters, of_thread) = (Arc::clone(&counters), Arc::clone(&clients));
        let answering = move || {
            let _ = answer(&mut client, &counters);
            of_thread.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("metrics".into()).spawn(answering).is_err() {
            clients.fetch_sub(1, Ordering::AcqRel);
        }
    };
    thread::Builder::new().name("metrics".into()).spawn(server).map(drop)
}

/// Answers one request.
fn answer(client: &mut (impl Read + Write), counters: &Counters) -> io::Result<()> {
    let end = Instant::now() + REQUEST_TIME;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    let is_whole = loop {
        let length = client.read(&mut part)?;
        request.extend_from_slice(part.get(..length).unwrap_or_default());
        if request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            break true;
        }
        if length == 0 || request.len() > REQUEST_MAX || Instant::now() > end {
            break false;
        }
    };
    let (status, body) = if !is_whole {
        ("400 Bad Request", "expected an HTTP request of at most 8 KiB\n".to_owned())
    } else if request.starts_with(b"GET /metrics HTTP/1.") {
        ("200 OK", counters.text())
    } else {
        ("404 Not Found", "expected GET /metrics\n".to_owned())
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n");
    let length = body.len();
    write!(client, "{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")?;
    client.flush()
}
