//! Additional sinks. A separate thread writes each sink's trace from a queue of batches, so that a slow or dead sink
//! delays nothing else.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use metatf::container::Forward;

use crate::clock::{Moment, wall_at};
use crate::encode::{Beginning, Encoder, Scene, write_places};
use crate::error::Error;
use crate::events::{Part, Place};
use crate::layout::{DROPPED, of_head};
use crate::settings::{Policy, SinkPlace};
use crate::sys;
use crate::trace_file::{TraceSink, create_own};

/// Maximum number of bytes of events in a sink's queue. An empty queue accepts a batch of any size.
const QUEUE_BYTES: u64 = 16 << 20;
/// Maximum time that `block` waits for room in the queue.
const WAIT: Duration = Duration::from_secs(1);
/// Maximum time to wait at the end for a sink that makes no progress. For a sink without the policy `block` that has made
/// no progress since a flush timed out, this is `WAIT`.
const END_WAIT: Duration = Duration::from_secs(10);
/// Maximum time to establish a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Number of bytes to write to a socket at a time.
const BUFFER: usize = 1 << 16;
/// Number of events after which the progress counter advances.
const STEP: usize = 1024;
/// Nanoseconds between two records that relate the clocks.
const SYNC_EVERY: u64 = 10_000_000_000;

/// The events that the drain collected in one pass.
pub(crate) struct Batch {
    pub(crate) parts: Vec<Part>,
    pub(crate) places: Vec<Place>,
    pub(crate) scene: Scene,
    /// The time of collection.
    pub(crate) now: Moment,
    /// The end of the strings that its events may refer to.
    pub(crate) strings_end: u64,
    /// The number of events dropped after these events, by thread.
    pub(crate) dropped: Vec<(u32, u64)>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.places.is_empty() && self.dropped.is_empty()
    }

    fn bytes(&self) -> u64 {
        let words: usize = self.parts.iter().map(|part| part.words.len()).sum();
        (8 * words + size_of::<Place>() * self.places.len()) as u64
    }

    /// Returns the thread and a count for each event. The count is 1, or the number of dropped events that the event
    /// reports.
    fn counts(&self) -> impl Iterator<Item = (u32, u64)> {
        let events = self.places.iter().filter_map(|place| {
            let part = self.parts.get(place.ring as usize)?;
            let (at, position) = (place.at as usize, part.from.wrapping_add(8 * u64::from(place.at)));
            let is_count = matches!(of_head(*part.words.get(at)?, position), Some((DROPPED, _)));
            Some((part.thread_at(place.at), if is_count { *part.words.get(at + 1)? } else { 1 }))
        });
        events.chain(self.dropped.iter().copied())
    }

    /// Returns the stamp of the first event.
    fn stamp(&self) -> u64 {
        self.places.first().map_or(self.now.stamp, |place| place.stamp)
    }
}

/// A message to a sink.
struct Message {
    batch: Arc<Batch>,
    /// Strings missing from the sink's trace.
    strings: Vec<u64>,
    /// The number of events dropped before this batch, by thread.
    dropped: BTreeMap<u32, u64>,
    bytes: u64,
}

/// The state shared between the sink's thread and the drain.
#[derive(Default)]
struct Shared {
    /// Bytes of queued events.
    held: AtomicU64,
    /// Counter that advances while the sink accepts data.
    progress: AtomicU64,
    /// Whether the sink could not be written.
    dead: AtomicBool,
}

/// A sink with a queue.
pub(crate) struct QueuedSink {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    /// The queue and its thread, or `None` for a sink of the flight recorder, which is written at the end.
    queue: Option<(Sender<Message>, JoinHandle<()>)>,
    kept: Option<(Beginning, TraceSink)>,
    shared: Arc<Shared>,
    /// Bytes of strings passed to the sink.
    strings: u64,
    /// The number of events dropped since the last batch that the sink accepted, by thread.
    dropped: BTreeMap<u32, u64>,
    /// Whether the queue had no room for the last batch. If so, the drain does not wait for room again.
    gave_up: bool,
    /// The value of the progress counter when a flush last timed out.
    stuck: Option<u64>,
}

