//! Collecting what a page needs in a thread of its own, while others read the trace and follow its heap.

use std::io;
use std::thread::{Builder, JoinHandle};

use hatf_lab::{Error, Heap, ObjectEvent, Observer, Result};
use metatf_tools::pipeline::{Feed, pipe};

use super::collect::{Collected, Mark, mark};
use crate::event::{Call, Event, EventKind};

/// What is handed over at once: it stays in a core's cache, and threads are woken seldom.
const BATCH: usize = 2048;
/// Full batches that may wait to be taken.
const WAITING: usize = 4;

/// An [`Observer`] that has what a page needs collected: by itself, or in another thread if there may be several.
pub struct Collecting(Where);

/// Where it is collected.
enum Where {
    Here(Box<Collected>),
    There(There),
}

/// A thread that collects.
struct There {
    batch: Vec<Step>,
    feed: Feed<Vec<Step>>,
    thread: JoinHandle<Result<Collected>>,
}

/// What a page learns.
enum Step {
    Event(ObjectEvent),
    /// What a block really has may be in it.
    Call(Call),
    Mark(Mark),
    Sampled(u64),
}

impl Collecting {
    /// Starts with nothing, in this many threads at most.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn new(threads: usize) -> io::Result<Self> {
        let collected = Collected::new();
        if threads < 2 {
            return Ok(Self(Where::Here(Box::new(collected))));
        }
        let (feed, batches) = pipe::<Vec<Step>>(WAITING);
        let collect = move || {
            let mut collected = collected;
            batches.each(|batch| batch.drain(..).try_for_each(|step| learn(&mut collected, step)))?;
            Ok(collected)
        };
        let thread = Builder::new().name("hatf-page".to_owned()).spawn(collect)?;
        Ok(Self(Where::There(There { batch: Vec::with_capacity(BATCH), feed, thread })))
    }

    /// Returns what was collected.
    ///
    /// # Errors
    /// A site has a number that is too great to be kept.
    pub fn finish(self) -> Result<Collected> {
        let There { batch, feed, thread } = match self.0 {
            Where::Here(collected) => return Ok(*collected),
            Where::There(there) => there,
        };
        // If nobody takes it, there is an error to be returned.
        let _ = feed.give(batch);
        drop(feed);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn learn(collected: &mut Collected, step: Step) -> Result<()> {
    match step {
        Step::Event(event) => collected.event(&event),
        Step::Call(call) => collected.call(&call),
        Step::Mark(mark) => {
            collected.mark(mark);
            Ok(())
        }
        Step::Sampled(mean) => {
            collected.sampled(mean);
            Ok(())
        }
    }
}

impl There {
    #[inline]
    fn push(&mut self, step: Step) -> Result<()> {
        self.batch.push(step);
        if self.batch.len() < BATCH { Ok(()) } else { self.send() }
    }

    #[cold]
    fn send(&mut self) -> Result<()> {
        let empty = self.feed.spent().unwrap_or_else(|| Vec::with_capacity(BATCH));
        let full = std::mem::replace(&mut self.batch, empty);
        // It takes no more after an error of its own: that a site's number is too great.
        if self.feed.give(full) { Ok(()) } else { Err(Error::Limit("sites")) }
    }
}

impl Observer for Collecting {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        match &mut self.0 {
            Where::Here(collected) => collected.event(event),
            Where::There(there) => there.push(Step::Event(*event)),
        }
    }

    #[inline]
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> Result<()> {
        let there = match &mut self.0 {
            Where::Here(collected) => return collected.record(event, heap),
            Where::There(there) => there,
        };
        match &event.kind {
            EventKind::Free { .. } => Ok(()),
            EventKind::Call(call) | EventKind::ReallocEnd(call) => {
                if call.usable == 0 {
                    Ok(())
                } else {
                    there.push(Step::Call(*call))
                }
            }
            _ => mark(event, heap).map_or(Ok(()), |mark| there.push(Step::Mark(mark))),
        }
    }

    fn sampled(&mut self, mean: u64) {
        match &mut self.0 {
            Where::Here(collected) => collected.sampled(mean),
            // An error is returned with the next event.
            Where::There(there) => drop(there.push(Step::Sampled(mean))),
        }
    }
}

#[cfg(test)]
mod tests {
    use hatf_lab::HeapTracker;

    use super::*;
    use crate::event::{EventSink as _, Function};

    /// Events of all that a page learns, in several batches.
    fn collected(threads: usize) -> String {
        let mut tracker = HeapTracker::new(Collecting::new(threads).unwrap());
        for n in 1..2 * BATCH as u64 {
            let call = Call { size: n, usable: n + n % 3, address: n << 20, ..Call::new(Function::Malloc) };
            let time = n * 1000;
            tracker.event(&Event { time, ..Event::new(EventKind::Call(call)) }).unwrap();
            if n % 2 == 0 {
                tracker.event(&Event { time, thread: 2, ..Event::free((n / 2) << 20) }).unwrap();
            }
            if n % 1000 == 0 {
                tracker.event(&Event { time, ..Event::new(EventKind::Mark { name: b"mark" }) }).unwrap();
                tracker.event(&Event { time, ..Event::new(EventKind::PhaseEnd { name: b"phase" }) }).unwrap();
            }
        }
        let (heap, collecting) = tracker.into_parts();
        format!("{:?}", collecting.finish().unwrap().sum_up(&heap.objects).unwrap())
    }

    #[test]
    fn another_thread_collects_the_same() {
        let here = collected(1);
        assert!(here.contains("end of phase") && here.contains("slack: Amount { blocks: 2730"), "{here:.2000}");
        assert!(here == collected(2));
    }

    /// An error of the other thread ends this one, at once or at the end.
    #[test]
    fn errors_come_back() {
        let mut event = None;
        let mut note = |noted: &ObjectEvent| {
            event = Some(*noted);
            Ok(())
        };
        hatf_lab::Objects::new().follow(&Event::malloc(16, 1), u64::MAX, &mut note).unwrap();
        let event = event.unwrap();
        let mut collecting = Collecting::new(2).unwrap();
        collecting.event(&event).unwrap();
        assert!(matches!(collecting.finish(), Err(Error::Limit("sites"))));
        let mut collecting = Collecting::new(2).unwrap();
        let most = 2 * BATCH * (WAITING + 2);
        assert!((0..most).any(|_| collecting.event(&event).is_err()));
    }
}
