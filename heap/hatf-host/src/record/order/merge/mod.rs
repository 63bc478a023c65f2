//! Merges the events of all threads into one order.
//!
//! Each thread's events are read from its chunks in order. Between threads, the stamps determine the order: the end of
//! a block is written and stamped before its address can be reused, and the allocation of a block is stamped before any
//! code can use the block. If the counters of two cores differ slightly, stamps may still contradict this: an address
//! is allocated while it is live, or freed while it is not. The thread is then held until the event that must come
//! first, from another thread, has been passed on. Such repairs are counted.
//!
//! A thread's queue is ready, waiting, held or parked. All transitions between these states are in this module.

mod endings;
mod rules;
mod thread_queue;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use hatf_record::{Kind, Next, Spool, SpoolEvent};

use super::live_addresses::LiveAddresses;
pub(super) use rules::effect;
pub(crate) use rules::is_lasting;
use rules::{begins, counts, ends};
use thread_queue::ThreadQueue;
pub(crate) use thread_queue::{Resumed, ThreadOf};

/// Maximum number of events of another thread among which an event that must come first is searched for.
const LOOK_AHEAD: usize = 2000;

/// Counts collected during merging.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Events that were held until an event of another thread was passed on.
    pub(crate) repairs: u64,
    /// Held events that were passed on anyway, because they waited for each other.
    pub(crate) contradictions: u64,
    /// Slots that were reserved but never written.
    pub(crate) gaps: u64,
    /// Events that threads reported as lost.
    pub(crate) reported_lost: u64,
}

/// A merge of the events of all threads.
pub(crate) struct Merge<'m> {
    spool: Spool<'m>,
    queues: Vec<ThreadQueue<'m>>,
    places: HashMap<ThreadOf, usize>,
    /// The last known owner and image of each chunk. No two chunks ever have the same owner and image.
    known: Vec<(u64, u64)>,
    /// Queues that have a next event and are not held, ordered by the event's stamp.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// Queues without a next event.
    waiting: Vec<usize>,
    held: Vec<usize>,
    live: LiveAddresses,
    /// Whether recording was off. Blocks may then be live although their allocation was not recorded, so a
    /// contradiction is no reason to hold a thread.
    uncertain: bool,
    /// Chunks that have been read completely.
    finished: Vec<usize>,
    /// The content of the trace to be completed, if any.
    resumed: Option<Resumed>,
    /// The stamp before which only lasting events count, if only a part of the spool is read. In that case, the spool
    /// is not modified.
    horizon: Option<u64>,
    counts: Counts,
}

impl<'m> Merge<'m> {
    pub(crate) fn new(spool: Spool<'m>) -> Self {
        Self {
            spool,
            queues: Vec::new(),
            places: HashMap::new(),
            known: vec![(0, 0); spool.mapped()],
            ready: BinaryHeap::new(),
            waiting: Vec::new(),
            held: Vec::new(),
            live: LiveAddresses::default(),
            uncertain: false,
            finished: Vec::new(),
            resumed: None,
            horizon: None,
            counts: Counts::default(),
        }
    }

    /// Makes the merge skip the first events of each thread, which a trace already contains.
    pub(crate) fn after(&mut self, mut resumed: Resumed) {
        self.live = std::mem::take(&mut resumed.live);
        self.uncertain = resumed.uncertain;
        self.resumed = Some(resumed);
    }

    /// Makes the merge count all events from a stamp on, but only [lasting](is_lasting) events before it. Threads begin
    /// with the first chunk that is present. The spool stays unchanged, so that it can be read again.
    pub(crate) fn begin_at(&mut self, horizon: u64) {
        self.horizon = Some(horizon);
        self.uncertain |= horizon > 0;
        self.resumed.get_or_insert_default();
    }

    /// Returns the counts so far.
    pub(crate) fn counted(&self) -> Counts {
        self.counts
    }