impl QueuedSink {
    /// Starts a sink. Its thread first calls `mute`, so that its own events are not recorded.
    pub(crate) fn new(
        name: String,
        policy: Policy,
        trace: (Beginning, TraceSink),
        mute: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let (mut queue, mut kept) = (None, None);
        if policy == Policy::Overwrite {
            kept = Some(trace);
        } else {
            let (sender, receiver) = channel();
            let (theirs, called) = (Arc::clone(&shared), name.clone());
            let thread = std::thread::Builder::new().name("telemetry-sink".to_owned());
            let thread = thread.spawn(move || {
                mute();
                run(trace, &receiver, &theirs, &called);
            });
            let thread = thread.map_err(|error| Error::File("start a thread for", name.clone().into(), error))?;
            queue = Some((sender, thread));
        }
        Ok(Self {
            name,
            policy,
            queue,
            kept,
            shared,
            strings: 0,
            dropped: BTreeMap::new(),
            gave_up: false,
            stuck: None,
        })
    }

    /// Returns whether the sink accepts events as they occur.
    pub(crate) fn is_live(&self) -> bool {
        self.policy != Policy::Overwrite
    }

    /// Passes a batch to the sink if it has room; otherwise counts the batch's events as dropped. `strings` returns the
    /// words from an offset up to the end of the strings of the batch.
    pub(crate) fn give(&mut self, batch: &Arc<Batch>, strings: impl Fn(u64) -> Vec<u64>) {
        let Some((sender, _)) = self.queue.as_ref().filter(|_| !self.shared.dead.load(Acquire)) else {
            return self.drop_batch(batch);
        };
        let bytes = batch.bytes();
        let shared = &self.shared;
        let has_room = || shared.held.load(Acquire) == 0 || shared.held.load(Acquire) + bytes <= QUEUE_BYTES;
        let until = Instant::now() + WAIT;
        while self.policy == Policy::Block && !self.gave_up && !has_room() && Instant::now() < until {
            sys::pause();
        }
        self.gave_up = !has_room();
        if self.gave_up {
            return self.drop_batch(batch);
        }
        self.shared.held.fetch_add(bytes, AcqRel);
        let dropped = core::mem::take(&mut self.dropped);
        let message = Message { batch: Arc::clone(batch), strings: strings(self.strings), dropped, bytes };
        if let Err(refused) = sender.send(message) {
            self.dropped = refused.0.dropped;
            return self.drop_batch(batch);
        }
        self.strings = self.strings.max(batch.strings_end);
    }

