//! Keeps only the last part of a recording. Chunks stay in the spool until the oldest are returned, and a trace is made
//! from the remaining chunks on request.
//!
//! Threads fill their chunks at different speeds, so their remaining events begin at different times. A trace begins at
//! the *horizon*, the time of the last event that was returned. From the horizon on, all events are present. From the
//! time before, the trace contains only the program image, the modules and the live threads, and it reports that
//! recording was off.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use hatf_record::{CHUNK_BYTES, Kind, Next, Spool, SpoolEvent, Stream};

use serde_json::{Value, json};

use super::encode::Encode;
use super::merge::{halves, is_lasting};
use super::timeline::Moment;

/// The size of the last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The events of the given number of nanoseconds.
    Time(u64),
    /// The events in the given number of bytes of the spool. Each event occupies 16 bytes.
    Bytes(u64),
}

/// An event from before the horizon with its string. Its time is a stamp.
type Lasting = (SpoolEvent, Vec<u8>);

/// A chunk that contains events.
struct Filled {
    chunk: usize,
    thread: u32,
    task: u32,
    image: u32,
    number: u32,
    stamp: u64,
}

/// The kept and the returned parts of a spool.
pub(crate) struct LastPart {
    /// Maximum number of kept chunks.
    chunks: usize,
    /// Nanoseconds to keep.
    time: Option<u64>,
    /// The stamp before which events are missing.
    horizon: u64,
    /// Returned chunks with their owners, until the return is complete.
    given: HashMap<usize, (u64, u64)>,
    /// Lasting events of the returned chunks.
    lasting: Vec<Lasting>,
    /// The number of lost events that returned chunks had reported.
    pub(crate) reported_lost: u64,
    /// Whether chunks within the time to keep were returned because their number exceeded the maximum.
    is_short: bool,
}

