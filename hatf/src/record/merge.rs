//! The events of all threads, in one order.
//!
//! Each thread's events come in their order, from its chunks. Between threads the order is that of the stamps: a block's end is
//! written, and stamped, before its address can be given out again, and its beginning before anybody can have it. Where the
//! counters of two cores differ a little, a stamp may still contradict that: an address is allocated that is live, or freed
//! though it is not. Then the thread is held until the event of another thread that has to come first
//! was given. How often is counted.
//!
//! It is long because a line is ready, waiting, held or parked, and whatever moves it from one to another stands here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use hatf_record::{Event, Kind, Next, Spool, Stream};

use super::live::Live;

/// Events of another thread that are looked through for one that has to come first.
const LOOK_AHEAD: usize = 2000;

/// A thread of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ThreadOf {
    pub(super) image: u32,
    pub(super) thread: u32,
}

/// The events of a thread.
struct Line<'m> {
    of: ThreadOf,
    /// The system's number of the thread.
    task: u32,
    /// Chunks that are not read yet, by their number.
    chunks: BTreeMap<u32, usize>,
    /// The number of the chunk after that which is being read.
    next_chunk: u32,
    reading: Option<(usize, Stream<'m>)>,
    /// The next event, and its text.
    head: Option<Event>,
    text: Vec<u8>,
    /// Events that were read: those that count, see [`counts`].
    read: u64,
    /// Of these, how many are still to be passed over: the trace has them.
    skip: u64,
    /// The old block of a realloc that has begun.
    pending: Option<u64>,
    /// How many of the chunks that are kept come before the one in which that realloc began: what began there is whole.
    before_pending: usize,
    /// That block, if the trace that is completed has it as freed: the beginning ends nothing when it is read again.
    freed: Option<u64>,
    /// The beginning of a realloc that was passed over; its end was not.
    begun: Option<Event>,
    /// Chunks that are read to their end, while a realloc is not: its beginning may be nowhere but in them.
    kept: Vec<usize>,
    /// It waits for an event of another thread about this address.
    held: Option<u64>,
    ended: bool,
    /// Its end, which is to be given behind all that the thread does: destructors run after the recorder's.
    end: Option<Event>,
    /// The trace has its end, or it was given.
    has_end: bool,
    /// It is not looked at any more, unless it gets another chunk.
    parked: bool,
}

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Events that were held until one of another thread had been given.
    pub(super) repairs: u64,
    /// Events of these that were given all the same, as each waited for the other.
    pub(super) contradictions: u64,
    /// Slots that were reserved and never written.
    pub(super) gaps: u64,
    /// Events that threads said were lost.
    pub(super) told_lost: u64,
}

/// What a trace that is to be completed has already.
#[derive(Default)]
pub(super) struct Resumed {
    /// How many events of each thread, of those that count.
    pub(super) events: HashMap<ThreadOf, u64>,
    pub(super) live: Live,
    /// See [`Merge`].
    pub(super) uncertain: bool,
    /// Blocks that a realloc has freed which is not at its end: by the thread that called it.
    pub(super) freed: HashMap<ThreadOf, u64>,
    /// Threads that have ended.
    pub(super) ended: HashSet<ThreadOf>,
}

/// Puts the events of all threads in order.
pub(super) struct Merge<'m> {
    spool: Spool<'m>,
    lines: Vec<Line<'m>>,
    places: HashMap<ThreadOf, usize>,
    /// For each chunk: the last owner that it is known to have, and that one's image. No two chunks ever have the same.
    known: Vec<(u64, u64)>,
    /// Lines that have a next event and are not held, by its stamp.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// Lines that had no next event.
    waiting: Vec<usize>,
    held: Vec<usize>,
    live: Live,
    /// Recording was off, so blocks live that were not seen to begin: that is no reason to hold a thread.
    uncertain: bool,
    /// Chunks that are read to their end.
    finished: Vec<usize>,
    /// What a trace has already, where one is to be completed.
    resumed: Option<Resumed>,
    /// The stamp before which nothing counts but what lasts, where a part of the spool is looked at, and nothing is noted in it.
    horizon: Option<u64>,
    counts: Counts,
}

