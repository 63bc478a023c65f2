//! Moves events from the rings to the trace, in batches that a crash can neither lose nor duplicate
//! (`dev/internals/telemetry.md`).
//!
//! This file exceeds 400 lines, because the code that applies a batch to buffers, traces and sinks, and the code that
//! ends them, must be read together.

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::fence;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::{Clock, Line, Moment, wall_at};
use crate::encode::{Beginning, Encoder, Scene, write_places};
use crate::error::Error;
use crate::events::{Part, Place, find, order};
use crate::layout::Header;
use crate::mapping::Mapping;
use crate::queued::{Batch, QueuedSink};
use crate::ring::RingPart;
use crate::settings::Policy;
use crate::sys;
use crate::table::Table;
use crate::trace_file::{TraceSink, create, create_own};

/// Minimum age in nanoseconds of an event to drain. Until then, another thread may still be writing an earlier event.
const OLD: u64 = 1_000_000;
/// Nanoseconds between two records that relate the clocks.
const SYNC_EVERY: u64 = 10_000_000_000;

/// The destination of a trace and the content at its start.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) dtd: &'static str,
    pub(crate) path: PathBuf,
    /// The path of the buffers.
    pub(crate) buffers: String,
}

/// The drain of a process.
pub(crate) struct Drainer {
    target: Target,
    table: Table,
    mapping: Mapping,
    clock: Clock,
    /// The name of the trace in error messages.
    place: String,
    /// A sink provided by the program.
    sink: Option<TraceSink>,
    encoder: Option<Encoder>,
    /// Additional sinks.
    queued: Vec<QueuedSink>,
    /// Whether the trace of the process is a flight recorder, which is written only at the end, while additional sinks
    /// receive the drained events.
    records: bool,
    /// The copied part of each ring.
    parts: Vec<Part>,
    /// The thread of the last drained event in each ring.
    threads: Vec<u32>,
    places: Vec<Place>,
    batch: u64,
    /// Bytes of the strings written to the trace.
    strings: u64,
    /// The last point in time used to convert stamps to nanoseconds.
    last: Moment,
    last_sync: u64,
    /// Whether writing the trace failed. The buffers then keep their content.
    failed: bool,
    /// Whether the rings contain data that is not an event.
    damaged: bool,
}

impl Drainer {
    pub(crate) fn new(target: Target, table: Table, mapping: Mapping, clock: Clock, sink: Option<TraceSink>) -> Self {
        let header = mapping.header();
        let first = &header.batches[0];
        let last = Moment { stamp: first.stamp.load(Relaxed), nanoseconds: first.nanoseconds.load(Relaxed) };
        let parts = (0..mapping.shape.all_rings()).map(|_| Part::default()).collect();
        Self {
            target,
            table,
            mapping,
            clock,
            place: "the program's sink".to_owned(),
            sink,
            encoder: None,
            queued: Vec::new(),
            records: false,
            parts,
            threads: vec![0; mapping.shape.all_rings() as usize],
            places: Vec::new(),
            batch: 0,
            strings: 0,
            last,
            last_sync: 0,
            failed: false,
            damaged: false,
        }
    }

