//! Converts the content of a spool to an ordered sequence of trace events.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hatf_record::{Clock, Kind, Spool, SpoolEvent};

use super::memory_samples::{MemorySamples, Outside, PendingSamples};
use super::merge::Merge;
use super::timeline::{Moment, Timeline};
use super::translate::Translator;
use crate::record::spool::{OwnFolder, StackFile};
use hatf_trace::event::{Event, EventKind, EventSink, UserMetadata};
use hatf_trace::{Error, Result};

/// Maximum number of image files that are remembered.
const PROGRAMS_MAX: usize = 64;

/// A sink that counts events, forwards them to another sink, and remembers the first error. After an error, nothing
/// more is passed to it.
pub(crate) struct CountingSink<'a> {
    sink: &'a mut dyn EventSink,
    pub(crate) events: u64,
    /// The number of allocation calls.
    pub(crate) allocations: u64,
    /// The number of allocation calls whose stack has one frame.
    pub(crate) single_frames: u64,
    /// The files of the images.
    pub(crate) programs: BTreeSet<PathBuf>,
    pub(crate) error: Option<Error>,
}

impl<'a> CountingSink<'a> {
    pub(crate) fn new(sink: &'a mut dyn EventSink) -> Self {
        Self { sink, events: 0, allocations: 0, single_frames: 0, programs: BTreeSet::new(), error: None }
    }

    /// Remembers an error.
    pub(crate) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Calls `act` unless an error has occurred.
    #[inline]
    pub(crate) fn try_to(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) {
        if self.error.is_none() {
            let result = act(self);
            self.note(result);
        }
    }
}

impl EventSink for CountingSink<'_> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.events += 1;
        let allocates = matches!(event.kind, EventKind::Call(_));
        self.allocations += u64::from(allocates);
        self.single_frames += u64::from(allocates && event.stack.len() == 1);
        if let EventKind::Image { path, .. } = event.kind
            && self.programs.len() < PROGRAMS_MAX
        {
            self.programs.insert(Path::new(OsStr::from_bytes(path)).to_owned());
        }
        self.sink.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sink.user_metadata(user_metadata)
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.flush()
    }
}

/// An encoder of the content of a spool.
pub(crate) struct Encode<'a> {
    pub(crate) merge: Merge<'a>,
    pub(crate) translator: Translator,
    pub(crate) timeline: Timeline,
    pub(crate) stacks: StackFile,
    /// Samples of the process's memory use, and marks set from outside of the program.
    pub(crate) resident: PendingSamples<'a>,
    pub(crate) sink: CountingSink<'a>,
    /// The stamp of the last event passed on.
    pub(crate) last: u64,
}

impl<'a> Encode<'a> {
    /// Creates an encoder that passes the content of a spool to a sink. `folder` contains the spool's stack table.
    pub(crate) fn new(
        spool: Spool<'a>,
        folder: &OwnFolder,
        timeline: Timeline,
        samples: &'a MemorySamples,
        sink: &'a mut dyn EventSink,
    ) -> Self {
        Self {
            merge: Merge::new(spool),
            translator: Translator::default(),
            timeline,
            stacks: StackFile::open(folder),
            resident: PendingSamples::new(samples),
            sink: CountingSink::new(sink),
            last: 0,
        }
    }

    /// Passes on at most `most` events with stamps below `before`. Returns the number of events.
    pub(crate) fn round(&mut self, before: u64, most: usize) -> usize {
        let Self { merge, translator, timeline, stacks, resident, sink, last } = self;
        resident.fetch();
        merge.discover();
        merge.look();
        let given = merge.give(before, most, |slot, text, _| {
            give_outside(resident, slot.time, translator, timeline, sink);
            *last = slot.time;
            resident.follow(slot);
            let slot = timed(slot, timeline);
            let stack = stacks.stack(slot.about.stack);
            match translator.plain(&slot, stack) {
                Some(event) => sink.try_to(|sink| sink.event(&event)),
                None => sink.try_to(|sink| translator.slot(&slot, text, stack, sink)),
            }
        });
        if given < most {
            give_outside(resident, before, translator, timeline, sink);
        }
        given
    }

    /// Converts the time of an event from a stamp to nanoseconds and passes the event on.
    pub(crate) fn slot(&mut self, slot: &SpoolEvent, text: &[u8]) {
        let Self { translator, timeline, stacks, sink, .. } = self;
        let slot = timed(slot, timeline);
        sink.try_to(|sink| translator.slot(&slot, text, stacks.stack(slot.about.stack), sink));
    }

    /// Passes on all remaining events with stamps below `before`. This must be called only when so much time has passed
    /// since that stamp that an event missing from the spool will never be written.
    pub(crate) fn rest(&mut self, before: u64) {
        loop {
            while self.round(before, usize::MAX) > 0 {}
            // In a running program, a missing event may still be written.
            let skipped = before == u64::MAX && self.merge.skip_gaps(true);
            if !skipped && !self.merge.give_up_holding() && !self.round_of_ends(before) {
                return;
            }
        }
    }

