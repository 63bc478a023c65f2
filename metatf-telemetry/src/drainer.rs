//! Takes events out of the rings and writes them to the trace, in batches that a kill neither loses nor doubles
//! (`docs/internals/telemetry.md`).

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, fence};
use std::path::{Path, PathBuf};

use crate::clock::{Clock, Line, Moment, monotonic, wall};
use crate::encode::{Encoder, Scene, TraceSink, create};
use crate::error::Error;
use crate::events::{Part, Place, find, order};
use crate::layout::{FREE, Header, LEFT};
use crate::mapping::{Mapping, RingPart};
use crate::settings::Policy;
use crate::sys;
use crate::table::Table;

/// Nanoseconds that an event has to be old: threads that began one before may be writing it still.
const OLD: u64 = 1_000_000;
/// Nanoseconds between two records of both clocks.
const SYNC_EVERY: u64 = 10_000_000_000;

/// The drain of a process, and the lock that one thread at a time holds. A forked child forgets both.
pub(crate) struct DrainLock {
    locked: AtomicU32,
    drainer: UnsafeCell<Option<Box<Drainer>>>,
}

// SAFETY: the drainer is reached by `with` alone, while the lock is held. It may be sent: its mapping is of the process.
unsafe impl Sync for DrainLock {}

/// Opens the lock, whatever happens.
struct Unlock<'l>(&'l AtomicU32);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl DrainLock {
    pub(crate) const fn new() -> Self {
        Self { locked: AtomicU32::new(0), drainer: UnsafeCell::new(None) }
    }

    /// Gives the drainer to `f`. `None` if somebody else has it for longer than that.
    pub(crate) fn with<T>(&self, milliseconds: u64, f: impl FnOnce(&mut Option<Box<Drainer>>) -> T) -> Option<T> {
        let until = monotonic().saturating_add(milliseconds.saturating_mul(1_000_000));
        while self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            if monotonic() > until {
                return None;
            }
            sys::pause();
        }
        let unlock = Unlock(&self.locked);
        // SAFETY: the lock is held until `unlock` goes, so nobody else has a reference.
        let result = f(unsafe { &mut *self.drainer.get() });
        drop(unlock);
        Some(result)
    }

    /// Forgets the parent's drainer, in a forked child: another thread may have been at it.
    ///
    /// # Safety
    /// There is one thread, and it does not hold the lock.
    pub(crate) unsafe fn forget(&self) {
        // SAFETY: no other thread is there. What it was is not dropped: its file is the parent's.
        unsafe { core::ptr::write(self.drainer.get(), None) };
        self.locked.store(0, Relaxed);
    }
}

/// Where a trace goes, and what stands at its beginning.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) dtd: &'static str,
    pub(crate) path: PathBuf,
    /// Path of the buffers.
    pub(crate) buffers: String,
}

/// The drain of a process.
pub(crate) struct Drainer {
    target: Target,
    table: Table,
    mapping: Mapping,
    clock: Clock,
    /// A sink that the program gave.
    sink: Option<TraceSink>,
    encoder: Option<Encoder>,
    /// Of each ring.
    parts: Vec<Part>,
    places: Vec<Place>,
    batch: u64,
    /// Bytes of the strings that are in the trace.
    strings: u64,
    /// The last moment by which stamps became nanoseconds.
    last: Moment,
    last_sync: u64,
    /// The trace cannot be written: the buffers keep what they have.
    failed: bool,
}

impl Drainer {
    pub(crate) fn new(target: Target, table: Table, mapping: Mapping, clock: Clock, sink: Option<TraceSink>) -> Self {
        let header = mapping.header();
        let first = &header.batches[0];
        let last = Moment { stamp: first.stamp.load(Relaxed), nanoseconds: first.nanoseconds.load(Relaxed) };
        let parts = (0..mapping.shape.rings).map(|_| Part::default()).collect();
        Self {
            target,
            table,
            mapping,
            clock,
            sink,
            encoder: None,
            parts,
            places: Vec::new(),
            batch: 0,
            strings: 0,
            last,
            last_sync: 0,
            failed: false,
        }
    }

