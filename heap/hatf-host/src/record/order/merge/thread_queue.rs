//! The events of one thread, read from its chunks in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use hatf_record::{CHUNK_SLOTS, Chunk, Kind, Next, Spool, SpoolEvent, Stream};

use crate::record::order::live_addresses::LiveAddresses;

/// A thread of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ThreadOf {
    pub(crate) image: u32,
    pub(crate) thread: u32,
}

/// The events of a thread.
pub(super) struct ThreadQueue<'m> {
    pub(super) of: ThreadOf,
    /// The kernel's thread ID.
    pub(super) task: u32,
    /// Chunks that were not read yet, by their number.
    pub(super) chunks: BTreeMap<u32, usize>,
    /// The number of the chunk after the one being read.
    pub(super) next_chunk: u32,
    pub(super) reading: Option<(usize, Stream<'m>)>,
    /// The next event and its string.
    pub(super) head: Option<SpoolEvent>,
    pub(super) text: Vec<u8>,
    /// The number of counted events read so far; see [`super::rules::counts`].
    pub(super) read: u64,
    /// The number of events still to be skipped, because the trace already contains them.
    pub(super) skip: u64,
    /// The old block of a realloc that has begun.
    pub(super) pending: Option<u64>,
    /// The number of kept chunks before the one in which the pending realloc began. Everything that began in those
    /// chunks is complete.
    pub(super) before_pending: usize,
    /// The old block, if the trace to be completed already contains its free. The beginning of the realloc then ends no
    /// block when it is read again.
    pub(super) freed: Option<u64>,
    /// The beginning of a realloc that was skipped although its end was not.
    pub(super) begun: Option<SpoolEvent>,
    /// Chunks that were read to their end while a realloc is in progress. They are kept because the beginning of the
    /// realloc may be nowhere else.
    pub(super) kept: Vec<usize>,
    /// The address for which the thread is held, waiting for an event of another thread.
    pub(super) held: Option<u64>,
    pub(super) ended: bool,
    /// The thread's end, which must be passed on after all of its other events, because other destructors run after the
    /// recorder's destructor.
    pub(super) end: Option<SpoolEvent>,
    /// Whether the thread's end is in the trace or was passed on.
    pub(super) has_end: bool,
    /// Whether the queue is ignored until it receives another chunk.
    pub(super) parked: bool,
    /// The gap at the last look, and the time at which it was first seen.
    pub(super) seen_gap: Option<(Gap, Instant)>,
}

/// A missing chunk, by its number, or a missing slot of the chunk before.
type Gap = (u32, Option<usize>);

/// The content of a trace to be completed.
#[derive(Default)]
pub(crate) struct Resumed {
    /// The number of counted events of each thread.
    pub(crate) events: HashMap<ThreadOf, u64>,
    pub(crate) live: LiveAddresses,
    /// Whether recording was off: see [`super::Merge`].
    pub(crate) uncertain: bool,
    /// Blocks freed by a realloc that is not complete, by calling thread.
    pub(crate) freed: HashMap<ThreadOf, u64>,
    /// Threads that have ended.
    pub(crate) ended: HashSet<ThreadOf>,
}

impl<'m> ThreadQueue<'m> {
    pub(super) fn new(of: ThreadOf) -> Self {
        Self {
            of,
            task: 0,
            chunks: BTreeMap::new(),
            next_chunk: 0,
            reading: None,
            head: None,
            text: Vec::new(),
            read: 0,
            skip: 0,
            pending: None,
            before_pending: 0,
            freed: None,
            begun: None,
            kept: Vec::new(),
            held: None,
            ended: false,
            end: None,
            has_end: false,
            parked: false,
            seen_gap: None,
        }
    }

    /// Begins to read the next chunk if it is present.
    pub(super) fn open(&mut self, spool: Spool<'m>, resumed: Option<&Resumed>, notes: bool) -> bool {
        let Some((&number, &chunk)) = self.chunks.first_key_value() else { return false };
        let Some(view) = spool.chunk(chunk) else { return false };
        if let Some(resumed) = resumed
            && self.next_chunk == 0
        {
            // Chunks before the first remaining chunk are gone, because the trace contains their events. The head of
            // the remaining chunk contains the number of these events, if a reader had begun to read it. Otherwise, the
            // reader had read everything before it, so the trace contains exactly these events.
            let in_trace = resumed.events.get(&self.of).copied().unwrap_or_default();
            let noted = view.head().before.load(Relaxed).checked_sub(1);
            self.read = noted.unwrap_or(if number == 0 { 0 } else { in_trace });
            self.skip = in_trace.saturating_sub(self.read);
            self.freed = resumed.freed.get(&self.of).copied();
            self.has_end = resumed.ended.contains(&self.of);
            self.pending = self.freed;
        } else if number != self.next_chunk {
            return false;
        }
        if notes {
            view.head().before.store(self.read.saturating_add(1), Relaxed);
        }
        self.chunks.remove(&number);
        self.next_chunk = number.wrapping_add(1);
        self.reading = Some((chunk, Stream::new(view, self.of.thread, view.head().stamp.load(Relaxed))));
        true
    }

