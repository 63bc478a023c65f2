//! Gives the experiments of `hatf-lab` the calls of a trace.

use std::collections::HashMap;

use hatf_lab::{Allocation, Objects, Observer, Totals};

use crate::Result;
use crate::event::{Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata};

/// An [`EventSink`] that turns calls into events of objects.
///
/// A program image that replaces another (exec), and a heap that is destroyed, free what is live in them.
#[derive(Debug)]
pub struct Calls<O> {
    objects: Objects,
    stacks: Stacks,
    observer: O,
}

/// The stacks that allocated, by number: [`Object::site`](hatf_lab::Object::site). Number 0 is the empty stack.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    numbers: HashMap<Vec<u64>, u64>,
    stacks: Vec<Vec<u64>>,
}

impl Stacks {
    fn number(&mut self, stack: &[u64]) -> u64 {
        if stack.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(stack) {
            return *number;
        }
        self.stacks.push(stack.to_vec());
        let number = self.stacks.len() as u64;
        self.numbers.insert(stack.to_vec(), number);
        number
    }

    /// Returns a stack's return addresses, innermost first.
    #[must_use]
    pub fn get(&self, number: u64) -> &[u64] {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.stacks.get(index)).map_or(&[], Vec::as_slice)
    }
}

impl<O: Observer> Calls<O> {
    /// Starts with an empty heap.
    pub fn new(observer: O) -> Self {
        Self { objects: Objects::new(), stacks: Stacks::default(), observer }
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> Totals {
        self.objects.totals()
    }

    /// Returns the live objects, the stacks, and the observer.
    pub fn into_parts(self) -> (Objects, Stacks, O) {
        (self.objects, self.stacks, self.observer)
    }

    fn allocation(&mut self, event: &Event<'_>, call: &Call) -> Allocation {
        let site = self.stacks.number(event.stack);
        let size = (call.size != UNKNOWN_SIZE).then_some(call.size);
        let Event { time, thread, heap, .. } = *event;
        Allocation { address: call.address, size, time, thread, site, heap }
    }
}

impl<O: Observer> EventSink for Calls<O> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let free = |this: &mut Self, address| this.objects.free(address, event.time, &mut this.observer);
        match event.kind {
            EventKind::Call(ref call) if call.old != 0 && call.address != 0 => {
                let allocation = self.allocation(event, call);
                self.objects.reallocate(call.old, &allocation, &mut self.observer)?;
            }
            EventKind::Call(ref call) | EventKind::ReallocEnd(ref call) if call.address != 0 => {
                let allocation = self.allocation(event, call);
                self.objects.allocate(&allocation, &mut self.observer)?;
            }
            EventKind::Call(ref call) if call.old_is_gone() => free(self, call.old)?,
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => free(self, address)?,
            EventKind::DestroyHeap => self.objects.end_heap(Some(event.heap), event.time, &mut self.observer)?,
            EventKind::Image { .. } => self.objects.end_heap(None, event.time, &mut self.observer)?,
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

impl From<hatf_lab::Error> for crate::Error {
    fn from(error: hatf_lab::Error) -> Self {
        match error {
            hatf_lab::Error::Usage(message) => Self::Usage(message),
            hatf_lab::Error::System(tried, error) => Self::System(tried.to_owned(), error),
            other => Self::Trace(other.into()),
        }
    }
}
