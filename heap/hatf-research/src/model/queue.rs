//! A queue of future frees, ordered by time and object.
//!
//! The earliest entries are in a small binary heap. All other entries are in unordered buckets, as in a radix heap
//! (Ahuja, Mehlhorn, Orlin and Tarjan 1990). The bucket depends on the first six-bit digit in which the time differs
//! from a base time, which never exceeds a future time. When the heap becomes empty, the first bucket moves into it or,
//! if the bucket is large, into the buckets for its next digit. Each entry is therefore appended to a sequence only a
//! few times, whereas a heap of all entries would cost a cache miss per level.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits per digit.
const DIGIT: usize = 6;
/// Digits per time.
const DIGITS: usize = 64_usize.div_ceil(DIGIT);
/// The number of values of a digit.
const VALUES: usize = 1 << DIGIT;
/// The number of entries in a block. A bucket with at most this many entries moves directly into the heap.
const FEW: usize = 64;
/// The heap size above which only the earliest entries stay in the heap.
const MANY: usize = 4 * FEW;

/// A future free with the object that it ends. Storing the object here avoids a cache miss per free in a separate
/// table. Entries are ordered by their fields, of which the time and the object number are decisive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    /// The bit pattern of the time. Non-negative floats are ordered like their bit patterns.
    time: u64,
    pub(super) object: Live,
}

/// A live object, ordered by its unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Live {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) tick: u64,
    pub(super) time: u64,
    pub(super) slot: u32,
}

impl Free {
    pub(super) fn time(&self) -> f64 {
        f64::from_bits(self.time)
    }
}

/// A list of blocks, of which only the last one may have room.
type Bucket = Vec<Vec<Free>>;

/// A queue of future frees.
#[derive(Debug)]
pub(super) struct Queue {
    /// The frees up to time `up_to`.
    heap: BinaryHeap<Reverse<Free>>,
    up_to: u64,
    /// The heap size above which the heap is reduced.
    many: usize,
    /// A lower bound of all times in the buckets.
    base: u64,
    /// Buckets, indexed by digit and by the value of the digit.
    buckets: Vec<[Bucket; VALUES]>,
    /// A bit set per digit of the values with non-empty buckets.
    filled: [u64; DIGITS],
    /// Empty blocks for reuse. All buckets share them, so memory depends only on the total number of entries.
    spare: Vec<Vec<Free>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            up_to: 0,
            many: MANY,
            base: 0,
            buckets: (0..DIGITS).map(|_| [const { Vec::new() }; VALUES]).collect(),
            filled: [0; DIGITS],
            spare: Vec::new(),
        }
    }
}

impl Queue {
    /// Adds a free at a non-negative time that does not precede the last requested time.
    #[inline]
    pub(super) fn add(&mut self, time: f64, object: Live) {
        let free = Free { time: time.to_bits(), object };
        if free.time > self.up_to {
            self.put(free);
            return;
        }
        self.heap.push(Reverse(free));
        if self.heap.len() > self.many {
            self.shrink();
        }
    }

    /// Removes the next free if it is not later than `time`.
    #[inline]
    pub(super) fn until(&mut self, time: f64) -> Option<Free> {
        let time = time.to_bits();
        if self.heap.is_empty() {
            self.fill(time);
        }
        let due = self.heap.peek().is_some_and(|Reverse(free)| free.time <= time);
        if due { self.heap.pop().map(|Reverse(free)| free) } else { None }
    }