    /// Returns the chunks that were read to their end since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.finished)
    }

    /// Returns the number of chunks that were read to their end.
    pub(crate) fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Returns whether the merge waits for new events of the threads, and for nothing else.
    pub(crate) fn is_waiting(&self) -> bool {
        let has_gap = |place: &usize| self.queues[*place].seen_gap.is_some();
        self.ready.is_empty() && self.held.is_empty() && !self.waiting.iter().any(has_gap)
    }

    /// Finds chunks that threads have taken and adds them to their queues.
    pub(crate) fn discover(&mut self) {
        for chunk in self.spool.taken() {
            let (Some(known), Some(view)) = (self.known.get_mut(chunk), self.spool.chunk(chunk)) else { continue };
            let head = view.head();
            let owner = head.owner.load(Acquire);
            let image_word = head.image.load(Relaxed);
            let ((thread, number), (_, image)) = (halves(owner), halves(image_word));
            // The chunk's thread may not have initialized it yet.
            if thread == 0 || image == 0 || *known == (owner, image_word) {
                continue;
            }
            *known = (owner, image_word);
            let of = ThreadOf { image, thread };
            let place = *self.places.entry(of).or_insert_with(|| {
                self.waiting.push(self.queues.len());
                self.queues.push(ThreadQueue::new(of));
                self.queues.len() - 1
            });
            let queue = &mut self.queues[place];
            (queue.task, _) = halves(head.task.load(Relaxed));
            queue.chunks.insert(number, chunk);
            if std::mem::take(&mut queue.parked) {
                self.waiting.push(place);
            }
        }
    }

    /// Looks again for events of threads that had no next event.
    pub(crate) fn look(&mut self) {
        for place in std::mem::take(&mut self.waiting) {
            self.advance(place);
        }
    }

    /// Passes on at most `most` events in order, with stamps below `before`. Returns the number of events.
    pub(crate) fn give(
        &mut self,
        before: u64,
        most: usize,
        mut give: impl FnMut(&SpoolEvent, &[u8], ThreadOf),
    ) -> usize {
        let mut given = 0;
        while given < most
            && let Some(Reverse((stamp, place))) = self.ready.pop()
        {
            if stamp >= before {
                self.ready.push(Reverse((stamp, place)));
                break;
            }
            // The next event is from this thread as long as no other thread has an earlier event.
            loop {
                let queue = &mut self.queues[place];
                let Some(event) = queue.head else { break };
                let another = self.ready.peek().map_or(u64::MAX, |Reverse((stamp, _))| *stamp);
                if event.time > another || event.time >= before || given >= most {
                    self.ready.push(Reverse((event.time, place)));
                    break;
                }
                if !self.follows(&event, place) {
                    break;
                }
                let queue = &mut self.queues[place];
                give(&event, &queue.text, queue.of);
                given += 1;
                queue.head = None;
                given += self.give_plain(place, another.min(before.saturating_sub(1)), most - given, &mut give);
                self.read(place);
                if self.queues[place].head.is_none() {
                    self.waiting.push(place);
                }
                if !self.held.is_empty() {
                    self.resume();
                }
            }
        }
        given
    }

    /// Passes on up to `most` plain events from the front of a queue, as long as their stamps are at most `until`.
    /// Stops at the first event that needs special handling. Returns the number of events.
    #[inline]
    fn give_plain(
        &mut self,
        place: usize,
        until: u64,
        most: usize,
        give: &mut impl FnMut(&SpoolEvent, &[u8], ThreadOf),
    ) -> usize {
        // With several threads, an event that contradicts the live blocks may have to wait for another thread's event.
        let checks = !self.uncertain && self.queues.len() > 1;
        let queue = &mut self.queues[place];
        let Some((_, stream)) = &mut queue.reading else { return 0 };
        if queue.skip > 0 || self.horizon.is_some() || !self.held.is_empty() {
            return 0;
        }
        let mut given = 0;
        while given < most
            && let Some(plain) = stream.plain()
            && plain.event.time <= until
        {
            let address = plain.event.address;
            let agrees = match plain.event.kind {
                Kind::Free => self.live.remove(address),
                _ => self.live.insert(address),
            };
            if checks && !agrees {
                break;
            }
            stream.pass(&plain);
            give(&plain.event, &[], queue.of);
            given += 1;
        }
        queue.read = queue.read.saturating_add(given as u64);
        given
    }

    /// Releases the held thread with the earliest event, whatever it waits for. Returns false if no thread is held.
    /// This function is used when no other events arrive: if the clocks differ by more than the lifetimes of blocks,
    /// two threads may wait for each other.
    pub(crate) fn give_up_holding(&mut self) -> bool {
        let stamp = |place: &usize| self.queues[*place].head.map_or(u64::MAX, |event| event.time);
        let Some(first) = (0..self.held.len()).min_by_key(|at| stamp(&self.held[*at])) else { return false };
        let place = self.held.swap_remove(first);
        self.counts.contradictions += 1;
        // From now on, the event determines the state of the address.
        if let (Some(event), Some(address)) = (self.queues[place].head, self.queues[place].held.take()) {
            if event.address == address && !ends(&event, address) {
                self.live.remove(address);
            } else {
                self.live.insert(address);
            }
        }
        self.advance(place);
        true
    }

    /// Reads the next event of a queue and moves the queue to the matching state.
    fn advance(&mut self, place: usize) {
        self.read(place);
        match self.queues[place].head {
            Some(event) => self.ready.push(Reverse((event.time, place))),
            None => self.waiting.push(place),
        }
    }

    /// Reads the next event of a queue, if there is one.
    #[inline]
    fn read(&mut self, place: usize) {
        let queue = &mut self.queues[place];
        while queue.head.is_none() {
            let Some((chunk, stream)) = &mut queue.reading else {
                if !queue.open(self.spool, self.resumed.as_ref(), self.horizon.is_none()) {
                    return;
                }
                continue;
            };
            if !queue.text.is_empty() {
                queue.text.clear();
            }
            match stream.next(&mut queue.text) {
                Next::Nothing => return,
                Next::End => {
                    queue.kept.push(*chunk);
                    queue.reading = None;
                    if queue.end.is_none() {
                        let before = if queue.pending.is_some() { queue.before_pending } else { queue.kept.len() };
                        self.finished.extend(queue.kept.drain(..before));
                        queue.before_pending = 0;
                    }
                }
                Next::Event(event) => {
                    if event.kind == Kind::Lost {
                        self.counts.reported_lost = self.counts.reported_lost.saturating_add(event.size);
                    }
                    if event.kind == Kind::ThreadEnd {
                        queue.ended = true;
                        queue.end = Some(event).filter(|_| !queue.has_end);
                        continue;
                    }
                    if self.horizon.is_some_and(|horizon| event.time < horizon) && !is_lasting(event.kind) {
                        continue;
                    }
                    let counted = u64::from(counts(event.kind));
                    queue.read = queue.read.saturating_add(counted);
                    if queue.skip == 0 {
                        queue.head = Some(event);
                    } else {
                        queue.skip -= counted;
                        queue.pass(&event);
                    }
                }
            }
        }
    }

    /// Returns whether an event may be passed on now and, if so, applies it to the live blocks. Otherwise, its queue is
    /// held.
    #[inline]
    fn follows(&mut self, event: &SpoolEvent, place: usize) -> bool {
        let queue = &self.queues[place];
        let freed_before = event.kind == Kind::ReallocBegin && queue.freed == Some(event.old);
        let (end, begin) = if freed_before { (None, None) } else { effect(event, queue.pending) };
        if let Some(address) = end
            && !self.uncertain
            && !self.live.has(address)
            && self.is_ahead(address, place, begins)
        {
            self.hold(place, address);
            return false;
        }
        if let Some(address) = begin
            && !self.uncertain
            && end != Some(address)
            && self.live.has(address)
            && self.is_ahead(address, place, ends)
        {
            self.hold(place, address);
            return false;
        }
        if let Some(address) = end {
            self.live.remove(address);
        }
        if let Some(address) = begin {
            self.live.insert(address);
        }
        match event.kind {
            Kind::ReallocBegin => self.queues[place].realloc(Some(event.old)),
            Kind::Realloc | Kind::Reallocarray => self.queues[place].realloc(None),
            Kind::Image => {
                self.live.clear();
                // If only a part of the spool is read, events before the horizon are omitted.
                if self.horizon.is_none_or(|horizon| horizon == 0 || event.time >= horizon) {
                    self.uncertain = false;
                }
            }
            Kind::Start => {
                self.live.clear();
                self.uncertain = true;
            }
            _ => {}
        }
        true
    }

    /// Returns whether one of the next events of another thread is of the wanted kind and concerns this address.
    #[cold]
    fn is_ahead(&self, address: u64, place: usize, wanted: fn(&SpoolEvent, u64) -> bool) -> bool {
        let image = self.queues[place].of.image;
        let others = self.queues.iter().enumerate().filter(|(other, queue)| *other != place && queue.of.image == image);
        let mut others = others;
        others.any(|(_, queue)| queue.ahead(self.spool).take(LOOK_AHEAD).any(|event| wanted(&event, address)))
    }

    fn hold(&mut self, place: usize, address: u64) {
        self.counts.repairs += 1;
        self.queues[place].held = Some(address);
        self.held.push(place);
    }

    /// Releases held threads whose address now has the state they need.
    #[cold]
    fn resume(&mut self) {
        let mut at = 0;
        while let Some(place) = self.held.get(at).copied() {
            let queue = &self.queues[place];
            let (Some(event), Some(address)) = (queue.head, queue.held) else { break };
            let (end, _) = effect(&event, queue.pending);
            let must_live = end == Some(address);
            if self.live.has(address) == must_live {
                self.queues[place].held = None;
                self.held.swap_remove(at);
                self.ready.push(Reverse((event.time, place)));
            } else {
                at += 1;
            }
        }
    }
}

/// Splits a word into its low half and its high half.
#[expect(clippy::cast_possible_truncation, reason = "takes the low half")]
pub(crate) fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests;
