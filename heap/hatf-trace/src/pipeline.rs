//! Passes events from one thread to another, so that a trace is read while its events are being processed.
//!
//! Events are passed in batches (see `metatf_tools::pipeline`), and no memory is allocated per event.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::event::EventSource;
//! use hatf_trace::forms::{RawSink, RawSource};
//! use hatf_trace::pipeline::read_beside;
//!
//! // `malloc(24)` and `free`, each as a tag, a size, an address and an old address.
//! let words = [1_u64, 24, 0x1000, 0, 2, 0, 0x1000, 0];
//! let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
//! let mut sink = RawSink::<_, 64>::new(Vec::new());
//! read_beside(|feed| RawSource::<_, 32>::new(&raw[..]).pour(feed), &mut sink)?;
//! assert_eq!(sink.records(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::event::{Call, Event, EventKind, EventSink, Function, Stack, UserMetadata};
use crate::{Error, Result};
use metatf_tools::pipeline::{Feed, beside, pipe};
use std::ops::Range;

/// The number of steps in a batch. It is small enough that a batch stays in the cache of the core that fills or
/// consumes it, and large enough that the other thread is rarely woken.
const BATCH: usize = 4096;
/// Maximum number of full batches waiting to be consumed.
const WAITING: usize = 4;

/// Number of events whose addresses are announced to the sink ahead of time.
const AHEAD: usize = 16;

/// Runs `give` in a new thread and passes everything it produces to `sink` in the current thread.
///
/// # Errors
/// `sink` failed, which also stops `give`; `give` failed; or the system could not start a thread.
pub fn read_beside(give: impl FnOnce(&mut EventFeed) -> Result<()> + Send, sink: &mut dyn EventSink) -> Result<()> {
    let (feed, batches) = pipe(WAITING);
    let giving = move || {
        let mut events = EventFeed { batch: Batch::default(), feed, of: None, sent: 0, places: Vec::new() };
        // Events that precede an error are passed on, too.
        give(&mut events).and(events.send())
    };
    let taking = move || {
        batches.each(|batch: &mut Batch| {
            batch.give(sink)?;
            batch.clear();
            Ok(())
        })
    };
    let (given, taken) = beside("hatf-read", giving, taking).map_err(Error::system("a thread"))?;
    taken.and(given)
}

/// A sink whose events another thread consumes.
pub struct EventFeed {
    batch: Batch,
    feed: Feed<Batch>,
    /// Thread and heap of the events in the batch, once the batch has a step that sets them.
    of: Option<(u64, u64)>,
    /// Number of batches sent.
    sent: u64,
    /// For each stack number, the last batch that contains the stack and the stack's index there. A batch contains each
    /// stack once.
    places: Vec<(u64, Option<u32>)>,
}

/// The unit in which data passes between the threads.
#[derive(Default)]
struct Batch {
    steps: Vec<Step>,
    /// The address that each step refers to: the old address of a realloc, or 0 for steps without an address.
    addresses: Vec<u64>,
    /// Events without a dedicated [`Step`].
    others: Vec<Other>,
    comments: Vec<Range<usize>>,
    abouts: Vec<UserMetadata>,
    /// The frames of all event stacks in sequence. The following field contains the end and the number of each stack.
    frames: Vec<u64>,
    stacks: Vec<(usize, u32)>,
    /// Names and attributes of events, and comments.
    bytes: Vec<u8>,
}

/// A step in a batch. Nearly all events are of the first two kinds, which are kept small.
#[derive(Clone, Copy)]
enum Step {
    Malloc {
        time: u64,
        size: u64,
        usable: u64,
        address: u64,
        stack: Option<u32>,
    },
    Free {
        time: u64,
        address: u64,
        stack: Option<u32>,
    },
    /// Sets the thread and the heap of the following events.
    Of {
        thread: u64,
        heap: u64,
    },
    /// The next element of the other events.
    Other,
    /// The next comment.
    Comment,
    UserMetadata,
    Flush,
}