    fn drop_batch(&mut self, batch: &Batch) {
        for (thread, count) in batch.counts() {
            let sum = self.dropped.entry(thread).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Waits until the sink has accepted all data, as long as it makes progress in time. Does not wait for a sink that
    /// has made no progress since a flush timed out.
    pub(crate) fn flush(&mut self) {
        if self.stuck != Some(self.progress()) && !self.wait(WAIT, |sink| sink.shared.held.load(Acquire) == 0) {
            self.stuck = Some(self.progress());
        }
    }

    fn progress(&self) -> u64 {
        self.shared.progress.load(Acquire)
    }

    fn wait(&self, patience: Duration, is_done: impl Fn(&Self) -> bool) -> bool {
        let (mut progress, mut since) = (self.progress(), Instant::now());
        while !is_done(self) {
            if self.progress() != progress {
                (progress, since) = (self.progress(), Instant::now());
            }
            if self.shared.dead.load(Acquire) || since.elapsed() > patience {
                return false;
            }
            sys::pause();
        }
        true
    }

    /// Ends the sink. `last` is a batch with the events dropped at the end or, for the flight recorder, with all events
    /// in memory.
    pub(crate) fn finish(mut self, last: &Arc<Batch>, strings: impl Fn(u64) -> Vec<u64>) {
        if let Some((beginning, sink)) = self.kept.take() {
            let message = Message { batch: Arc::clone(last), strings: strings(0), dropped: BTreeMap::new(), bytes: 0 };
            let written = Trace::begin(beginning, sink).and_then(|mut trace| {
                trace.write(&message, &self.shared)?;
                trace.encoder.close()
            });
            if let Err(error) = written {
                report(&self.name, &error);
            }
            return;
        }
        if !self.dropped.is_empty() || !last.is_empty() {
            self.give(last, strings);
        }
        let is_stuck = self.policy != Policy::Block && self.stuck == Some(self.progress());
        let patience = if is_stuck { WAIT } else { END_WAIT };
        let left = self.dropped.values().fold(0_u64, |all, count| all.saturating_add(*count));
        if let Some((sender, thread)) = self.queue.take() {
            // The thread ends after writing everything.
            drop(sender);
            if !self.wait(patience, |_| thread.is_finished()) && !self.shared.dead.load(Acquire) {
                eprintln!("telemetry: {} accepts no more events, so its trace is incomplete", self.name);
                return;
            }
        }
        if left != 0 {
            eprintln!("telemetry: {} dropped {left} events at the end", self.name);
        }
    }
}

/// The trace of a sink, used by its thread.
struct Trace {
    encoder: Encoder,
    last_sync: Option<u64>,
}

impl Trace {
    fn begin(beginning: Beginning, sink: TraceSink) -> Result<Self, Error> {
        Ok(Self { encoder: beginning.write(sink)?, last_sync: None })
    }

    fn write(&mut self, message: &Message, shared: &Shared) -> Result<(), Error> {
        let Message { batch, strings, dropped, .. } = message;
        let scene = &batch.scene;
        for (thread, count) in dropped {
            self.encoder.dropped(&[*count, batch.stamp()], *thread, scene)?;
        }
        self.encoder.strings(strings, scene)?;
        for places in batch.places.chunks(STEP) {
            write_places(&mut self.encoder, &batch.parts, places, scene)?;
            shared.progress.fetch_add(1, AcqRel);
        }
        for (thread, count) in &batch.dropped {
            self.encoder.dropped(&[*count, batch.now.stamp], *thread, scene)?;
        }
        let now = batch.now.nanoseconds;
        if self.last_sync.is_none_or(|last| now.saturating_sub(last) >= SYNC_EVERY) {
            self.last_sync = Some(now);
            self.encoder.clock_sync(batch.now.stamp, wall_at(now), scene)?;
        }
        self.encoder.flush()
    }
}

/// Writes incoming batches until the queue ends.
fn run((beginning, sink): (Beginning, TraceSink), queue: &Receiver<Message>, shared: &Shared, name: &str) {
    sys::block_signals();
    let written = Trace::begin(beginning, sink).and_then(|mut trace| {
        while let Ok(message) = queue.recv() {
            let done = trace.write(&message, shared);
            shared.progress.fetch_add(1, AcqRel);
            shared.held.fetch_sub(message.bytes, AcqRel);
            if done.is_err() {
                trace.encoder.abandon();
                return done;
            }
        }
        trace.encoder.close()
    });
    if let Err(error) = written {
        shared.dead.store(true, Release);
        report(name, &error);
    }
}

fn report(name: &str, error: &Error) {
    eprintln!("{error}; {name} receives no more events, but the other sinks continue");
}

/// A connection. Its reader sees the end of the connection even if a forked child has also inherited it.
struct Connection<S: Write> {
    stream: S,
    end: fn(&S),
}

impl<S: Write> Write for Connection<S> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl<S: Write> Drop for Connection<S> {
    fn drop(&mut self) {
        (self.end)(&self.stream);
    }
}

fn connection<S: Write + Send + 'static>(stream: S, end: fn(&S)) -> TraceSink {
    Box::new(Forward(BufWriter::with_capacity(BUFFER, Connection { stream, end })))
}

/// Opens a sink.
pub(crate) fn open(place: &SinkPlace, file: impl Fn(&Path) -> PathBuf) -> Result<(String, TraceSink), Error> {
    let name = place.to_string();
    let fail = |error| Error::File("connect to", name.clone().into(), error);
    Ok(match place {
        SinkPlace::File(path) => {
            let (path, sink) = create_own(&file(path))?;
            (path.display().to_string(), sink)
        }
        SinkPlace::Tcp(address) => {
            let mut found = address.to_socket_addrs().map_err(fail)?;
            let first = found.next().ok_or_else(|| fail(std::io::ErrorKind::AddrNotAvailable.into()))?;
            let connect = |address| TcpStream::connect_timeout(&address, CONNECT);
            let stream = found.fold(connect(first), |done, next| done.or_else(|_| connect(next))).map_err(fail)?;
            (name, connection(stream, |stream| drop(stream.shutdown(Shutdown::Write))))
        }
        SinkPlace::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(fail)?;
            (name, connection(stream, |stream| drop(stream.shutdown(Shutdown::Write))))
        }
    })
}