    /// Notes that a realloc has begun or ended.
    pub(super) fn realloc(&mut self, old: Option<u64>) {
        (self.pending, self.freed) = (old, None);
        self.before_pending = self.kept.len();
    }

    /// Skips an event. The beginning of a realloc is passed on anyway if its end is not skipped.
    pub(super) fn pass(&mut self, event: &SpoolEvent) {
        match event.kind {
            Kind::ReallocBegin => self.begun = Some(*event),
            Kind::Realloc | Kind::Reallocarray => self.begun = None,
            _ => {}
        }
        if self.skip == 0 {
            self.head = self.begun.take();
        }
    }

    /// Returns whether the thread has written only a part of its next event, and nothing else.
    pub(super) fn is_unfinished(&self) -> bool {
        self.chunks.is_empty() && self.reading.is_some_and(|(_, stream)| stream.is_unfinished())
    }

    /// Returns the slot or chunk that is missing while later ones are already written.
    fn gap(&self) -> Option<Gap> {
        match &self.reading {
            Some((_, stream)) => stream.gap().map(|slot| (self.next_chunk, Some(slot))),
            None => {
                let is_missing = self.chunks.keys().next().is_some_and(|number| *number != self.next_chunk);
                is_missing.then_some((self.next_chunk, None))
            }
        }
    }

    /// Returns whether the same slot or chunk has been missing for `patience`, as far as earlier calls can tell.
    pub(super) fn has_lasting_gap(&mut self, now: Instant, patience: Duration) -> bool {
        let seen = self.seen_gap.take();
        self.seen_gap = self.gap().map(|gap| seen.filter(|seen| seen.0 == gap).unwrap_or((gap, now)));
        self.seen_gap.is_some_and(|(_, since)| now.duration_since(since) >= patience)
    }

    /// Skips missing events. Returns false if none are missing. If the process has `ended`, the rest of a chunk may be
    /// missing, too.
    pub(super) fn skip_gap(&mut self, spool: Spool<'m>, ended: bool) -> bool {
        match &mut self.reading {
            Some((chunk, stream)) => {
                if stream.skip_gap() {
                    return true;
                }
                // Look at later chunks only here: there may be thousands of gaps, and hundreds of chunks without events.
                let mut later = self.chunks.values().filter_map(|chunk| spool.chunk(*chunk));
                let is_over = ended && later.any(|chunk| has_events(&chunk));
                if is_over {
                    self.kept.push(*chunk);
                    self.reading = None;
                }
                is_over
            }
            None => match self.chunks.keys().next() {
                Some(number) if *number != self.next_chunk => {
                    self.next_chunk = *number;
                    true
                }
                _ => false,
            },
        }
    }

    /// Returns the next events that have already been written.
    pub(super) fn ahead(&self, spool: Spool<'m>) -> impl Iterator<Item = SpoolEvent> {
        let mut stream = self.reading.map(|(_, stream)| stream);
        let (mut next, mut text) = (self.next_chunk, Vec::new());
        let thread = self.of.thread;
        let behind = std::iter::from_fn(move || {
            loop {
                text.clear();
                match stream.as_mut()?.next(&mut text) {
                    Next::Event(event) => return Some(event),
                    Next::Nothing => return None,
                    Next::End => {
                        let chunk = spool.chunk(*self.chunks.get(&next)?)?;
                        let stamp = chunk.head().stamp.load(Relaxed);
                        (stream, next) = (Some(Stream::new(chunk, thread, stamp)), next.wrapping_add(1));
                    }
                }
            }
        });
        self.head.into_iter().chain(behind)
    }
}

/// Returns whether a thread wrote events to a chunk. A chunk has none if a signal handler installed another chunk first;
/// see [`hatf_record::Producer::install`].
fn has_events(chunk: &Chunk<'_>) -> bool {
    (0..CHUNK_SLOTS).any(|number| chunk.slot(number).is_some_and(|[first, _]| first != Kind::End as u64))
}
