//! The content of an unfinished trace, which must not be read from the spool again.

use std::collections::HashMap;

use crate::record::order::{Merge, Resumed, ThreadOf, Translator, is_numbered};
use hatf_trace::event::{Call, Event, EventKind, EventSink, EventSource, Item, RESUME, SEGMENT, UserMetadata};
use hatf_trace::{Error, Result};
use serde_json::{Value, json};

/// The content of an unfinished trace.
#[derive(Default)]
pub(super) struct UnfinishedTrace {
    /// The number of next records that restore a state, so that they are not events of the segment.
    carried: u64,
    /// The number of events in earlier segments, minus the number of carried records.
    pub(super) before: i64,
    pub(super) has: Resumed,
    pub(super) images: u64,
    /// The time of the last event.
    pub(super) time: u64,
    /// Whether the trace contains the program's end.
    pub(super) whole: bool,
}

impl UnfinishedTrace {
    /// Passes all events up to the truncation of the trace to a sink.
    pub(super) fn copy(&mut self, written: &mut dyn EventSource, sink: &mut dyn EventSink) -> Result<()> {
        let user_metadata = written.user_metadata();
        let of_segment: UserMetadata =
            user_metadata.into_iter().filter(|(key, _)| key == RESUME || key == SEGMENT).collect();
        if !of_segment.is_empty() {
            self.resume(&of_segment);
            sink.user_metadata(&of_segment)?;
        }
        loop {
            let item = match written.next() {
                Ok(Some(item)) => item,
                // Report a system error instead of treating it as the end of the trace, because the file may be intact
                // although it cannot be read now.
                Err(error @ Error::System(..)) => return Err(error),
                Ok(None) | Err(_) => return Ok(()),
            };
            match item {
                Item::Comment(text) => sink.comment(text)?,
                Item::Event(event) => {
                    sink.event(&event)?;
                    self.note(&event);
                }
            }
        }
    }

    /// Continues where the user metadata of a segment say that the earlier segments end.
    fn resume(&mut self, user_metadata: &UserMetadata) {
        let resume = &user_metadata.get(RESUME).unwrap_or(&Value::Null);
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        self.carried = user_metadata.get(SEGMENT).map_or(0, |segment| number(&segment["carried_records"]));
        self.images = number(&resume["images"]);
        self.has.uncertain = resume["uncertain"].as_bool().unwrap_or_default();
        self.before = i64::try_from(number(&resume["events"])).unwrap_or(i64::MAX)
            - i64::try_from(self.carried).unwrap_or_default();
        for row in resume["threads"].as_array().into_iter().flatten() {
            let part = |index: usize| u32::try_from(number(&row[index])).unwrap_or_default();
            let of = ThreadOf { image: part(0), thread: part(1) };
            self.has.events.insert(of, number(&row[2]));
            if row[3] == true {
                self.has.ended.insert(of);
            }
            self.has.freed.extend(row[4].as_u64().map(|old| (of, old)));
        }
    }

    /// Makes the merge and the translator continue where the trace ends.
    pub(super) fn go_on(self, merge: &mut Merge<'_>, translator: &mut Translator) {
        translator.after(self.images);
        for (of, old) in &self.has.freed {
            translator.begin_realloc(of.thread, *old, true);
        }
        merge.after(self.has);
    }

    pub(super) fn note(&mut self, event: &Event<'_>) {
        let thread = u32::try_from(event.thread).unwrap_or_default();
        let is_carried = self.carried > 0;
        self.carried = self.carried.saturating_sub(1);
        self.time = self.time.max(event.time);
        let Resumed { events, live, uncertain, freed, ended } = &mut self.has;
        if let EventKind::Image { .. } = event.kind {
            live.clear();
            // The metadata of a segment already count the image that it carries over.
            if !is_carried {
                self.images += 1;
                *uncertain = false;
                freed.clear();
            }
        }
        if event.kind == (EventKind::Recording { on: true }) {
            live.clear();
            *uncertain = true;
        }
        let of = ThreadOf { image: u32::try_from(self.images).unwrap_or(u32::MAX), thread };
        match event.kind {
            EventKind::Call(Call { old, address, .. }) | EventKind::ReallocEnd(Call { old, address, .. }) => {
                freed.remove(&of);
                if old != 0 {
                    live.remove(old);
                }
                if address != 0 {
                    live.insert(address);
                }
            }
            EventKind::Free { address } => {
                live.remove(address);
            }
            EventKind::ReallocBegin { old } => {
                live.remove(old);
                freed.insert(of, old);
            }
            EventKind::ThreadEnd => drop(ended.insert(of)),
            EventKind::Exit { .. } | EventKind::Killed { .. } => self.whole = true,
            _ => {}
        }
        if !is_carried && is_numbered(event) {
            *events.entry(of).or_default() += 1;
        }
    }
}

