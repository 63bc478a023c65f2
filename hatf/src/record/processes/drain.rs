//! Makes the trace while the program runs, behind it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hatf_record::{Clock, Spool};
use serde_json::json;

use super::control::Control;
use super::origin::Origin;
use super::outcome::Recorded;
use super::process::{End, Process, ProcessEnd};
use super::python_version::PythonVersion;
use crate::Result;
use crate::event::{EventSink, UserMetadata};
use crate::record::order::{Encode, Keep, LastPart, MemorySamples, Moment, Timeline, clock_name};
use crate::record::spool::{Returned, SpoolFile};

/// What gives a sink the events of a trace that was asked for while the program runs.
pub type DumpInto<'a> = &'a mut dyn FnMut(&mut dyn EventSink) -> Result<()>;

/// Events that are taken before the program is looked at again.
const ROUND: usize = 20_000;
/// How old an event has to be before it is given: by then all that has an earlier stamp is written.
const LAG: u64 = 1_000_000;
/// How long we sleep when there is nothing to do, at first, and when there was nothing for a while.
const PAUSES_MS: [libc::c_int; 2] = [1, 10];
/// How long a slot may be missing behind which others are written. It may be that of a call whose thread is stopped, or was
/// left by a jump out of a signal handler.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many nanoseconds are between moments at which both clocks are read, where only the last part is kept.
const MOMENTS: u64 = 100_000_000;
/// Traces that are made where more are asked for at once: a program that asks in a loop has to be recorded, too.
const DUMPS: u32 = 16;
/// How often the sink is flushed while somebody watches.
const WATCHED: Duration = Duration::from_millis(500);
/// How often threads that have ended are looked at.
const THREADS: Duration = Duration::from_millis(100);

pub(crate) struct Drain<'a> {
    pub(crate) spool: Spool<'a>,
    pub(crate) encode: Encode<'a>,
    pub(crate) returned: &'a Returned,
    pub(crate) control: &'a Control,
    /// Only the last part is to be kept.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) process: Process<'a>,
    pub(crate) clock: Clock,
    /// What the kernel says of the process's memory, and marks from outside.
    pub(crate) samples: &'a MemorySamples,
    /// Events after which the sink is flushed, so that their chunks can be used again.
    pub(crate) group: u64,
    /// How often the sink is flushed besides.
    pub(crate) flush: Option<Duration>,
    /// Events that the sink has flushed.
    pub(crate) flushed: u64,
}

/// How the last part of a recording is kept.
pub(crate) struct Keeping<'a> {
    pub(crate) keep: Keep,
    pub(crate) file: &'a SpoolFile,
    /// Takes a trace of what is there.
    pub(crate) dump: &'a dyn Fn(u32, DumpInto<'_>),
}

/// When the sink was last flushed.
struct Flushed {
    at: Instant,
    events: u64,
}

/// Traces of the last part that were asked for while the program went on, and those that were made.
#[derive(Default)]
struct Dumps {
    asked: u32,
    made: u32,
}