impl LastPart {
    /// Creates the state for keeping a part of this size. Half of the spool is reserved for events that arrive while a
    /// trace is being made.
    pub(crate) fn new(keep: Keep, spool: Spool<'_>) -> Self {
        let most = (spool.chunks() / 2).max(2);
        let (chunks, time) = match keep {
            Keep::Time(time) => (most, Some(time)),
            Keep::Bytes(bytes) => {
                (usize::try_from(bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(most).clamp(2, most), None)
            }
        };
        Self { chunks, time, horizon: 0, given: HashMap::new(), lasting: Vec::new(), reported_lost: 0, is_short: false }
    }

    /// Restores the state that [`LastPart::to_json`] saved.
    pub(crate) fn from_json(horizon: u64, lasting: &Value) -> Self {
        let lasting = lasting.as_array().into_iter().flatten().filter_map(|event| {
            let number = |key: &str| event[key].as_u64();
            let kind = Kind::from_number(u8::try_from(number("kind")?).ok()?)?;
            let slot = SpoolEvent::new(kind, u32::try_from(number("thread")?).ok()?, number("stamp")?);
            let (address, old, extra) = (number("address")?, number("old")?, number("extra")?);
            Some((SpoolEvent { address, old, extra, ..slot }, event["text"].as_str()?.as_bytes().to_vec()))
        });
        Self {
            chunks: 0,
            time: None,
            horizon,
            given: HashMap::new(),
            lasting: lasting.collect(),
            reported_lost: 0,
            is_short: false,
        }
    }

    /// Returns the lasting events of returned chunks.
    pub(crate) fn to_json(&self) -> Value {
        let lasting = self.lasting.iter().map(|(slot, text)| {
            let SpoolEvent { kind, thread, time, address, old, extra, .. } = *slot;
            let text = String::from_utf8_lossy(text);
            json!({"kind": kind as u8, "thread": thread, "stamp": time, "address": address, "old": old, "extra": extra, "text": text})
        });
        lasting.collect()
    }

    /// Returns the requested time in nanoseconds if the spool had no room for all events of that time.
    pub(crate) fn short_of(&self) -> Option<u64> {
        self.time.filter(|_| self.is_short)
    }

    /// Returns the stamp before which events are missing, or 0 if none are missing.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Returns the stamp from which on events are kept, and drops earlier clock readings.
    pub(crate) fn since(&self, moments: &mut VecDeque<Moment>, now: Moment) -> u64 {
        let Some(time) = self.time else {
            // Keep the last clock reading, because it determines when the next reading is due.
            moments.drain(..moments.len().saturating_sub(1));
            return 0;
        };
        let is_over = |moment: &Moment| moment.nanoseconds <= now.nanoseconds.saturating_sub(time);
        while moments.get(1).is_some_and(is_over) {
            moments.pop_front();
        }
        moments.front().filter(|moment| is_over(moment)).map_or(0, |moment| moment.stamp)
    }

    /// Removes the oldest chunks: chunks that end before a stamp, and chunks that exceed the maximum number. Returns
    /// the removed chunks and whether the lasting events changed.
    pub(crate) fn tend(&mut self, spool: Spool<'_>, before: u64, is_gone: impl Fn(u32) -> bool) -> (Vec<usize>, bool) {
        self.is_settled(spool);
        let ours = |chunk: &usize| !self.given.contains_key(chunk);
        let mut filled: Vec<_> = spool.taken().filter(ours).filter_map(|chunk| look(spool, chunk)).collect();
        let oldest = filled.iter().map(|chunk| chunk.stamp).min().unwrap_or(u64::MAX);
        if filled.len() <= self.chunks && oldest >= before {
            return (Vec::new(), false);
        }
        filled.sort_by_key(|chunk| (chunk.image, chunk.thread, chunk.number));
        let image = filled.iter().map(|chunk| chunk.image).max().unwrap_or_default();
        let mut gone = HashMap::new();
        let mut ended: Vec<(u64, usize)> = Vec::new();
        for (place, chunk) in filled.iter().enumerate() {
            let next = filled.get(place + 1).filter(|next| (next.image, next.thread) == (chunk.image, chunk.thread));
            // The chunk that a thread is writing to is kept.
            let end = match next {
                Some(next) => Some(next.stamp),
                None if chunk.image < image => Some(chunk.stamp),
                None => gone.entry(chunk.task).or_insert_with(|| is_gone(chunk.task)).then_some(chunk.stamp),
            };
            ended.extend(end.map(|end| (end, place)));
        }
        ended.sort_unstable();
        let (mut taken, mut left, lasted) = (Vec::new(), filled.len(), self.lasting.len());
        for (end, place) in ended {
            if left <= self.chunks && end >= before {
                break;
            }
            self.is_short |= end >= before && self.time.is_some();
            let Some(chunk) = filled.get(place) else { continue };
            let last = self.give_back(spool, chunk);
            self.horizon = self.horizon.max(end).max(last.saturating_add(1));
            self.given.extend(owner(spool, chunk.chunk).map(|owner| (chunk.chunk, owner)));
            taken.push(chunk.chunk);
            left -= 1;
        }
        let grown = self.lasting.len() > lasted;
        prune(&mut self.lasting);
        (taken, grown)
    }

    /// Returns whether the return of all returned chunks is complete. Until then, these chunks still appear to be
    /// present.
    pub(crate) fn is_settled(&mut self, spool: Spool<'_>) -> bool {
        self.given.retain(|chunk, of| spool.is_taken(*chunk) && owner(spool, *chunk) == Some(*of));
        self.given.is_empty()
    }

    /// Keeps the lasting events of a chunk. Returns the stamp of its last event.
    fn give_back(&mut self, spool: Spool<'_>, filled: &Filled) -> u64 {
        let Some(view) = spool.chunk(filled.chunk) else { return 0 };
        let mut stream = Stream::new(view, filled.thread, filled.stamp);
        let (mut text, mut last) = (Vec::new(), filled.stamp);
        loop {
            text.clear();
            match stream.next(&mut text) {
                Next::Event(event) => {
                    last = last.max(event.time);
                    if event.kind == Kind::Lost {
                        self.reported_lost = self.reported_lost.saturating_add(event.size);
                    }
                    if is_lasting(event.kind) {
                        self.lasting.push((event, text.clone()));
                    }
                }
                Next::Nothing if stream.skip_gap() => {}
                Next::Nothing | Next::End => return last,
            }
        }
    }

    /// Passes the kept events with stamps below `before` to the sink.
    pub(crate) fn encode(&self, encode: &mut Encode<'_>, before: u64) {
        let horizon = self.horizon;
        encode.merge.begin_at(horizon);
        if horizon == 0 {
            encode.rest(before);
            return;
        }
        let mut lasting = self.lasting.clone();
        loop {
            encode.merge.discover();
            encode.merge.look();
            encode.merge.end_threads(|_| true);
            let found = |slot: &SpoolEvent, text: &[u8], _| lasting.push((*slot, text.to_vec()));
            if encode.merge.give(horizon, usize::MAX, found) == 0 {
                break;
            }
        }
        prune(&mut lasting);
        let mut is_on = true;
        for (slot, text) in &lasting {
            match slot.kind {
                Kind::Start => is_on = true,
                Kind::Stop => is_on = false,
                _ => encode.slot(slot, text),
            }
        }
        let last = lasting.last().map_or(0, |(slot, _)| slot.time);
        encode.slot(&SpoolEvent::new(Kind::Stop, 1, last), &[]);
        if is_on {
            encode.slot(&SpoolEvent::new(Kind::Start, 1, horizon), &[]);
        }
        encode.rest(before);
    }
}

/// Returns the words that identify the owner of a chunk. No two chunks ever have the same owner.
fn owner(spool: Spool<'_>, chunk: usize) -> Option<(u64, u64)> {
    let head = spool.chunk(chunk)?.head();
    Some((head.owner.load(Acquire), head.image.load(Relaxed)))
}

/// Reads the head of a chunk. Returns `None` if the chunk's thread has not written it yet.
fn look(spool: Spool<'_>, chunk: usize) -> Option<Filled> {
    let head = spool.chunk(chunk)?.head();
    let (owner, image) = owner(spool, chunk)?;
    let ((thread, number), (_, image)) = (halves(owner), halves(image));
    let (task, _) = halves(head.task.load(Relaxed));
    let stamp = head.stamp.load(Relaxed);
    (thread != 0 && image != 0).then_some(Filled { chunk, thread, task, image, number, stamp })
}

/// Returns the thread that receives a name: the calling thread, or another thread identified by its handle.
fn named(slot: &SpoolEvent) -> (u32, u64) {
    if slot.extra == 0 { (slot.thread, 0) } else { (0, slot.extra) }
}

/// Sorts events, and removes events that later ones supersede.
fn prune(lasting: &mut Vec<Lasting>) {
    lasting.sort_by_key(|(slot, _)| slot.time);
    let image = lasting.iter().rposition(|(slot, _)| slot.kind == Kind::Image).unwrap_or(0);
    // Events of earlier program images have no effect any more. The new image needs no start event for its main thread.
    lasting.drain(..image);
    let (mut threads, mut names, mut modules) = (HashMap::new(), HashMap::new(), HashMap::new());
    let (mut places, mut switch) = (HashMap::new(), None);
    let mut is_void = vec![false; lasting.len()];
    let mut void = |place: Option<usize>| {
        if let Some(is_void) = place.and_then(|place| is_void.get_mut(place)) {
            *is_void = true;
        }
    };
    for (place, (slot, _)) in lasting.iter().enumerate() {
        match slot.kind {
            Kind::ThreadStart => drop(threads.insert(slot.thread, place)),
            Kind::ThreadName => void(names.insert(named(slot), place)),
            Kind::ThreadEnd => {
                let start = threads.remove(&slot.thread);
                let handle = start.and_then(|start| lasting.get(start)).map_or(0, |(start, _)| start.old);
                void(start);
                void(start.map(|_| place));
                void(names.remove(&(slot.thread, 0)));
                void(names.remove(&(0, handle)));
            }
            Kind::PythonFrame => void(places.insert(slot.address, place)),
            Kind::ModuleLoad => void(modules.insert(slot.address, place)),
            Kind::ModuleUnload => {
                let load = modules.remove(&slot.address);
                void(load);
                void(load.map(|_| place));
            }
            Kind::Start | Kind::Stop => void(switch.replace(place)),
            _ => {}
        }
    }
    let mut is_void = is_void.into_iter();
    lasting.retain(|_| !is_void.next().unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, thread: u32, time: u64, address: u64) -> Lasting {
        (SpoolEvent { address, ..SpoolEvent::new(kind, thread, time) }, Vec::new())
    }

    #[test]
    fn what_is_void_goes() {
        let mut lasting = vec![
            event(Kind::ThreadStart, 9, 3, 0),
            event(Kind::Image, 1, 5, 0),
            event(Kind::ThreadStart, 2, 6, 0),
            event(Kind::ThreadStart, 3, 7, 0),
            event(Kind::ThreadName, 2, 7, 0),
            event(Kind::ThreadName, 3, 7, 0),
            event(Kind::ThreadName, 3, 8, 0),
            event(Kind::ModuleLoad, 1, 8, 0x1000),
            event(Kind::ModuleLoad, 1, 9, 0x2000),
            event(Kind::Stop, 1, 10, 0),
            event(Kind::ThreadEnd, 2, 12, 0),
            event(Kind::ModuleUnload, 1, 11, 0x1000),
            event(Kind::Start, 3, 13, 0),
        ];
        prune(&mut lasting);
        let left: Vec<_> = lasting.iter().map(|(slot, _)| (slot.kind, slot.time)).collect();
        assert_eq!(
            left,
            [(Kind::Image, 5), (Kind::ThreadStart, 7), (Kind::ThreadName, 8), (Kind::ModuleLoad, 9), (Kind::Start, 13)]
        );
    }
}