    /// Passes on thread ends if nothing else precedes a stamp. Returns whether a thread end was passed on.
    fn round_of_ends(&mut self, before: u64) -> bool {
        self.merge.end_threads(|_| true);
        self.round(before, usize::MAX) > 0
    }

    /// Emits events up to the stamp `until`. At that time, the trace contained `had` more events than it contains now.
    /// If the spool contains fewer than `had` of these events, reports the missing events as lost after the events
    /// found, and returns their number.
    pub(crate) fn pass_missing(&mut self, had: u64, until: u64) -> u64 {
        let before = self.sink.events;
        self.rest(until.saturating_add(1).min(u64::MAX - 1));
        let events = had.saturating_sub(self.sink.events - before);
        let Self { translator, timeline, sink, .. } = self;
        if events > 0 {
            let (time, heap) = (timeline.time(until), translator.images());
            sink.try_to(|sink| sink.event(&Event { time, heap, ..Event::new(EventKind::Lost { events }) }));
        }
        events
    }

    /// Returns the number of lost events that the trace does not report yet. `dropped` is the number counted by the
    /// program.
    pub(crate) fn unreported(&self, dropped: u64) -> u64 {
        let counts = self.merge.counted();
        dropped.saturating_sub(counts.reported_lost).saturating_add(counts.gaps)
    }

    /// Sets the time of the program's end, which may be long after the last event. All events must have been passed on.
    pub(crate) fn end_at(&mut self, end: Moment) {
        self.timeline.time(end.stamp);
    }

    /// Ends the trace with the last lost events, the program's end if it is known, and the counts.
    pub(crate) fn finish(&mut self, dropped: u64, end: Option<EventKind<'_>>, counts: UserMetadata) {
        let unreported = self.unreported(dropped);
        let Self { translator, timeline, sink, resident, .. } = self;
        // This comes after all events, including memory samples, which are not events of the spool.
        translator.go_on_to(timeline.last());
        sink.try_to(|sink| {
            if unreported > 0 {
                let (time, heap) = (translator.time(), translator.images());
                sink.event(&Event { time, heap, ..Event::new(EventKind::Lost { events: unreported }) })?;
            }
            // A program that ends by itself has recorded the untouched pages of its live blocks.
            if let Some(EventKind::Killed { .. }) = end {
                let (time, heap) = (translator.time(), translator.images());
                for (address, bytes) in resident.untouched() {
                    let kind = EventKind::Untouched { address, bytes };
                    sink.event(&Event { time, heap, thread: NO_THREAD, ..Event::new(kind) })?;
                }
            }
            translator.finish(end, sink)?;
            let mut user_metadata = counts;
            user_metadata.insert("events".to_owned(), sink.events.into());
            sink.user_metadata(&user_metadata)
        });
    }
}

/// Returns an event with its times in nanoseconds since the start.
#[inline]
fn timed(slot: &SpoolEvent, timeline: &mut Timeline) -> SpoolEvent {
    let extra = if slot.kind == Kind::LastAccess { timeline.since_start(slot.extra) } else { slot.extra };
    SpoolEvent { time: timeline.time(slot.time), extra, ..*slot }
}

/// The thread of external marks, which is not a thread of the program.
pub(crate) const NO_THREAD: u64 = 0;

/// Passes on memory samples and external marks from before a stamp.
#[inline]
fn give_outside(
    resident: &mut PendingSamples<'_>,
    before: u64,
    translator: &Translator,
    timeline: &mut Timeline,
    sink: &mut CountingSink<'_>,
) {
    // Before the first image, there is no heap to which the data could belong.
    while translator.images() > 0
        && let Some((stamp, said)) = resident.next(before)
    {
        let (time, heap) = (timeline.time(stamp), translator.images());
        let event = match &said {
            Outside::Memory(resident) => Event { time, heap, ..Event::new(EventKind::Resident(*resident)) },
            Outside::Mark(name) => {
                let name = name.as_bytes();
                Event { time, heap, thread: NO_THREAD, ..Event::new(EventKind::Mark { name }) }
            }
        };
        sink.try_to(|sink| sink.event(&event));
    }
}

/// Returns the name of a stamp clock in traces.
pub(crate) fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Cycles if cfg!(target_arch = "x86_64") => "tsc",
        Clock::Cycles => "cntvct",
        Clock::Monotonic => "CLOCK_MONOTONIC",
    }
}

/// Returns whether a trace event is counted when the events of a thread are numbered; see [`super::merge::counts`].
pub(crate) fn is_numbered(event: &Event<'_>) -> bool {
    match event.kind {
        EventKind::ReallocBegin { .. }
        | EventKind::ThreadEnd
        | EventKind::Lost { .. }
        | EventKind::ThreadName { .. }
        | EventKind::Source { .. }
        | EventKind::Symbol { .. }
        | EventKind::Resident(_)
        | EventKind::Exit { .. }
        | EventKind::Killed { .. } => false,
        // The start of the main thread is implied by the image.
        EventKind::ThreadStart { .. } => event.thread != 1,
        EventKind::Mark { .. } | EventKind::Untouched { .. } => event.thread != NO_THREAD,
        _ => true,
    }
}
