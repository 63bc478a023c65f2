//! Traces whose blocks end at their last access, as if the program freed each block as early as possible.
//!
//! Zorn and Grunwald did the same for their program CHAM, which frees few blocks: "we monitored the data references of
//! the traced program, and artificially deallocated memory when it was no longer referenced" (CU-CS-603-92). A program
//! built by `hatf cc` records the last accesses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::{HashMap, HashSet};

use crate::Result;
use crate::event::{Event, EventKind, EventSink, UserMetadata};

/// The value in `ends` for a block that keeps its original end.
const OWN_END: u64 = u64::MAX;

/// A collector of the last accesses to the blocks of a trace. It uses 8 bytes of memory per block.
///
/// The [example of `EarlyFrees`](EarlyFrees#examples) collects last accesses.
#[derive(Debug, Default)]
pub struct LastAccesses {
    live: HashMap<u64, Block>,
    /// The time of each block's end, in allocation order.
    ends: Vec<u64>,
    known: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    number: usize,
    began: u64,
    reached: bool,
}

/// Counts of the blocks of a trace and of their early ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreedEarly {
    /// The number of blocks.
    pub blocks: u64,
    /// The number of blocks that end at their last access.
    pub early: u64,
    /// The number of these blocks that the program itself freed later.
    pub freed_later: u64,
}

impl LastAccesses {
    /// Returns the number of blocks whose last access is known.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.known
    }

    fn begin(&mut self, address: u64, began: u64) {
        let number = self.ends.len();
        self.ends.push(OWN_END);
        self.live.insert(address, Block { number, began, reached: false });
    }

    /// Keeps the original end of a block that a realloc ends, because the realloc may copy the block's data.
    fn keep(&mut self, address: u64) {
        if let Some(block) = self.live.remove(&address)
            && let Some(end) = self.ends.get_mut(block.number)
        {
            *end = OWN_END;
        }
    }
}

impl EventSink for LastAccesses {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                if call.old != 0 {
                    self.keep(call.old);
                }
                self.begin(call.address, event.time);
            }
            EventKind::Call(ref call) if call.old_is_gone() => self.keep(call.old),
            EventKind::ReallocBegin { old } => self.keep(old),
            EventKind::Free { address } => drop(self.live.remove(&address)),
            EventKind::Accesses(accesses) => {
                if let Some(block) = self.live.get_mut(&accesses.address) {
                    block.reached = accesses.reached;
                }
            }
            EventKind::LastAccess { address, last } => {
                self.known += 1;
                if let Some(block) = self.live.get(&address).filter(|block| !block.reached)
                    && let Some(end) = self.ends.get_mut(block.number)
                {
                    *end = last.max(block.began);
                }
            }
            EventKind::DestroyHeap | EventKind::Image { .. } | EventKind::Recording { on: true } => self.live.clear(),
            _ => {}
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

/// A pending free: time, block number, address, thread and heap.
type Due = Reverse<(u64, usize, u64, u64, u64)>;

/// A sink that passes events on and ends each block at its last access, after all events up to that time.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::{Event, EventKind, EventSink};
/// use hatf_trace::forms::{EarlyFrees, FreedEarly, LastAccesses, RawSink};
///
/// let events = [
///     Event { time: 10, ..Event::malloc(0x1000, 24) },
///     Event { time: 20, ..Event::malloc(0x2000, 24) },
///     Event { time: 90, ..Event::new(EventKind::LastAccess { address: 0x1000, last: 10 }) },
///     Event { time: 90, ..Event::free(0x1000) },
/// ];
/// let (mut accesses, mut sink) = (LastAccesses::default(), RawSink::<_, 32>::new(Vec::new()));
/// events.iter().try_for_each(|event| accesses.event(event))?;
/// let mut early = EarlyFrees::new(accesses, &mut sink);
/// events.iter().try_for_each(|event| early.event(event))?;
/// assert_eq!(early.finish()?, FreedEarly { blocks: 2, early: 1, freed_later: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EarlyFrees<'s> {
    ends: Vec<u64>,
    sink: &'s mut dyn EventSink,
    next: usize,
    due: BinaryHeap<Due>,
    /// Blocks that will end early, by address.
    live: HashMap<u64, usize>,
    /// Addresses of blocks that ended early and whose original end is still to come.
    ended: HashSet<u64>,
    counts: FreedEarly,
}

impl<'s> EarlyFrees<'s> {
    /// Creates a sink that receives the same events from which `accesses` was collected.
    pub fn new(accesses: LastAccesses, sink: &'s mut dyn EventSink) -> Self {
        Self {
            ends: accesses.ends,
            sink,
            next: 0,
            due: BinaryHeap::new(),
            live: HashMap::new(),
            ended: HashSet::new(),
            counts: FreedEarly::default(),
        }
    }