    fn header(&self) -> &'static Header {
        self.mapping.header()
    }

    /// Opens the trace if it is not open.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        if self.encoder.is_none() {
            let sink = match self.sink.take() {
                Some(sink) => sink,
                None => {
                    let (path, sink) = create_own(&self.target.path)?;
                    self.place = path.display().to_string();
                    sink
                }
            };
            self.encoder = Some(self.beginning().write(sink).map_err(|error| error.at(&self.place))?);
        }
        Ok(())
    }

    /// Adds another sink.
    pub(crate) fn add(
        &mut self,
        name: String,
        policy: Policy,
        sink: TraceSink,
        mute: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let beginning = self.beginning();
        self.queued.push(QueuedSink::new(name, policy, (beginning, sink), mute)?);
        // Blocking sinks come last, after the other sinks have received the batch.
        self.queued.sort_by_key(|sink| sink.policy == Policy::Block);
        Ok(())
    }

    /// Makes this a flight recorder: the drain writes the trace of the process only at the end.
    pub(crate) fn record(&mut self) {
        self.records = true;
    }

    /// Returns the content at the start of each trace.
    fn beginning(&self) -> Beginning {
        let Target { name, dtd, buffers, .. } = &self.target;
        let process = sys::process();
        let metadata = first_metadata(self.header(), process, self.clock, buffers);
        Beginning { name, dtd, table: self.table.clone(), process, metadata }
    }

    /// Writes a batch. With `all`, includes events younger than a millisecond. Returns whether there was anything to
    /// write.
    ///
    /// # Errors
    /// Returns the trace error. The trace is then abandoned, while the buffers keep their content.
    pub(crate) fn batch(&mut self, all: bool) -> Result<bool, Error> {
        if self.is_over() {
            return Ok(false);
        }
        let done = self.write_batch(all);
        self.failed |= done.is_err();
        done
    }

    /// Returns whether no more batches can be written.
    pub(crate) fn is_over(&self) -> bool {
        self.damaged || (self.failed && self.queued.is_empty())
    }

    fn write_batch(&mut self, all: bool) -> Result<bool, Error> {
        let header = self.header();
        let now = Moment::now(self.clock);
        let line = Line::through(self.last, now);
        let until = if all { u64::MAX } else { now.stamp.saturating_sub(line.steps(OLD)) };
        self.collect(until, false)?;
        // If young events fill half of a ring, drain them immediately.
        if self.places.is_empty() && !all && self.is_half_full() {
            self.collect(now.stamp, false)?;
        }
        // Events refer only to strings that already existed, so the strings up to this point include all strings of the
        // collected events.
        let strings = self.mapping.strings_end();
        let has_new_strings = self.encoder.is_some() && all && strings > self.strings;
        if self.places.is_empty() && !has_new_strings {
            return Ok(false);
        }
        let scene = Scene { line, start: header.start_nanoseconds.load(Relaxed) };
        self.give(now, scene, strings);
        header.rate.store(line.rate(), Relaxed);
        let is_written = !self.records && !self.failed;
        let done = if is_written {
            self.write_trace(until, now, scene, strings).map_err(|error| error.at(&self.place))
        } else {
            Ok(())
        };
        // If only the trace was lost, the other sinks continue after this batch.
        if done.is_ok() || !self.queued.is_empty() {
            self.last = now;
            for ((ring, part), thread) in self.mapping.rings().zip(&self.parts).zip(&mut self.threads) {
                ring.own.tail.store(part.to, Release);
                *thread = part.last_thread();
            }
        }
        done.map(|()| true)
    }

    /// Passes a batch to the additional sinks.
    fn give(&mut self, now: Moment, scene: Scene, strings_end: u64) {
        if !self.queued.iter().any(QueuedSink::is_live) {
            return;
        }
        let (parts, places) = (self.parts.clone(), self.places.clone());
        let batch = Arc::new(Batch { parts, places, scene, now, strings_end, dropped: Vec::new() });
        let mapping = self.mapping;
        for sink in self.queued.iter_mut().filter(|sink| sink.is_live()) {
            sink.give(&batch, |from| mapping.strings(from, strings_end));
        }
    }

    /// Writes a batch to the trace of the process, in two steps that a crash may separate.
    fn write_trace(&mut self, until: u64, now: Moment, scene: Scene, strings: u64) -> Result<(), Error> {
        self.open()?;
        let (header, line) = (self.header(), scene.line);
        let Some(encoder) = &mut self.encoder else { return Ok(()) };
        let next = self.batch + 1;
        let side = usize::from(next & 1 == 1);
        for (ring, part) in self.mapping.rings().zip(&self.parts) {
            ring.head.ends[side].store(part.to, Relaxed);
        }
        let record = &header.batches[side];
        record.stamp.store(now.stamp, Relaxed);
        record.nanoseconds.store(now.nanoseconds, Relaxed);
        let is_due = encoder.has_clock_sync() && now.nanoseconds.saturating_sub(self.last_sync) >= SYNC_EVERY;
        let stamp = until.min(now.stamp);
        let sync = if is_due { (stamp, wall_at(line.at(stamp))) } else { (0, 0) };
        record.sync_stamp.store(sync.0, Relaxed);
        record.sync_wall.store(sync.1, Relaxed);
        header.batch_strings[side].store(strings, Relaxed);
        header.preparing.store(next, Release);

        encoder.strings(&self.mapping.strings(self.strings, strings), &scene)?;
        write_places(encoder, &self.parts, &self.places, &scene)?;
        if is_due {
            encoder.clock_sync(sync.0, sync.1, &scene)?;
            self.last_sync = now.nanoseconds;
        }
        encoder.flush()?;

        for (to, records) in record.records.iter().zip(encoder.records()) {
            to.store(*records, Relaxed);
        }
        header.batch.store(next, Release);
        self.batch = next;
        self.strings = strings;
        Ok(())
    }

    /// Copies the data of the rings and finds the events in it. Data that was already drained is included only with
    /// `all`.
    fn collect(&mut self, until: u64, all: bool) -> Result<(), Error> {
        self.places.clear();
        for (index, (ring, part)) in (0..).zip(self.mapping.rings().zip(&mut self.parts)) {
            // Overwritten data ends at a block boundary, and a block starts by identifying its thread.
            part.thread = if all { 0 } else { self.threads.get(index as usize).copied().unwrap_or(0) };
            copy(ring, all, part);
            find(&self.table, index, part, until, &mut self.places).map_err(|damage| {
                let at = damage.0;
                // Draining stops at the corruption, but a dump may be tried again.
                self.damaged |= !all;
                Error::Trace(format!(
                    "ring {index} is corrupt at {at}; to recover the intact part, run `metatfc telemetry`"
                ))
            })?;
        }
        order(&mut self.places);
        Ok(())
    }

    /// Returns whether any ring is half full.
    fn is_half_full(&self) -> bool {
        let held = |ring: &RingPart| ring.whole().saturating_sub(ring.own.tail.load(Relaxed));
        self.mapping.rings().any(|ring| held(&ring) * 2 >= ring.bytes)
    }

    /// Writes all data of the rings to another trace, without removing the data from the rings.
    pub(crate) fn dump(&mut self, path: &Path) -> Result<u64, Error> {
        self.collect(u64::MAX, true)?;
        let scene = self.scene();
        self.dump_to(create(path)?, &scene).map_err(|error| error.at(&path.display().to_string()))?;
        Ok(self.places.len() as u64)
    }

    fn dump_to(&self, sink: TraceSink, scene: &Scene) -> Result<(), Error> {
        let mut encoder = self.beginning().write(sink)?;
        encoder.strings(&self.mapping.strings(0, self.mapping.strings_end()), scene)?;
        write_places(&mut encoder, &self.parts, &self.places, scene)?;
        let stamp = Moment::now(self.clock).stamp;
        for (thread, count) in self.untold() {
            encoder.dropped(&[count, stamp], thread, scene)?;
        }
        encoder.close()
    }

    /// Flushes the additional sinks to the system, but gives up on sinks that take too long.
    pub(crate) fn flush_queued(&mut self) {
        self.queued.iter_mut().for_each(QueuedSink::flush);
    }

    /// Returns the number of dropped events per thread that no event in the rings reports. Thread 0 counts the events
    /// dropped because no ring was free.
    fn untold(&self) -> Vec<(u32, u64)> {
        let refused = self.header().refused.load(Relaxed);
        let found_no_ring = (refused != 0).then_some((0, refused));
        self.mapping.rings().filter_map(unreported).chain(found_no_ring).collect()
    }

    /// Writes the remaining events and ends the traces. If there are no events, no trace of the process is created.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let drained = self.batch(true);
        let refused = self.header().refused.load(Relaxed);
        let dropped = self.untold();
        let own = match drained {
            Ok(_) if self.failed => Err(Error::Trace(format!("the trace {} could not be written", self.place))),
            Ok(_) => self.finish_trace(&dropped, refused).map_err(|error| error.at(&self.place)),
            Err(error) => Err(error),
        };
        if let Some(encoder) = self.encoder.take() {
            encoder.abandon();
        }
        self.finish_queued(dropped);
        own
    }

    fn finish_trace(&mut self, dropped: &[(u32, u64)], refused: u64) -> Result<(), Error> {
        if self.records {
            self.collect(u64::MAX, true)?;
        }
        if !dropped.is_empty() || (self.records && !self.places.is_empty()) {
            self.open()?;
        }
        let Some(mut encoder) = self.encoder.take() else { return Ok(()) };
        let scene = self.scene();
        if self.records {
            encoder.strings(&self.mapping.strings(0, self.mapping.strings_end()), &scene)?;
            write_places(&mut encoder, &self.parts, &self.places, &scene)?;
        }
        let stamp = Moment::now(self.clock).stamp;
        for (thread, count) in dropped {
            encoder.dropped(&[*count, stamp], *thread, &scene)?;
        }
        encoder.metadata(&last_metadata(refused, self.header().strings_refused.load(Relaxed)))?;
        encoder.close()
    }

    /// Returns the common information of events outside the current batch, whose times are computed with the line from
    /// the start.
    fn scene(&self) -> Scene {
        let header = self.header();
        let (stamp, start) = (header.start_stamp.load(Relaxed), header.start_nanoseconds.load(Relaxed));
        Scene { line: Line::through(Moment { stamp, nanoseconds: start }, Moment::now(self.clock)), start }
    }

    /// Ends the additional sinks. Sinks of a flight recorder receive the events in memory.
    fn finish_queued(&mut self, dropped: Vec<(u32, u64)>) {
        let queued = core::mem::take(&mut self.queued);
        if queued.is_empty() {
            return;
        }
        let (scene, now, strings_end) = (self.scene(), Moment::now(self.clock), self.mapping.strings_end());
        let batch =
            |parts, places| Arc::new(Batch { parts, places, scene, now, strings_end, dropped: dropped.clone() });
        let last = batch(Vec::new(), Vec::new());
        let mut all = None;
        if !queued.iter().all(QueuedSink::is_live) {
            match self.collect(u64::MAX, true) {
                Ok(()) => all = Some(batch(self.parts.clone(), self.places.clone())),
                Err(error) => eprintln!("{error}"),
            }
        }
        let mapping = self.mapping;
        for sink in queued {
            let batch = all.as_ref().filter(|_| !sink.is_live()).unwrap_or(&last);
            sink.finish(batch, |from| mapping.strings(from, strings_end));
        }
    }
}