/// An event, and the positions of its variable-length parts in the batch.
struct Other {
    event: Event<'static>,
    stack: Option<u32>,
    name: Range<usize>,
    attributes: Range<usize>,
}

impl Batch {
    fn clear(&mut self) {
        self.steps.clear();
        self.addresses.clear();
        self.others.clear();
        self.comments.clear();
        self.abouts.clear();
        self.frames.clear();
        self.stacks.clear();
        self.bytes.clear();
    }

    /// Passes everything in the batch to the sink.
    fn give(&self, sink: &mut dyn EventSink) -> Result<()> {
        let text = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        let (mut others, mut abouts) = (self.others.iter(), self.abouts.iter());
        let mut comments = self.comments.iter().map(text);
        let mut now = Event::new(EventKind::CreateHeap);
        let addresses = self.addresses.chunks(AHEAD);
        for (steps, addresses) in self.steps.chunks(AHEAD).zip(addresses) {
            sink.coming(addresses);
            for step in steps {
                match *step {
                    Step::Malloc { time, size, usable, address, stack } => {
                        let call = Call { size, usable, address, ..Call::new(Function::Malloc) };
                        sink.event(&Event { kind: EventKind::Call(call), time, stack: self.stack(stack), ..now })?;
                    }
                    Step::Free { time, address, stack } => {
                        let kind = EventKind::Free { address };
                        sink.event(&Event { kind, time, stack: self.stack(stack), ..now })?;
                    }
                    Step::Of { thread, heap } => now = Event { thread, heap, ..now },
                    Step::Other => {
                        let Some(Other { event, stack, name, attributes }) = others.next() else { continue };
                        let (kind, stack) = (event.kind.named(text(name)), self.stack(*stack));
                        sink.event(&Event { kind, stack, attributes: text(attributes), ..*event })?;
                    }
                    Step::Comment => comments.next().map_or(Ok(()), |text| sink.comment(text))?,
                    Step::UserMetadata => {
                        abouts.next().map_or(Ok(()), |user_metadata| sink.user_metadata(user_metadata))?
                    }
                    Step::Flush => sink.flush()?,
                }
            }
        }
        Ok(())
    }

    /// Returns a stack by its index in the batch.
    fn stack(&self, place: Option<u32>) -> Stack<'_> {
        let Some(place) = place.map(|place| place as usize) else { return Stack::NONE };
        let end = |place: usize| self.stacks.get(place).map(|(end, _)| *end);
        let start = place.checked_sub(1).map_or(Some(0), end);
        let frames = start.zip(end(place)).and_then(|(start, end)| self.frames.get(start..end)).unwrap_or_default();
        Stack::numbered(frames, self.stacks.get(place).map_or(0, |(_, number)| *number))
    }

    /// Stores bytes and returns their range.
    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