    /// Ends the remaining blocks.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(mut self) -> Result<FreedEarly> {
        self.free_before(u64::MAX)?;
        Ok(self.counts)
    }

    /// Frees the blocks that were last accessed before `time`.
    fn free_before(&mut self, time: u64) -> Result<()> {
        while let Some(Reverse((end, number, address, thread, heap))) = self.due.peek().copied()
            && end < time
        {
            self.due.pop();
            if self.live.get(&address) == Some(&number) {
                self.live.remove(&address);
                self.ended.insert(address);
                self.counts.early += 1;
                self.sink.event(&Event { time: end, thread, heap, ..Event::new(EventKind::Free { address }) })?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>, address: u64) {
        let number = self.next;
        self.next += 1;
        self.counts.blocks += 1;
        self.ended.remove(&address);
        self.live.remove(&address);
        if let Some(end) = self.ends.get(number).copied().filter(|end| *end != OWN_END) {
            self.live.insert(address, number);
            self.due.push(Reverse((end, number, address, event.thread, event.heap)));
        }
    }
}

impl EventSink for EarlyFrees<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.free_before(event.time)?;
        match event.kind {
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                self.sink.event(event)?;
                self.begin(event, call.address);
                return Ok(());
            }
            EventKind::Free { address } => {
                self.live.remove(&address);
                if self.ended.remove(&address) {
                    self.counts.freed_later += 1;
                    return Ok(());
                }
            }
            EventKind::Accesses(accesses) if self.ended.contains(&accesses.address) => return Ok(()),
            EventKind::LastAccess { address, .. } if self.ended.contains(&address) => return Ok(()),
            EventKind::DestroyHeap | EventKind::Image { .. } | EventKind::Recording { on: true } => {
                self.due.clear();
                self.live.clear();
                self.ended.clear();
            }
            _ => {}
        }
        self.sink.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.sink.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.sink.user_metadata(user_metadata)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failing test must panic")]

    use super::*;
    use crate::event::{Accesses, Call, Function};

    /// A sink that stores its events.
    #[derive(Default)]
    struct Kept(Vec<(u64, EventKind<'static>)>);

    impl EventSink for Kept {
        fn event(&mut self, event: &Event<'_>) -> Result<()> {
            self.0.push((event.time, event.kind.nameless().0));
            Ok(())
        }

        fn comment(&mut self, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn blocks_end_where_they_are_last_accessed() {
        let call = |old, address| EventKind::Call(Call { size: 8, old, address, ..Call::new(Function::Realloc) });
        let reached = |address| EventKind::Accesses(Accesses { address, reached: true, ..Accesses::default() });
        let (free, last) =
            (|address| EventKind::Free { address }, |address, last| EventKind::LastAccess { address, last });
        let events = [
            (10, call(0, 1)),
            (20, call(0, 2)),
            (30, call(0, 3)),
            // This block is never accessed, so it ends immediately.
            (40, call(0, 4)),
            (50, last(1, 20)),
            (50, free(1)),
            // A block that uninstrumented code may access reuses the address of the first block.
            (60, call(0, 1)),
            // A realloc copies the data of its old block, so the block stays live until the realloc is called.
            (70, last(3, 30)),
            (70, call(3, 5)),
            (80, last(2, 60)),
            (80, reached(1)),
            (80, last(1, 60)),
            (80, last(4, 0)),
            (80, free(9)),
            (90, EventKind::Exit { status: 0 }),
        ];
        let (mut accesses, mut kept) = (LastAccesses::default(), Kept::default());
        let event = |(time, kind)| Event { time, ..Event::new(kind) };
        events.iter().for_each(|of| accesses.event(&event(*of)).unwrap());
        assert_eq!(accesses.known(), 5);
        let mut early = EarlyFrees::new(accesses, &mut kept);
        events.iter().for_each(|of| early.event(&event(*of)).unwrap());
        assert_eq!(early.finish().unwrap(), FreedEarly { blocks: 6, early: 3, freed_later: 1 });
        let of_blocks = |of: &&(u64, EventKind<'_>)| matches!(of.1, EventKind::Call(_) | EventKind::Free { .. });
        let expected = [
            (10, call(0, 1)),
            (20, call(0, 2)),
            (20, free(1)),
            (30, call(0, 3)),
            (40, call(0, 4)),
            (40, free(4)),
            (60, call(0, 1)),
            (60, free(2)),
            (70, call(3, 5)),
            (80, free(9)),
        ];
        assert_eq!(kept.0.iter().filter(of_blocks).copied().collect::<Vec<_>>(), expected);
    }
}