    /// Moves a free into its bucket.
    #[inline]
    fn put(&mut self, free: Free) {
        let differs = (free.time ^ self.base) | 1;
        let digit = differs.ilog2() as usize / DIGIT;
        let value = value(free.time, digit);
        let bucket = self.buckets.get_mut(digit).and_then(|values| values.get_mut(value));
        let (Some(bucket), Some(filled)) = (bucket, self.filled.get_mut(digit)) else { return };
        match bucket.last_mut() {
            Some(block) if block.len() < FEW => block.push(free),
            _ => {
                *filled |= 1 << value;
                let mut block = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(FEW));
                block.push(free);
                bucket.push(block);
            }
        }
    }

    /// Moves the earliest frees into the empty heap if they are due at `time`.
    #[inline(never)]
    fn fill(&mut self, time: u64) {
        while let Some(digit) = self.filled.iter().position(|filled| *filled != 0) {
            let Some(filled) = self.filled.get_mut(digit) else { return };
            let value = filled.trailing_zeros() as usize;
            // All entries in the bucket have the higher digits of the base.
            let before = if digit + 1 < DIGITS { u64::MAX << (DIGIT * (digit + 1)) } else { 0 };
            let first = self.base & before | (value as u64) << (DIGIT * digit);
            if first > time {
                return;
            }
            let bucket = self.buckets.get_mut(digit).and_then(|values| values.get_mut(value));
            let Some(bucket) = bucket else { return };
            *filled &= !(1 << value);
            let last = digit == 0 || bucket.len() == 1;
            let mut blocks = std::mem::take(bucket);
            if last {
                self.up_to = blocks.iter().flatten().map(|free| free.time).max().unwrap_or(0);
            } else {
                self.base = first;
            }
            for mut block in blocks.drain(..) {
                if last {
                    self.heap.extend(block.drain(..).map(Reverse));
                } else {
                    block.drain(..).for_each(|free| self.put(free));
                }
                self.spare.push(block);
            }
            // The bucket keeps the memory for its blocks.
            if let Some(bucket) = self.buckets.get_mut(digit).and_then(|values| values.get_mut(value)) {
                *bucket = blocks;
            }
            if last {
                return;
            }
        }
    }

    /// Keeps the earliest frees in the heap and moves all others to buckets.
    #[cold]
    fn shrink(&mut self) {
        let mut frees = std::mem::take(&mut self.heap).into_vec();
        let (_, Reverse(last), _) = frees.select_nth_unstable_by_key(FEW, |Reverse(free)| *free);
        self.up_to = last.time;
        for Reverse(free) in frees.extract_if(.., |Reverse(free)| free.time > self.up_to).collect::<Vec<_>>() {
            self.put(free);
        }
        self.heap = frees.into();
        // The heap cannot shrink below the number of frees with the same time.
        self.many = MANY.max(2 * self.heap.len());
    }
}

/// Returns a digit of a time.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the result is less than the number of values")]
fn value(time: u64, digit: usize) -> usize {
    (time >> (DIGIT * digit) & (VALUES as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds and removes frees whose lifetimes `draw` derives from random numbers, and compares the results with a plain
    /// heap.
    fn compare(steps: u64, draw: impl Fn(u64, u64) -> f64) {
        let (mut queue, mut all) = (Queue::default(), BinaryHeap::new());
        let (mut now, mut state) = (0.0, 1_u64);
        for number in 0..steps {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let random = state >> 32;
            let time = now + draw(number, random);
            queue.add(time, Live { number, size: random, tick: number, time: 0, slot: 7 });
            all.push(Reverse((time.to_bits(), number)));
            if random % 5 > 1 {
                now += (random % 7) as f64 / 2.0;
            }
            // Drain the queue at the end.
            let until = if number + 1 == steps { f64::INFINITY } else { now };
            while let Some(free) = queue.until(until) {
                assert_eq!(all.pop(), Some(Reverse((free.time().to_bits(), free.object.number))));
            }
            assert!(all.peek().is_none_or(|Reverse((time, _))| *time > until.to_bits()));
        }
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn the_order_of_a_heap() {
        // Lifetimes are short, long, increasing, of all magnitudes, or infinite.
        compare(20_000, |_, random| (random % 100_000) as f64 / 3.0);
        compare(20_000, |_, random| if random % 8 == 0 { 1e6 } else { (random % 16) as f64 });
        compare(20_000, |number, random| (number * (random % 3)) as f64);
        compare(20_000, |_, random| f64::from_bits(random << 30));
        compare(2_000, |_, random| if random % 2 == 0 { f64::INFINITY } else { 0.0 });
        // All frees at the same time.
        compare(20_000, |_, _| f64::from_bits(1));
        compare(20_000, |number, _| if number == 0 { 1e300 } else { 1e-300 });
    }
}