    fn header(&self) -> &'static Header {
        self.mapping.header()
    }

    /// Opens the trace, if it is not open.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        if self.encoder.is_none() {
            let sink = match self.sink.take() {
                Some(sink) => sink,
                None => create(&self.target.path)?,
            };
            self.encoder = Some(self.begin(sink)?);
        }
        Ok(())
    }

    /// Starts a trace.
    fn begin(&self, sink: TraceSink) -> Result<Encoder, Error> {
        let Target { name, dtd, buffers, .. } = &self.target;
        let mut encoder = Encoder::new(name, dtd, self.table.clone(), sys::process(), sink)?;
        encoder.metadata(&first_metadata(self.header(), sys::process(), self.clock, buffers))?;
        encoder.flush()?;
        Ok(encoder)
    }

    /// Writes a batch; with `all`, also what is younger than a millisecond. Says whether there was something.
    ///
    /// # Errors
    /// The trace's. It is given up then, and the buffers keep what they have.
    pub(crate) fn batch(&mut self, all: bool) -> Result<bool, Error> {
        if self.failed {
            return Ok(false);
        }
        let done = self.write_batch(all);
        self.failed = done.is_err();
        done
    }

    fn write_batch(&mut self, all: bool) -> Result<bool, Error> {
        let header = self.header();
        let now = Moment::now(self.clock);
        let line = Line::through(self.last, now);
        let until = if all { u64::MAX } else { now.stamp.saturating_sub(line.steps(OLD)) };
        self.collect(until)?;
        // A ring that is half full of young events is not kept waiting.
        if self.places.is_empty() && !all && self.fill() * 2 >= self.mapping.shape.ring_bytes {
            self.collect(now.stamp)?;
        }
        // Events name none that came later.
        let strings = self.mapping.strings_end();
        let has_new_strings = self.encoder.is_some() && all && strings > self.strings;
        if self.places.is_empty() && !has_new_strings {
            return Ok(false);
        }
        self.open()?;
        let Some(encoder) = &mut self.encoder else { return Ok(false) };
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
        let sync = if is_due {
            (stamp, wall().saturating_sub(now.nanoseconds.saturating_sub(line.at(stamp))))
        } else {
            (0, 0)
        };
        record.sync_stamp.store(sync.0, Relaxed);
        record.sync_wall.store(sync.1, Relaxed);
        header.batch_strings[side].store(strings, Relaxed);
        header.preparing.store(next, Release);

        let scene = Scene { line, start: header.start_nanoseconds.load(Relaxed) };
        encoder.strings(&self.mapping.strings(self.strings, strings), &scene)?;
        write_places(encoder, &self.parts, &mut self.places, &scene)?;
        if is_due {
            encoder.clock_sync(sync.0, sync.1, &scene)?;
            self.last_sync = now.nanoseconds;
        }
        encoder.flush()?;

        for (to, records) in record.records.iter().zip(encoder.records()) {
            to.store(*records, Relaxed);
        }
        header.rate.store(line.rate(), Relaxed);
        header.batch.store(next, Release);
        self.batch = next;
        self.last = now;
        self.strings = strings;
        for (ring, part) in self.mapping.rings().zip(&self.parts) {
            ring.head.tail.store(part.to, Release);
        }
        Ok(true)
    }

    /// Copies what the rings have that is not in the trace, and finds its events.
    fn collect(&mut self, until: u64) -> Result<(), Error> {
        self.places.clear();
        let overwrites = self.mapping.shape.policy == Policy::Overwrite;
        for (index, (ring, part)) in (0..).zip(self.mapping.rings().zip(&mut self.parts)) {
            copy(ring, self.mapping.shape.ring_bytes, overwrites, part);
            find(&self.table, index, part, until, &mut self.places).map_err(|damage| {
                let at = damage.0;
                Error::Trace(format!("ring {index} is damaged at {at}; `metatfc postmortem` reads what is whole"))
            })?;
        }
        order(&mut self.places);
        Ok(())
    }

    /// Returns the most bytes that a ring holds.
    pub(crate) fn fill(&self) -> u64 {
        let held = |ring: RingPart| ring.head.head.load(Relaxed).saturating_sub(ring.head.tail.load(Relaxed));
        self.mapping.rings().map(held).max().unwrap_or(0)
    }

    /// Takes back the rings of threads that have ended, once they are empty.
    pub(crate) fn take_back(&self) {
        self.mapping.find_left();
        for ring in self.mapping.rings() {
            let head = ring.head;
            if head.owner.load(Relaxed) == LEFT && head.head.load(Acquire) == head.tail.load(Relaxed) {
                let _ = head.owner.compare_exchange(LEFT, FREE, Release, Relaxed);
            }
        }
    }

    /// Writes what the rings have to another trace, and leaves it there.
    pub(crate) fn dump(&mut self, path: &Path) -> Result<u64, Error> {
        self.collect(u64::MAX)?;
        let now = Moment::now(self.clock);
        let scene = Scene { line: Line::through(self.last, now), start: self.header().start_nanoseconds.load(Relaxed) };
        let mut encoder = self.begin(create(path)?)?;
        encoder.strings(&self.mapping.strings(0, self.mapping.strings_end()), &scene)?;
        write_places(&mut encoder, &self.parts, &mut self.places, &scene)?;
        close(encoder)?;
        Ok(self.places.len() as u64)
    }

    /// Writes all that is left, and ends the trace. Without events there is none.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Trace("the trace could not be written".to_owned()));
        }
        self.batch(true)?;
        let refused = self.header().refused.load(Relaxed);
        let found_no_ring = (refused != 0).then_some((0, refused));
        let dropped: Vec<_> = self.mapping.rings().filter_map(unreported).chain(found_no_ring).collect();
        if !dropped.is_empty() {
            self.open()?;
        }
        let Some(mut encoder) = self.encoder.take() else { return Ok(()) };
        let scene = Scene {
            line: Line::of_rate(self.last, self.header().rate.load(Relaxed)),
            start: self.header().start_nanoseconds.load(Relaxed),
        };
        let stamp = Moment::now(self.clock).stamp;
        for (thread, count) in dropped {
            encoder.dropped(&[count, stamp], thread, &scene)?;
        }
        encoder.metadata(&last_metadata(refused, self.header().strings_refused.load(Relaxed)))?;
        close(encoder)
    }
}