/// Copies the undrained part of a ring, or the entire ring with `all`. The ring may be overwritten in the meantime.
fn copy(ring: RingPart, all: bool, part: &mut Part) {
    let oldest = ring.own.oldest.load(Acquire);
    let from = if all { oldest } else { ring.own.tail.load(Relaxed).max(oldest) };
    let to = ring.whole().max(from);
    part.from = from;
    ring.copy(from, to, &mut part.words);
    fence(crate::sync::Ordering::SeqCst);
    part.begin_at(ring.own.oldest.load(Relaxed));
}

/// Returns the thread of a ring and the number of its dropped events that have not been reported.
fn unreported(ring: RingPart) -> Option<(u32, u64)> {
    let count = ring.unreported();
    (count != 0).then(|| (ring.own.named.load(Relaxed), count))
}

/// Returns the metadata about the process at the start of a trace.
fn first_metadata(header: &Header, process: u32, clock: Clock, buffers: &str) -> String {
    let clock = match clock {
        Clock::Cycles => "cycles",
        Clock::Monotonic => "monotonic",
    };
    let (wall, start) = (header.start_wall.load(Relaxed), header.start_nanoseconds.load(Relaxed));
    let buffers = quoted(buffers);
    format!(
        r#"{{"telemetry":{{"process":{process},"start_wall_ns":{wall},"start_monotonic_ns":{start},"clock":"{clock}","buffers":{buffers}}}}}"#
    )
}

/// Returns the metadata at the end of a trace.
fn last_metadata(refused: u64, strings: u64) -> String {
    format!(r#"{{"telemetry_end":{{"refused":{refused},"strings_refused":{strings}}}}}"#)
}

/// Formats a text as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_json() {
        assert_eq!(quoted("a\"b\\c\n\u{e9}"), "\"a\\\"b\\\\c\\u000a\u{e9}\"");
    }
}

#[cfg(all(loom, test))]
mod models;
