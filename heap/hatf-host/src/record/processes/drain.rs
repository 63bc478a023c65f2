//! Writes the trace while the program runs, shortly after its events occur.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hatf_record::{Clock, Header, Spool, Work};
use serde_json::json;

use super::control::Control;
use super::last_program::LastProgram;
use super::origin::Origin;
use super::outcome::Recorded;
use super::process::{End, Process, ProcessEnd};
use super::python_version::PythonVersion;
use crate::record::order::{Encode, Keep, LastPart, MemorySamples, Moment, Timeline, clock_name};
use crate::record::program::{LinkedIn, NotRecordedReason, Plans, linked_in};
use crate::record::spool::{Naps, OomKills, Returned, SpoolFile};
use hatf_trace::Result;
use hatf_trace::event::{EventSink, UserMetadata};

/// A function that passes the events of a trace that was requested while the program runs to a sink.
pub type DumpInto<'a> = &'a mut dyn FnMut(&mut dyn EventSink) -> Result<()>;

/// Maximum number of events processed before the program's state is checked again.
const ROUND: usize = 20_000;
/// The age in nanoseconds at which an event is passed on. By then, everything with an earlier stamp is written.
const LAG: u64 = 1_000_000;
/// The lengths of pauses when there is nothing to do: the initial length, and the length after a while without events.
const PAUSES_MS: [libc::c_int; 2] = [1, 10];
/// The number of rounds without events after which the drain prepares to sleep.
const QUIET: usize = 10;
/// The number of further rounds before it sleeps. A hook that was running when the drain announced its sleep, and
/// therefore rings no bell, ends within this time.
const LAST_ROUNDS: usize = 5;
/// The longest sleep if only the drain itself can notice that the process has ended or has become another program.
const SHORT_NAP: Duration = Duration::from_millis(100);
/// The time to wait for a slot that is missing although later slots are written. The slot's thread may be stopped, or
/// may have left the call by a jump out of a signal handler.
const PATIENCE: Duration = Duration::from_secs(1);
/// Nanoseconds between clock readings if only the last part is kept.
const MOMENTS: u64 = 100_000_000;
/// Maximum number of pending trace requests to serve at a time, so that a program that requests traces in a loop does
/// not stall the recording.
const DUMPS: u32 = 16;
/// The interval at which the sink is flushed while somebody watches.
const WATCHED: Duration = Duration::from_millis(500);
/// The interval at which ended threads are checked.
const THREADS: Duration = Duration::from_millis(100);

pub(crate) struct Drain<'a> {
    pub(crate) spool: Spool<'a>,
    pub(crate) encode: Encode<'a>,
    pub(crate) returned: &'a Returned<'a>,
    pub(crate) control: &'a Control,
    /// The settings for keeping only the last part, if requested.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) process: Process<'a>,
    pub(crate) clock: Clock,
    /// Samples of the process's memory use, and external marks.
    pub(crate) samples: &'a MemorySamples,
    /// The number of events after which the sink is flushed, so that their chunks can be reused.
    pub(crate) group: u64,
    /// The interval of additional flushes of the sink.
    pub(crate) flush: Option<Duration>,
    /// The number of events that the sink has flushed.
    pub(crate) flushed: u64,
    /// The program that the process executed without loading the recorder, if any.
    pub(crate) last_program: LastProgram,
    /// The plans for statically linked allocators.
    pub(crate) plans: &'a Plans<'a>,
}

/// Settings for keeping the last part of a recording.
pub(crate) struct Keeping<'a> {
    pub(crate) keep: Keep,
    pub(crate) file: &'a SpoolFile,
    /// The function that writes a trace of the kept part.
    pub(crate) dump: &'a dyn Fn(u32, DumpInto<'_>),
}

/// The time of the last flush of the sink, and the number of events by then.
struct Flushed {
    at: Instant,
    events: u64,
}

/// The sleep of the drain while its process records no events.
struct Sleep<'a> {
    header: &'a Header,
    /// The word of the bell, and the number of quiet rounds when the drain lay down.
    lying: Option<(u32, usize)>,
    naps: Naps,
}

impl<'a> Sleep<'a> {
    fn new(header: &'a Header) -> Self {
        Self { header, lying: None, naps: Naps::new() }
    }