impl EventFeed {
    /// Hands the batch over and begins a new one.
    #[cold]
    #[inline(never)]
    fn send(&mut self) -> Result<()> {
        let empty = self.feed.spent().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, empty);
        self.of = None;
        self.sent += 1;
        if self.feed.give(full) { Ok(()) } else { Err(Error::Usage("the consumer of the events has ended".to_owned())) }
    }

    #[inline(always)]
    fn step(&mut self, step: Step, address: u64) -> Result<()> {
        self.batch.steps.push(step);
        self.batch.addresses.push(address);
        if self.batch.steps.len() < BATCH { Ok(()) } else { self.send() }
    }

    /// Stores a stack unless the batch contains it already. Returns its index.
    #[inline]
    fn stack(&mut self, stack: Stack<'_>) -> Option<u32> {
        if stack.is_empty() {
            return None;
        }
        match self.places.get(stack.number() as usize) {
            Some((sent, place)) if *sent == self.sent && place.is_some() => *place,
            _ => self.keep_stack(stack),
        }
    }

    fn keep_stack(&mut self, stack: Stack<'_>) -> Option<u32> {
        let place = u32::try_from(self.batch.stacks.len()).ok();
        self.batch.frames.extend_from_slice(&stack);
        self.batch.stacks.push((self.batch.frames.len(), stack.number()));
        if stack.number() > 0 {
            let index = stack.number() as usize;
            self.places.resize(self.places.len().max(index + 1), (0, None));
            self.places.get_mut(index).into_iter().for_each(|known| *known = (self.sent, place));
        }
        place
    }

    #[cold]
    fn other(&mut self, event: &Event<'_>) -> Result<()> {
        let (kind, name) = event.kind.nameless();
        let address = match kind {
            EventKind::Free { address } | EventKind::Call(Call { old: 0, address, .. }) => address,
            EventKind::Call(Call { old, .. }) => old,
            _ => 0,
        };
        let stack = self.stack(event.stack);
        let (name, attributes) = (self.batch.keep(name), self.batch.keep(event.attributes));
        let event = Event { kind, stack: Stack::NONE, attributes: &[], ..*event };
        self.batch.others.push(Other { event, stack, name, attributes });
        self.step(Step::Other, address)
    }

    /// Sets the thread and the heap of the following events.
    #[cold]
    fn begin(&mut self, thread: u64, heap: u64) {
        self.of = Some((thread, heap));
        self.batch.steps.push(Step::Of { thread, heap });
        self.batch.addresses.push(0);
    }
}

