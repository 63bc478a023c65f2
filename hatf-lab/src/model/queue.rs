//! The frees to come, ordered by time and object.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A free to come. The order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    /// The bits of the time: those of numbers that are not negative are in the order of the numbers.
    time: u64,
    /// The number of the object.
    number: u64,
    pub(super) slot: u32,
}

impl Free {
    pub(super) fn time(&self) -> f64 {
        f64::from_bits(self.time)
    }
}

/// Frees to come.
#[derive(Debug, Default)]
pub(super) struct Queue(BinaryHeap<Reverse<Free>>);

impl Queue {
    /// Adds a free at a time that is not negative.
    #[inline]
    pub(super) fn add(&mut self, time: f64, number: u64, slot: u32) {
        self.0.push(Reverse(Free { time: time.to_bits(), number, slot }));
    }

    /// Takes the next free, if it is no later than this.
    #[inline]
    pub(super) fn until(&mut self, time: f64) -> Option<Free> {
        let due = self.0.peek().is_some_and(|Reverse(free)| free.time <= time.to_bits());
        if due { self.0.pop().map(|Reverse(free)| free) } else { None }
    }
}