impl Drain<'_> {
    /// Runs until the process has ended and all of its events are given. `ended` is called as soon as it has ended.
    pub(crate) fn run(mut self, origin: &Origin, ended: impl FnOnce()) -> Result<(End, Recorded)> {
        if let Some(keeping) = self.keeping.take() {
            return self.keep(&keeping, origin, ended);
        }
        let begun = Instant::now();
        self.encode.sink.try_to(|sink| origin.write(sink));
        let process = ProcessEnd::of(self.process.id());
        let (mut safe, mut newest) = (Moment::now(self.clock), Moment::now(self.clock));
        let mut flushed = Flushed { at: begun, events: 0 };
        let (mut gap_since, mut threads_at, mut quiet, mut asked) = (None, begun, 0_usize, 0);
        let mut marks = self.control.marks_by_now();
        let end = loop {
            self.control.apply(&mut asked, self.spool.header());
            self.control.marks(&mut marks, self.samples);
            let now = Moment::now(self.clock);
            self.encode.timeline.learn(now);
            if now.nanoseconds.saturating_sub(newest.nanoseconds) >= LAG {
                (safe, newest) = (newest, now);
            }
            self.end_threads();
            let given = self.encode.round(safe.stamp, ROUND);
            if self.encode.sink.error.is_some() {
                self.spool.header().closed.store(1, Ordering::SeqCst);
            }
            self.flush_if_due(&mut flushed);
            if let Some(end) = self.process.ended()? {
                break end;
            }
            quiet = if given == 0 { quiet + 1 } else { 0 };
            if given < ROUND {
                self.pass_gaps(&mut gap_since);
                self.pass_holds(quiet);
                if threads_at.elapsed() >= THREADS {
                    self.finish_threads();
                    threads_at = Instant::now();
                }
                process.wait(PAUSES_MS[usize::from(quiet > 20)]);
            }
        };
        ended();
        let duration = begun.elapsed();
        self.encode.timeline.learn(Moment::now(self.clock));
        while self.encode.round(u64::MAX, ROUND) > 0 {
            self.flush_if_due(&mut flushed);
        }
        self.encode.rest(u64::MAX);
        Ok((end, self.finish(end, duration, 0)))
    }

    /// Does what [`Drain::run`] does, with the last part alone: nothing is read but what is given back, until the program ends.
    fn keep(mut self, keeping: &Keeping<'_>, origin: &Origin, ended: impl FnOnce()) -> Result<(End, Recorded)> {
        let begun = Instant::now();
        self.encode.sink.try_to(|sink| origin.write(sink));
        let process = ProcessEnd::of(self.process.id());
        let mut last_part = LastPart::new(keeping.keep, self.spool);
        let (mut moments, mut asked, mut dumps) = (VecDeque::new(), 0, Dumps::default());
        let mut marks = self.control.marks_by_now();
        let mut not_lasting = None;
        let header = self.spool.header();
        let end = loop {
            self.control.apply(&mut asked, header);
            self.control.marks(&mut marks, self.samples);
            let now = Moment::now(self.clock);
            if moments.back().is_none_or(|last: &Moment| now.nanoseconds - last.nanoseconds >= MOMENTS) {
                moments.push_back(now);
                self.encode.timeline.learn(now);
            }
            let id = self.process.id();
            let since = last_part.since(&mut moments, now);
            let (chunks, another) = last_part.tend(self.spool, since, |task| is_gone(id, task));
            if another && let Err(error) = keeping.file.write_lasting(&last_part.to_json()) {
                not_lasting.get_or_insert(error);
            }
            // Noted before the chunks are gone.
            header.horizon.store(last_part.horizon(), Ordering::SeqCst);
            self.returned.give(chunks);
            self.encode.timeline.thin();
            self.samples.forget(last_part.horizon());
            self.dump_all(keeping, &mut last_part, origin, &mut dumps);
            if let Some(end) = self.process.ended()? {
                break end;
            }
            process.wait(PAUSES_MS[1]);
        };
        ended();
        let duration = begun.elapsed();
        let now = Moment::now(self.clock);
        self.encode.timeline.learn(now);
        self.dump_all(keeping, &mut last_part, origin, &mut dumps);
        self.settle(&mut last_part);
        let kept = kept(&last_part, &self.encode.timeline, now);
        last_part.encode(&mut self.encode, u64::MAX);
        self.encode
            .sink
            .try_to(|sink| sink.user_metadata(&UserMetadata::from_iter([("kept_ns".to_owned(), kept.into())])));
        let recorded = self.finish(end, duration, last_part.reported_lost);
        let kept_short = last_part.short_of().filter(|asked| kept < *asked).map(|_| Duration::from_nanos(kept));
        Ok((end, Recorded { kept_short, not_lasting, ..recorded }))
    }

    /// Makes each trace that was asked for since the last time: not more than [`DUMPS`].
    fn dump_all(&self, keeping: &Keeping<'_>, last_part: &mut LastPart, origin: &Origin, dumps: &mut Dumps) {
        let asked = self.spool.header().dumps.load(Ordering::Relaxed).wrapping_add(self.control.dumps());
        let new = asked.wrapping_sub(std::mem::replace(&mut dumps.asked, asked));
        for _ in 0..new.min(DUMPS) {
            dumps.made = dumps.made.wrapping_add(1);
            self.settle(last_part);
            self.dump(keeping, last_part, origin, dumps.made);
        }
    }

    /// Waits until the keeper has taken chunks back.
    fn settle(&self, last_part: &mut LastPart) {
        let begun = Instant::now();
        while !last_part.is_settled(self.spool) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes a trace of what is there while the program goes on.
    fn dump(&self, keeping: &Keeping<'_>, last_part: &LastPart, origin: &Origin, number: u32) {
        let now = Moment::now(self.clock);
        // By then all that was stamped before is written.
        std::thread::sleep(Duration::from_nanos(2 * LAG));
        let mut timeline = self.encode.timeline.clone();
        timeline.learn(now);
        let samples = self.samples.copy();
        (keeping.dump)(number, &mut |sink| {
            let samples = samples.copy();
            let mut encode = Encode::new(self.spool, keeping.file.folder(), timeline.clone(), &samples, sink);
            encode.sink.try_to(|sink| origin.write(sink));
            last_part.encode(&mut encode, now.stamp);
            let lost = encode.merge.counted().reported_lost;
            let kept = kept(last_part, &timeline, now);
            let counts = json!({"lost": lost, "dump": number, "kept_ns": kept, "stamps": clock_name(self.clock)});
            encode.finish(lost, None, counts.as_object().cloned().unwrap_or_default());
            encode.sink.error.map_or(Ok(()), Err)
        });
    }

    /// Flushes the sink where it is time to, and gives back the chunks whose events are safe then.
    fn flush_if_due(&mut self, flushed: &mut Flushed) {
        // What the sink does not take stays in the spool, for a trace to be made of it later.
        if self.encode.sink.error.is_some() {
            return;
        }
        let new = self.encode.sink.events - flushed.events;
        let finished = self.encode.merge.finished();
        let scarce = finished > 0 && self.returned.used() > self.spool.chunks() / 2 && new >= 10_000;
        let late = |every| flushed.at.elapsed() >= every;
        let late = self.flush.is_some_and(late) || self.control.is_watched() && late(WATCHED);
        let full = new >= self.group || scarce;
        if !(full || late && new > 0) {
            return;
        }
        self.encode.sink.try_to(|sink| sink.flush());
        if self.encode.sink.error.is_some() {
            return;
        }
        self.flushed = self.encode.sink.events;
        self.spool.header().in_trace_until.store(self.encode.last, Ordering::Relaxed);
        self.spool.header().in_trace.store(self.flushed, Ordering::Relaxed);
        *flushed = Flushed { at: Instant::now(), events: self.flushed };
        let chunks = self.encode.merge.take_finished();
        if !chunks.is_empty() {
            self.returned.give(chunks);
        }
    }

    /// Goes on behind slots that are not written for too long.
    fn pass_gaps(&mut self, since: &mut Option<Instant>) {
        if !self.encode.merge.has_gaps() {
            *since = None;
        } else if since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            self.encode.merge.skip_gaps(false);
            *since = None;
        }
    }

    /// Lets held threads go on if nothing was given for a while.
    fn pass_holds(&mut self, quiet: usize) {
        if quiet > 20 {
            self.encode.merge.give_up_holding();
        }
    }

    fn end_threads(&mut self) {
        let process = self.process.id();
        self.encode.merge.end_threads(|task| is_gone(process, task));
    }

    fn finish_threads(&mut self) {
        let process = self.process.id();
        self.encode.merge.finish_threads(|task| is_gone(process, task));
    }

    /// Ends the trace. Of what the program had to drop so much is where nothing is kept of.
    fn finish(mut self, end: End, duration: Duration, not_kept: u64) -> Recorded {
        let header = self.spool.header();
        let forks = header.forks.load(Ordering::Relaxed);
        let waits = header.waits.load(Ordering::Relaxed);
        let dropped = header.dropped.load(Ordering::Relaxed).saturating_sub(not_kept);
        let lost = dropped.saturating_add(self.encode.merge.counted().gaps);
        let repairs = self.encode.merge.counted().repairs;
        let contradictions = self.encode.merge.counted().contradictions;
        let stamps = clock_name(self.clock);
        let counts = json!({"lost": lost, "children": forks, "repairs": repairs, "contradictions": contradictions, "stamps": stamps});
        let mut counts = counts.as_object().cloned().unwrap_or_default();
        let stacks_missed = self.encode.stacks.missed();
        if stacks_missed > 0 {
            counts.insert("stacks_missed".to_owned(), stacks_missed.into());
        }
        self.encode.finish(dropped, end.event(), counts);
        Recorded {
            events: self.encode.sink.events,
            flushed: self.flushed,
            allocations: self.encode.sink.allocations,
            lost,
            repairs,
            images: self.encode.translator.images(),
            programs: self.encode.sink.programs,
            linked: header.linked.load(Ordering::Relaxed),
            // One that ends by itself says so.
            left: header.becomes.load(Ordering::Relaxed) != 0 && header.exit.load(Ordering::Relaxed) == 0,
            waits,
            python: PythonVersion::of(header.python.load(Ordering::Relaxed)),
            stackless: header.stackless.load(Ordering::Relaxed) != 0,
            stacks_missed,
            single_frames: self.encode.sink.single_frames,
            forks,
            starts: self.encode.translator.starts(),
            is_off: header.is_off(),
            kept_short: None,
            not_lasting: None,
            stopped: hatf_record::Stop::from_number(header.stopped.load(Ordering::Relaxed)),
            duration,
            sink_error: self.encode.sink.error,
        }
    }
}

/// Returns whether a thread of a process has ended.
fn is_gone(process: u32, task: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{process}/task/{task}")).exists()
}

/// Returns the nanoseconds from the first event that is kept to a moment.
fn kept(last_part: &LastPart, timeline: &Timeline, now: Moment) -> u64 {
    let mut timeline = timeline.clone();
    let since = if last_part.horizon() == 0 { 0 } else { timeline.time(last_part.horizon()) };
    timeline.time(now.stamp).saturating_sub(since)
}