/// The place where the next segment of a recording continues, from which `hatf recover` can complete that segment
/// without reading the segments before it.
///
/// # Examples
///
/// ```
/// use hatf_host::record::ResumePoint;
/// use hatf_trace::Event;
///
/// let mut point = ResumePoint::default();
/// point.note(&Event { heap: 1, ..Event::malloc(0x1000, 24) });
/// let user_metadata = point.start_segment();
/// assert_eq!(user_metadata["resume"]["events"], 1);
/// ```
#[derive(Debug, Default)]
pub struct ResumePoint {
    events: u64,
    images: u64,
    uncertain: bool,
    threads: HashMap<ThreadOf, (u64, Ended)>,
    /// The thread of the last event and the number of its events that `threads` does not count yet.
    last: Option<(ThreadOf, u64)>,
    /// Blocks freed by a realloc that is not complete, by calling thread.
    freed: HashMap<ThreadOf, u64>,
}

/// The number of segments that began after a thread ended, from 1; 0 if it has not ended.
type Ended = u8;

impl ResumePoint {
    /// Processes an event of the recording. The heap must be the one that the recorder assigned.
    pub fn note(&mut self, event: &Event<'_>) {
        self.events += 1;
        match event.kind {
            EventKind::Image { .. } => {
                self.images += 1;
                self.uncertain = false;
                self.freed.clear();
            }
            EventKind::Recording { on: true } => self.uncertain = true,
            _ => {}
        }
        let of = self.thread(event);
        match event.kind {
            EventKind::ReallocBegin { old } => drop(self.freed.insert(of, old)),
            EventKind::ReallocEnd(_) => drop(self.freed.remove(&of)),
            EventKind::ThreadEnd => {
                self.freed.remove(&of);
                self.threads.entry(of).or_default().1 = 1;
            }
            _ => {}
        }
        if is_numbered(event) {
            match &mut self.last {
                Some((last, events)) if *last == of => *events += 1,
                _ => {
                    self.settle();
                    self.last = Some((of, 1));
                }
            }
        }
    }

    fn thread(&self, event: &Event<'_>) -> ThreadOf {
        let image = u32::try_from(self.images).unwrap_or(u32::MAX);
        ThreadOf { image, thread: u32::try_from(event.thread).unwrap_or_default() }
    }

    fn settle(&mut self) {
        if let Some((of, events)) = self.last.take() {
            self.threads.entry(of).or_default().0 += events;
        }
    }

    /// Returns whether a segment can end here, because no thread is between the start and the end of a realloc.
    #[must_use]
    pub fn is_between_calls(&self) -> bool {
        self.freed.is_empty()
    }

    /// Starts a segment and returns the user metadata that describe where it continues. Threads that ended before the
    /// previous segment began are forgotten, because the spool no longer contains their events.
    pub fn start_segment(&mut self) -> UserMetadata {
        self.settle();
        self.threads.retain(|_, (_, ended)| *ended < 3);
        for of in self.freed.keys() {
            self.threads.entry(*of).or_default();
        }
        let row = |(of, (events, ended)): (&ThreadOf, &(u64, Ended))| {
            json!([of.image, of.thread, events, *ended > 0, self.freed.get(of)])
        };
        let rows: Vec<_> = self.threads.iter().map(row).collect();
        self.threads.values_mut().filter(|(_, ended)| *ended > 0).for_each(|(_, ended)| *ended += 1);
        let resume =
            json!({"events": self.events, "images": self.images, "uncertain": self.uncertain, "threads": rows});
        UserMetadata::from_iter([(RESUME.to_owned(), resume)])
    }
}