/// Whether an event is one of those that a thread's events are numbered by: it becomes exactly one event of the trace.
pub(super) fn counts(kind: Kind) -> bool {
    !matches!(kind, Kind::ReallocBegin | Kind::Lost | Kind::ThreadEnd | Kind::ThreadName | Kind::PythonFrame)
}

/// Whether an event says something about those that follow, however late they come.
pub(super) fn is_lasting(kind: Kind) -> bool {
    use Kind::{Image, ModuleLoad, ModuleUnload, PythonFrame, Start, Stop, ThreadEnd, ThreadName, ThreadStart};
    matches!(
        kind,
        Image | ModuleLoad | ModuleUnload | PythonFrame | ThreadStart | ThreadEnd | ThreadName | Start | Stop
    )
}

impl<'m> Merge<'m> {
    pub(super) fn new(spool: Spool<'m>) -> Self {
        Self {
            spool,
            lines: Vec::new(),
            places: HashMap::new(),
            known: vec![(0, 0); spool.mapped()],
            ready: BinaryHeap::new(),
            waiting: Vec::new(),
            held: Vec::new(),
            live: Live::default(),
            uncertain: false,
            finished: Vec::new(),
            resumed: None,
            horizon: None,
            counts: Counts::default(),
        }
    }

    /// Has the first events of each thread passed over, which are in a trace already.
    pub(super) fn after(&mut self, mut resumed: Resumed) {
        self.live = std::mem::take(&mut resumed.live);
        self.uncertain = resumed.uncertain;
        self.resumed = Some(resumed);
    }

    /// Has events count from a stamp on, and before it those that [last](is_lasting). Threads begin with the first chunk that is there.
    /// The spool stays as it is, to be read again.
    pub(super) fn begin_at(&mut self, horizon: u64) {
        self.horizon = Some(horizon);
        self.uncertain |= horizon > 0;
        self.resumed.get_or_insert_default();
    }

    /// Returns what was counted so far.
    pub(super) fn counted(&self) -> Counts {
        self.counts
    }