/// Writes events in their order.
pub(crate) fn write_places(
    encoder: &mut Encoder,
    parts: &[Part],
    places: &mut [Place],
    scene: &Scene,
) -> Result<(), Error> {
    for place in places {
        if let Some(part) = parts.get(place.ring as usize) {
            encoder.event(part, *place, scene)?;
        }
    }
    Ok(())
}

/// Ends a trace and hands it to the system.
fn close(encoder: Encoder) -> Result<(), Error> {
    let mut sink = encoder.finish()?;
    sink.flush().map_err(|error| Error::Trace(format!("the trace could not be written: {error}")))
}

/// Copies the part of a ring that is not in the trace. A ring that overwrites itself may have done so meanwhile.
fn copy(ring: RingPart, ring_bytes: u64, overwrites: bool, part: &mut Part) {
    let head = ring.head;
    part.thread = head.thread.load(Acquire);
    let from = head.tail.load(Relaxed).max(if overwrites { head.oldest.load(Acquire) } else { 0 });
    let to = head.head.load(Acquire);
    part.from = from;
    ring.copy(ring_bytes, from, to, &mut part.words);
    fence(core::sync::atomic::Ordering::SeqCst);
    let oldest = if overwrites { head.oldest.load(Relaxed) } else { 0 };
    if let Some(gone) = oldest.checked_sub(from) {
        let gone = usize::try_from(gone / 8).unwrap_or(usize::MAX).min(part.words.len());
        part.words.drain(..gone);
        part.from += 8 * gone as u64;
    }
}

/// Returns how many events of a ring's thread were dropped without being named, and the thread.
fn unreported(ring: RingPart) -> Option<(u32, u64)> {
    let count = ring.head.dropped.load(Relaxed).saturating_sub(ring.head.reported.load(Relaxed));
    (count != 0).then(|| (ring.head.thread.load(Relaxed), count))
}

/// What a trace says about its process.
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

/// What a trace says at its end.
fn last_metadata(refused: u64, strings: u64) -> String {
    format!(r#"{{"telemetry_end":{{"refused":{refused},"strings_refused":{strings}}}}}"#)
}

/// Writes a text in JSON.
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