impl EventSink for EventFeed {
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let Event { kind, time, thread, heap, stack, attributes } = *event;
        if !attributes.is_empty() {
            return self.other(event);
        }
        let (step, address) = match kind {
            EventKind::Free { address } => (Step::Free { time, address, stack: self.stack(stack) }, address),
            EventKind::Call(Call { function: Function::Malloc, detail: 0, size, usable, old: 0, address }) => {
                (Step::Malloc { time, size, usable, address, stack: self.stack(stack) }, address)
            }
            _ => return self.other(event),
        };
        if self.of != Some((thread, heap)) {
            self.begin(thread, heap);
        }
        self.step(step, address)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        let range = self.batch.keep(text);
        self.batch.comments.push(range);
        self.step(Step::Comment, 0)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.batch.abouts.push(user_metadata.clone());
        self.step(Step::UserMetadata, 0)
    }

    fn flush(&mut self) -> Result<()> {
        self.step(Step::Flush, 0)?;
        self.send()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that records everything it receives as strings, and fails after a given number of items.
    struct Notes(Vec<String>, usize);

    impl Notes {
        fn note(&mut self, kind: String) -> Result<()> {
            if self.0.len() >= self.1 {
                return Err(Error::Usage("enough".to_owned()));
            }
            self.0.push(kind);
            Ok(())
        }
    }

    impl EventSink for Notes {
        fn event(&mut self, event: &Event<'_>) -> Result<()> {
            self.note(format!("{event:?}"))
        }

        fn comment(&mut self, text: &[u8]) -> Result<()> {
            self.note(format!("{text:?}"))
        }

        fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
            self.note(format!("{user_metadata:?}"))
        }

        fn flush(&mut self) -> Result<()> {
            self.note("flush".to_owned())
        }
    }

    /// Produces events of many kinds.
    fn give(sink: &mut dyn EventSink, events: u64) -> Result<()> {
        let user_metadata = [("key".to_owned(), 1.into())].into_iter().collect();
        sink.user_metadata(&user_metadata)?;
        for n in 0..events {
            let plain = Event::new(EventKind::Free { address: n });
            sink.event(&plain)?;
            let call = Call { size: n, address: n, ..Call::new(Function::Malloc) };
            sink.event(&Event { stack: (&[n, n + 1]).into(), time: n, ..Event::new(EventKind::Call(call)) })?;
            // Some stacks recur in this batch and in later batches. One stack has a number that is too high.
            let kind = n % 7;
            let frames = vec![kind + 1; usize::try_from(kind).unwrap()];
            let stack = Stack::numbered(&frames, if kind == 6 { u32::MAX } else { u32::try_from(kind).unwrap() });
            sink.event(&Event { stack, ..Event::new(EventKind::Call(call)) })?;
            sink.event(&Event { stack, time: n, ..plain })?;
            let failed = Event::new(EventKind::Failed(call));
            sink.event(&Event { stack, ..failed })?;
            sink.event(&Event { thread: n, ..Event::new(EventKind::Call(call)) })?;
            sink.event(&Event { heap: n, attributes: &n.to_le_bytes(), ..plain })?;
            let name = n.to_string();
            let name = name.as_bytes();
            for kind in [
                EventKind::Mark { name },
                EventKind::ThreadName { name },
                EventKind::PhaseBegin { name },
                EventKind::PhaseEnd { name },
                EventKind::Image { process: n, path: name },
                EventKind::ModuleLoad { bias: n, start: n, end: n + 1, name },
                EventKind::ModuleUnload { start: n },
                EventKind::Source { path: name },
                EventKind::Symbol { frame: n, line: n, name },
            ] {
                sink.event(&Event::new(kind))?;
            }
            let kind = [
                EventKind::ReallocBegin { old: n },
                EventKind::ReallocEnd(call),
                EventKind::Failed(call),
                EventKind::CreateHeap,
            ];
            let more = [
                EventKind::ThreadStart { creator: n, task: n },
                EventKind::ThreadEnd,
                EventKind::DestroyHeap,
                EventKind::Exit { status: n },
            ];
            for kind in
                kind.into_iter().chain(more).chain([EventKind::Killed { signal: n }, EventKind::Lost { events: n }])
            {
                sink.event(&Event::new(kind))?;
            }
            sink.comment(name)?;
        }
        sink.flush()
    }

    #[test]
    fn the_same_in_the_same_order() {
        for events in [0, 1, 1000] {
            let (mut direct, mut piped) = (Notes(Vec::new(), usize::MAX), Notes(Vec::new(), usize::MAX));
            give(&mut direct, events).unwrap();
            read_beside(|sink| give(sink, events), &mut piped).unwrap();
            assert!(direct.0 == piped.0, "{events}");
        }
    }

    /// A sink that checks that the address of each event was announced.
    #[derive(Default)]
    struct Coming(Vec<u64>, usize);

    impl EventSink for Coming {
        fn event(&mut self, event: &Event<'_>) -> Result<()> {
            if let EventKind::Free { address } | EventKind::Call(Call { address, .. }) = event.kind {
                assert!(self.0.contains(&address), "{address}");
                self.1 += 1;
            }
            Ok(())
        }

        fn coming(&mut self, addresses: &[u64]) {
            assert!(addresses.len() <= AHEAD);
            self.0 = addresses.to_vec();
        }

        fn comment(&mut self, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn addresses_come_before_their_events() {
        let mut coming = Coming::default();
        // Each round produces six calls and frees, some of which have their own stack, thread, heap or attributes.
        read_beside(|sink| give(sink, 1000), &mut coming).unwrap();
        assert_eq!(coming.1, 6000);
    }

    #[test]
    fn errors_of_either_side() {
        let mut notes = Notes(Vec::new(), 10);
        let refused = read_beside(|sink| give(sink, 100_000), &mut notes);
        assert!(matches!(refused, Err(Error::Usage(why)) if why == "enough"));
        // Items that precede an error are passed on.
        let mut notes = Notes(Vec::new(), usize::MAX);
        let failing = |sink: &mut EventFeed| {
            sink.comment(b"a")?;
            Err(Error::Usage("damage".to_owned()))
        };
        let damaged = read_beside(failing, &mut notes);
        assert!(matches!(damaged, Err(Error::Usage(why)) if why == "damage"));
        assert_eq!(notes.0.len(), 1);
    }
}