    /// Returns the chunks that were read to their end since the last call.
    pub(super) fn take_finished(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.finished)
    }

    /// Returns how many chunks were read to their end.
    pub(super) fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Finds chunks that threads have taken, and gives them to their lines.
    pub(super) fn discover(&mut self) {
        for chunk in self.spool.taken() {
            let (Some(known), Some(view)) = (self.known.get_mut(chunk), self.spool.chunk(chunk)) else { continue };
            let head = view.head();
            let owner = head.owner.load(Acquire);
            let image_word = head.image.load(Relaxed);
            let ((thread, number), (_, image)) = (halves(owner), halves(image_word));
            // Its thread may not have come so far.
            if thread == 0 || image == 0 || *known == (owner, image_word) {
                continue;
            }
            *known = (owner, image_word);
            let of = ThreadOf { image, thread };
            let place = *self.places.entry(of).or_insert_with(|| {
                self.waiting.push(self.lines.len());
                self.lines.push(Line::new(of));
                self.lines.len() - 1
            });
            let line = &mut self.lines[place];
            (line.task, _) = halves(head.task.load(Relaxed));
            line.chunks.insert(number, chunk);
            if std::mem::take(&mut line.parked) {
                self.waiting.push(place);
            }
        }
    }

    /// Has the threads that had no event look again.
    pub(super) fn look(&mut self) {
        for place in std::mem::take(&mut self.waiting) {
            self.advance(place);
        }
    }

    /// Gives events in order, those before a stamp, at most so many; returns how many it gave.
    pub(super) fn give(&mut self, before: u64, most: usize, mut give: impl FnMut(&Event, &[u8], ThreadOf)) -> usize {
        let mut given = 0;
        while given < most
            && let Some(Reverse((stamp, place))) = self.ready.pop()
        {
            if stamp >= before {
                self.ready.push(Reverse((stamp, place)));
                break;
            }
            // As long as no other thread's is earlier, the next is this one's.
            loop {
                let line = &mut self.lines[place];
                let Some(event) = line.head else { break };
                let another = self.ready.peek().map_or(u64::MAX, |Reverse((stamp, _))| *stamp);
                if event.time > another || event.time >= before || given >= most {
                    self.ready.push(Reverse((event.time, place)));
                    break;
                }
                if !self.follows(&event, place) {
                    break;
                }
                let line = &mut self.lines[place];
                give(&event, &line.text, line.of);
                given += 1;
                line.head = None;
                given += self.give_plain(place, another.min(before.saturating_sub(1)), most - given, &mut give);
                self.read(place);
                if self.lines[place].head.is_none() {
                    self.waiting.push(place);
                }
                if !self.held.is_empty() {
                    self.resume();
                }
            }
        }
        given
    }

    /// Gives the plain events that a line has next, stamped `until` this or before, at most so many; returns how many it gave. It ends
    /// before any event of which more has to be known.
    #[inline]
    fn give_plain(
        &mut self,
        place: usize,
        until: u64,
        most: usize,
        give: &mut impl FnMut(&Event, &[u8], ThreadOf),
    ) -> usize {
        // With others, a contradiction may have to wait for one of them.
        let checks = !self.uncertain && self.lines.len() > 1;
        let line = &mut self.lines[place];
        let Some((_, stream)) = &mut line.reading else { return 0 };
        if line.skip > 0 || self.horizon.is_some() || !self.held.is_empty() {
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
            give(&plain.event, &[], line.of);
            given += 1;
        }
        line.read = line.read.saturating_add(given as u64);
        given
    }

    /// Lets the held thread with the earliest event go on, whatever it waits for; `false` if none is held. For when nothing else
    /// comes: where clocks differ by more than blocks live, two threads may wait for each other.
    pub(super) fn give_up_holding(&mut self) -> bool {
        let stamp = |place: &usize| self.lines[*place].head.map_or(u64::MAX, |event| event.time);
        let Some(first) = (0..self.held.len()).min_by_key(|at| stamp(&self.held[*at])) else { return false };
        let place = self.held.swap_remove(first);
        self.counts.contradictions += 1;
        // Its address is as it says from now on.
        if let (Some(event), Some(address)) = (self.lines[place].head, self.lines[place].held.take()) {
            if event.address == address && !ends(&event, address) {
                self.live.remove(address);
            } else {
                self.live.insert(address);
            }
        }
        self.advance(place);
        true
    }

    /// Passes over slots and chunks that were reserved and will never be written, in all threads that wait; returns whether there
    /// were.
    pub(super) fn skip_gaps(&mut self) -> bool {
        let mut found = false;
        for place in &self.waiting {
            if self.lines[*place].skip_gap() {
                self.counts.gaps += 1;
                found = true;
            }
        }
        found
    }

    /// Returns whether a thread waits for a slot or a chunk behind which others are written.
    pub(super) fn has_gaps(&self) -> bool {
        self.waiting.iter().any(|place| self.lines[*place].has_gap())
    }

    /// Has the ends of threads come next that have said so and are gone: nothing can come behind it then.
    pub(super) fn end_threads(&mut self, is_gone: impl Fn(u32) -> bool) {
        let is_ending = |place: &usize| self.lines[*place].end.is_some();
        if !self.waiting.iter().any(is_ending) {
            return;
        }
        for place in std::mem::take(&mut self.waiting) {
            if self.lines[place].end.is_some() && is_gone(self.lines[place].task) {
                // All that it has written is there now.
                self.read(place);
                let line = &mut self.lines[place];
                if line.head.is_none() {
                    line.head = line.end.take();
                    line.has_end = true;
                }
            }
            match self.lines[place].head {
                Some(event) => self.ready.push(Reverse((event.time, place))),
                None => self.waiting.push(place),
            }
        }
    }

    /// Finishes the chunks of threads that have ended and are gone.
    pub(super) fn finish_threads(&mut self, is_gone: impl Fn(u32) -> bool) {
        for place in &self.waiting {
            let line = &mut self.lines[*place];
            if line.ended && line.end.is_none() && line.chunks.is_empty() && is_gone(line.task)
                && let Some((chunk, mut stream)) = line.reading
                // Nothing came between the last look and its end.
                && stream.next(&mut Vec::new()) == Next::Nothing
            {
                line.reading = None;
                self.finished.append(&mut line.kept);
                self.finished.push(chunk);
            }
        }
        let lines = &mut self.lines;
        self.waiting.retain(|place| {
            let line = &mut lines[*place];
            line.parked = line.ended && line.end.is_none() && line.reading.is_none() && line.chunks.is_empty();
            !line.parked
        });
    }

    /// Reads the next event of a line, and puts the line where it belongs.
    fn advance(&mut self, place: usize) {
        self.read(place);
        match self.lines[place].head {
            Some(event) => self.ready.push(Reverse((event.time, place))),
            None => self.waiting.push(place),
        }
    }

    /// Reads the next event of a line, if there is one.
    #[inline]
    fn read(&mut self, place: usize) {
        let line = &mut self.lines[place];
        while line.head.is_none() {
            let Some((chunk, stream)) = &mut line.reading else {
                if !line.open(self.spool, self.resumed.as_ref(), self.horizon.is_none()) {
                    return;
                }
                continue;
            };
            if !line.text.is_empty() {
                line.text.clear();
            }
            match stream.next(&mut line.text) {
                Next::Nothing => return,
                Next::End => {
                    line.kept.push(*chunk);
                    line.reading = None;
                    if line.end.is_none() {
                        let before = if line.pending.is_some() { line.before_pending } else { line.kept.len() };
                        self.finished.extend(line.kept.drain(..before));
                        line.before_pending = 0;
                    }
                }
                Next::Event(event) => {
                    if event.kind == Kind::Lost {
                        self.counts.told_lost = self.counts.told_lost.saturating_add(event.size);
                    }
                    if event.kind == Kind::ThreadEnd {
                        line.ended = true;
                        line.end = Some(event).filter(|_| !line.has_end);
                        continue;
                    }
                    if self.horizon.is_some_and(|horizon| event.time < horizon) && !is_lasting(event.kind) {
                        continue;
                    }
                    let counted = u64::from(counts(event.kind));
                    line.read = line.read.saturating_add(counted);
                    if line.skip == 0 {
                        line.head = Some(event);
                    } else {
                        line.skip -= counted;
                        line.pass(&event);
                    }
                }
            }
        }
    }

    /// Returns whether an event may come now, and does what it says to the live blocks. Otherwise its line is held.
    #[inline]
    fn follows(&mut self, event: &Event, place: usize) -> bool {
        let line = &self.lines[place];
        let freed_before = event.kind == Kind::ReallocBegin && line.freed == Some(event.old);
        let (end, begin) = if freed_before { (None, None) } else { effect(event, line.pending) };
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
            Kind::ReallocBegin => self.lines[place].realloc(Some(event.old)),
            Kind::Realloc | Kind::Reallocarray => self.lines[place].realloc(None),
            Kind::Image => {
                self.live.clear();
                // Of a part of the spool, what is before that part is left out.
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

    /// Returns whether one of the next events of another thread is of this kind, about this address.
    #[cold]
    fn is_ahead(&self, address: u64, place: usize, wanted: fn(&Event, u64) -> bool) -> bool {
        let image = self.lines[place].of.image;
        let others = self.lines.iter().enumerate().filter(|(other, line)| *other != place && line.of.image == image);
        let mut others = others;
        others.any(|(_, line)| line.ahead(self.spool).take(LOOK_AHEAD).any(|event| wanted(&event, address)))
    }

    fn hold(&mut self, place: usize, address: u64) {
        self.counts.repairs += 1;
        self.lines[place].held = Some(address);
        self.held.push(place);
    }

    /// Lets those go on whose address is now as they need it.
    #[cold]
    fn resume(&mut self) {
        let mut at = 0;
        while let Some(place) = self.held.get(at).copied() {
            let line = &self.lines[place];
            let (Some(event), Some(address)) = (line.head, line.held) else { break };
            let (end, _) = effect(&event, line.pending);
            let must_live = end == Some(address);
            if self.live.has(address) == must_live {
                self.lines[place].held = None;
                self.held.swap_remove(at);
                self.ready.push(Reverse((event.time, place)));
            } else {
                at += 1;
            }
        }
    }
}

impl<'m> Line<'m> {
    fn new(of: ThreadOf) -> Self {
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
        }
    }

    /// Begins to read the next chunk, if it is there.
    fn open(&mut self, spool: Spool<'m>, resumed: Option<&Resumed>, notes: bool) -> bool {
        let Some((&number, &chunk)) = self.chunks.first_key_value() else { return false };
        let Some(view) = spool.chunk(chunk) else { return false };
        if let Some(resumed) = resumed
            && self.next_chunk == 0
        {
            // Chunks before the first that is left are gone, as the trace has their events. A reader has noted how many these
            // are, or it had come to the end of what was there.
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

    /// Notes that a realloc has begun, or ended.
    fn realloc(&mut self, old: Option<u64>) {
        (self.pending, self.freed) = (old, None);
        self.before_pending = self.kept.len();
    }

    /// Passes over an event. A realloc's beginning is given all the same if its end is not passed over.
    fn pass(&mut self, event: &Event) {
        match event.kind {
            Kind::ReallocBegin => self.begun = Some(*event),
            Kind::Realloc | Kind::Reallocarray => self.begun = None,
            _ => {}
        }
        if self.skip == 0 {
            self.head = self.begun.take();
        }
    }

    /// Returns whether something is missing: a slot or a chunk behind it is written.
    fn has_gap(&self) -> bool {
        match &self.reading {
            Some((_, stream)) => stream.has_gap(),
            None => self.chunks.keys().next().is_some_and(|number| *number != self.next_chunk),
        }
    }

    /// Goes on behind what is missing; `false` if nothing is.
    fn skip_gap(&mut self) -> bool {
        match &mut self.reading {
            Some((_, stream)) => stream.skip_gap(),
            None => match self.chunks.keys().next() {
                Some(number) if *number != self.next_chunk => {
                    self.next_chunk = *number;
                    true
                }
                _ => false,
            },
        }
    }

    /// Returns the next events, as far as they are written.
    fn ahead(&self, spool: Spool<'m>) -> impl Iterator<Item = Event> {
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

/// Returns the addresses whose block an event ends, and begins. `pending` is the old block of a realloc that has begun.
#[inline]
fn effect(event: &Event, pending: Option<u64>) -> (Option<u64>, Option<u64>) {
    let some = |address: u64| (address != 0).then_some(address);
    match event.kind {
        Kind::Malloc
        | Kind::Calloc
        | Kind::Memalign
        | Kind::PosixMemalign
        | Kind::AlignedAlloc
        | Kind::Valloc
        | Kind::Pvalloc => (None, some(event.address)),
        Kind::Free => (some(event.address), None),
        Kind::ReallocBegin => (some(event.old), None),
        Kind::Realloc | Kind::Reallocarray if pending == Some(event.old) && event.old != 0 => {
            // The old block ended when the call began. One that failed has it still.
            (None, some(if event.old_is_gone() { event.address } else { event.old }))
        }
        Kind::Realloc | Kind::Reallocarray => (event.old_is_gone().then_some(event.old), some(event.address)),
        _ => (None, None),
    }
}

fn ends(event: &Event, address: u64) -> bool {
    effect(event, None).0 == Some(address)
}

fn begins(event: &Event, address: u64) -> bool {
    effect(event, None).1 == Some(address)
}

/// Splits a word: the low half, the high half.
#[expect(clippy::cast_possible_truncation, reason = "the low half")]
pub(super) fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests;