    /// Lies down after `quiet` rounds, unless that has already been done. With `calls`, each call to a hook rings the
    /// bell.
    fn lie_down(&mut self, quiet: usize, calls: bool) {
        if self.lying.is_none() {
            self.lying = Some((self.header.lie_down(Work::Events), quiet));
            if calls {
                self.header.bell_for_calls();
            }
        }
    }

    /// Sleeps until the bell rings, for at most `limit`. Returns whether it rang.
    fn sleep(&mut self, limit: Option<Duration>) -> bool {
        let Some((word, _)) = self.lying else { return false };
        let nap = self.naps.next_length();
        let rang = self.header.sleep(Work::Events, word, limit.map_or(nap, |limit| limit.min(nap)));
        if rang {
            (self.lying, self.naps) = (None, Naps::new());
        }
        rang
    }

    /// Gets up, because there is work.
    fn get_up(&mut self) {
        self.naps = Naps::new();
        if let Some((word, _)) = self.lying.take() {
            self.header.get_up(Work::Events, word);
        }
    }
}

/// The number of traces of the last part requested while the program was running, and the number made.
#[derive(Default)]
struct Dumps {
    asked: u32,
    made: u32,
}

impl Drain<'_> {
    /// Runs until the process has ended and all of its events have been passed on. Calls `ended` as soon as the process
    /// has ended.
    pub(crate) fn run(mut self, origin: &Origin, ended: impl FnOnce()) -> Result<(End, Recorded)> {
        if let Some(keeping) = self.keeping.take() {
            return self.keep(&keeping, origin, ended);
        }
        let begun = Instant::now();
        self.encode.sink.try_to(|sink| origin.write(sink));
        let process = ProcessEnd::of(self.process.id());
        let kills = OomKills::of(self.process.id());
        let (mut safe, mut newest) = (Moment::now(self.clock), Moment::now(self.clock));
        let mut flushed = Flushed { at: begun, events: 0 };
        let (mut threads_at, mut quiet, mut asked) = (begun, 0_usize, 0);
        let mut marks = self.control.marks_by_now();
        let woken = self.control.alarm.wake(self.spool.header(), Some(&process));
        let mut sleep = Sleep::new(self.spool.header());
        let end = loop {
            self.control.apply(&mut asked, self.spool.header());
            self.control.marks(&mut marks, self.samples);
            let now = Moment::now(self.clock);
            self.encode.timeline.learn(now);
            if now.nanoseconds.saturating_sub(newest.nanoseconds) >= LAG {
                (safe, newest) = (newest, now);
            }
            self.last_program.look(self.spool.header(), self.process.id());
            self.plans.look(self.spool.header(), self.process.id());
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
            if given > 0 {
                sleep.get_up();
            }
            if given < ROUND {
                self.encode.merge.skip_lasting_gaps(Instant::now(), PATIENCE);
                self.pass_holds(quiet);
                if threads_at.elapsed() >= THREADS {
                    self.finish_threads();
                    threads_at = Instant::now();
                }
                if quiet <= QUIET || !self.may_sleep() {
                    process.wait(PAUSES_MS[usize::from(quiet > 20)]);
                    continue;
                }
                sleep.lie_down(quiet, true);
                if sleep.lying.is_some_and(|(_, since)| quiet < since + LAST_ROUNDS) {
                    process.wait(PAUSES_MS[0]);
                } else if sleep.sleep(self.limit(woken.has_process(), &flushed)) {
                    quiet = 0;
                    self.returned.wake();
                }
            }
        };
        drop(woken);
        ended();
        let duration = begun.elapsed();
        let now = Moment::now(self.clock);
        self.encode.timeline.learn(now);
        self.last_sample(end, now);
        while self.encode.round(u64::MAX, ROUND) > 0 {
            self.flush_if_due(&mut flushed);
        }
        self.encode.rest(u64::MAX);
        self.encode.end_at(now);
        Ok((end, self.finish(end, duration, 0, kills.as_ref())))
    }

    /// Does the same as [`Drain::run`], but keeps only the last part: until the program ends, only chunks to be
    /// returned are read.
    fn keep(mut self, keeping: &Keeping<'_>, origin: &Origin, ended: impl FnOnce()) -> Result<(End, Recorded)> {
        let begun = Instant::now();
        self.encode.sink.try_to(|sink| origin.write(sink));
        let process = ProcessEnd::of(self.process.id());
        let kills = OomKills::of(self.process.id());
        let mut last_part = LastPart::new(keeping.keep, self.spool);
        let (mut moments, mut asked, mut dumps) = (VecDeque::new(), 0, Dumps::default());
        let mut marks = self.control.marks_by_now();
        let mut not_lasting = None;
        let header = self.spool.header();
        let woken = self.control.alarm.wake(header, Some(&process));
        let (mut sleep, mut quiet) = (Sleep::new(header), 0);
        let end = loop {
            // A thread that takes a chunk from now on rings the bell.
            sleep.lie_down(0, false);
            self.control.apply(&mut asked, header);
            self.control.marks(&mut marks, self.samples);
            let now = Moment::now(self.clock);
            if moments.back().is_none_or(|last: &Moment| now.nanoseconds - last.nanoseconds >= MOMENTS) {
                moments.push_back(now);
                self.encode.timeline.learn(now);
            }
            let id = self.process.id();
            self.last_program.look(header, id);
            self.plans.look(header, id);
            let since = last_part.since(&mut moments, now);
            let (chunks, another) = last_part.tend(self.spool, since, |task| is_gone(id, task));
            if another && let Err(error) = keeping.file.write_lasting(&last_part.to_json()) {
                not_lasting.get_or_insert(error);
            }
            // The horizon must be stored before the chunks are gone.
            header.horizon.store(last_part.horizon(), Ordering::SeqCst);
            quiet = if chunks.is_empty() { quiet + 1 } else { 0 };
            self.returned.give(chunks);
            self.encode.timeline.thin();
            self.samples.forget(last_part.horizon());
            self.dump_all(keeping, &mut last_part, origin, &mut dumps);
            if let Some(end) = self.process.ended()? {
                break end;
            }
            if quiet <= QUIET {
                process.wait(PAUSES_MS[1]);
            } else if sleep.sleep(self.short_nap(woken.has_process())) {
                quiet = 0;
                self.returned.wake();
            }
        };
        drop(woken);
        ended();
        let duration = begun.elapsed();
        let now = Moment::now(self.clock);
        self.encode.timeline.learn(now);
        self.last_sample(end, now);
        self.dump_all(keeping, &mut last_part, origin, &mut dumps);
        self.settle(&mut last_part);
        let kept = kept(&last_part, &self.encode.timeline, now);
        last_part.encode(&mut self.encode, u64::MAX);
        self.encode.end_at(now);
        self.encode
            .sink
            .try_to(|sink| sink.user_metadata(&UserMetadata::from_iter([("kept_ns".to_owned(), kept.into())])));
        let recorded = self.finish(end, duration, last_part.reported_lost, kills.as_ref());
        let kept_short = last_part.short_of().filter(|asked| kept < *asked).map(|_| Duration::from_nanos(kept));
        Ok((end, Recorded { kept_short, not_lasting, ..recorded }))
    }

    /// Samples the memory of a process that is still running.
    fn last_sample(&self, end: End, now: Moment) {
        if let End::Unknown = end {
            self.samples.add_last(self.spool.header(), self.process.id(), now.stamp);
        }
    }

    /// Makes the traces requested since the last call, at most [`DUMPS`].
    fn dump_all(&self, keeping: &Keeping<'_>, last_part: &mut LastPart, origin: &Origin, dumps: &mut Dumps) {
        let asked = self.spool.header().dumps.load(Ordering::Relaxed).wrapping_add(self.control.dumps());
        let new = asked.wrapping_sub(std::mem::replace(&mut dumps.asked, asked));
        for _ in 0..new.min(DUMPS) {
            dumps.made = dumps.made.wrapping_add(1);
            self.settle(last_part);
            self.dump(keeping, last_part, origin, dumps.made);
        }
    }

    /// Waits until the keeper has taken all returned chunks back.
    fn settle(&self, last_part: &mut LastPart) {
        let begun = Instant::now();
        while !last_part.is_settled(self.spool) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes a trace of the kept events while the program is running.
    fn dump(&self, keeping: &Keeping<'_>, last_part: &LastPart, origin: &Origin, number: u32) {
        let now = Moment::now(self.clock);
        // After this time, everything with an earlier stamp is written.
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

    /// Flushes the sink if a flush is due. The chunks whose events are then safely in the trace go back to the keeper.
    fn flush_if_due(&mut self, flushed: &mut Flushed) {
        // Events that the sink does not accept stay in the spool, so that a trace can be made from them later.
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

    /// Returns whether new events are all that the drain waits for.
    fn may_sleep(&self) -> bool {
        self.encode.merge.is_waiting() && !self.control.is_watched()
    }

    /// Returns the longest sleep, if it is limited.
    fn limit(&self, has_process: bool, flushed: &Flushed) -> Option<Duration> {
        let is_unflushed = self.encode.sink.error.is_none() && self.encode.sink.events > flushed.events;
        let flush = self.flush.filter(|_| is_unflushed).map(|every| every.saturating_sub(flushed.at.elapsed()));
        flush.into_iter().chain(self.short_nap(has_process)).min()
    }

    /// Returns a limit for the sleep if nobody wakes the drain when its process ends or changes.
    fn short_nap(&self, has_process: bool) -> Option<Duration> {
        let becomes = self.spool.header().becomes.load(Ordering::Relaxed) != 0;
        Some(SHORT_NAP).filter(|_| !has_process || becomes)
    }

    /// Releases held threads if nothing was passed on for a while.
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

    /// Ends the trace. `not_kept` is the number of dropped events that precede the kept part.
    fn finish(mut self, end: End, duration: Duration, not_kept: u64, kills: Option<&OomKills>) -> Recorded {
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
        // A process that exits by itself stores its exit status. Otherwise, it has become a program that did not load the
        // recorder.
        let left = header.becomes.load(Ordering::Relaxed) != 0 && header.exit.load(Ordering::Relaxed) == 0;
        let became = self.last_program.program(&self.encode.sink.programs).filter(|_| left);
        if left {
            let path = became.as_ref().map(|program| program.path.to_string_lossy());
            let reason = became.as_ref().and_then(|program| program.reason).map(NotRecordedReason::phrase);
            let resident = became.as_ref().and_then(|program| program.resident);
            counts.insert("unrecorded".to_owned(), json!({"program": path, "reason": reason, "resident": resident}));
        }
        if end.is_sigkill() && kills.is_some_and(OomKills::has_new) {
            counts.insert("oom_kill".to_owned(), true.into());
        }
        let allocators: Vec<_> =
            self.encode.sink.programs.iter().filter_map(|path| linked_in(path.as_os_str())).collect();
        let has_linked = header.linked_images.load(Ordering::Relaxed) > 0;
        // If an image of the process has recorded functions, the other images may still not have any.
        let is_unrecorded = |allocator: &&LinkedIn| allocator.is_refused() || !has_linked;
        let unrecorded: Vec<_> = allocators.iter().filter(is_unrecorded).cloned().collect();
        let recorded = allocators.iter().find(|allocator| !is_unrecorded(allocator));
        if let Some(linked) = recorded.filter(|_| header.linked.load(Ordering::Relaxed) > 0) {
            let mut linked = linked.to_json();
            linked["image"] = self.encode.translator.images().into();
            counts.insert("linked_in".to_owned(), linked);
        }
        if let Some(LinkedIn { program, function, .. }) = unrecorded.first() {
            counts.insert(
                "own_allocator".to_owned(),
                json!({"program": program.to_string_lossy(), "function": function}),
            );
        }
        self.encode.finish(dropped, end.event(), counts);
        Recorded {
            events: self.encode.sink.events,
            flushed: self.flushed,
            allocations: self.encode.sink.allocations,
            lost,
            not_grown: self.returned.refused(),
            repairs,
            images: self.encode.translator.images(),
            programs: self.encode.sink.programs,
            unrecorded,
            left,
            became,
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

/// Returns the nanoseconds from the first kept event to a clock reading.
fn kept(last_part: &LastPart, timeline: &Timeline, now: Moment) -> u64 {
    let mut timeline = timeline.clone();
    let since = if last_part.horizon() == 0 { 0 } else { timeline.time(last_part.horizon()) };
    timeline.time(now.stamp).saturating_sub(since)
}
