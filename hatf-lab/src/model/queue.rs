//! The frees to come, ordered by time and object.
//!
//! The earliest are in a small heap, and the others lie unordered in buckets by the digits of their times: by the first digit, of six bits, in
//! which a time differs from the base, which no time to come is before (a radix heap: Ahuja, Mehlhorn, Orlin and Tarjan 1990). When the
//! heap is empty the first bucket goes into it, or, if that is large, into buckets by its next digit. So an entry is moved a few times, from one
//! sequence to the end of another; a heap of all that are live costs a miss of the cache for each of its levels.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a digit.
const DIGIT: usize = 6;
/// Digits of a time.
const DIGITS: usize = 64_usize.div_ceil(DIGIT);
/// Values of a digit.
const VALUES: usize = 1 << DIGIT;
/// Entries in a block: a bucket with no more goes into the heap as it is.
const FEW: usize = 64;
/// A heap of more gives up those that are not among its first.
const MANY: usize = 4 * FEW;

/// A free to come, with the object that ends: a table of objects would cost a miss of the cache at each end. The order is that of the fields,
/// and by the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    /// The bits of the time: those of numbers that are not negative are in the order of the numbers.
    time: u64,
    pub(super) object: Live,
}

/// A live object. The order is that of the numbers, of which each is one object's.
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

/// Blocks, of which the last may have room.
type Bucket = Vec<Vec<Free>>;

/// Frees to come.
#[derive(Debug)]
pub(super) struct Queue {
    /// Those up to a time, and that time.
    heap: BinaryHeap<Reverse<Free>>,
    up_to: u64,
    /// A heap of more than this has grown.
    many: usize,
    /// No time in the buckets is before this one.
    base: u64,
    /// By digit and its value.
    buckets: Vec<[Bucket; VALUES]>,
    /// Of each digit, the values whose buckets hold something.
    filled: [u64; DIGITS],
    /// Empty blocks: buckets are filled in turn, and memory is that of what is in all of them.
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
    /// Adds a free at a time that is not negative, and not before the one that was last asked for.
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

    /// Takes the next free, if it is not later than this.
    #[inline]
    pub(super) fn until(&mut self, time: f64) -> Option<Free> {
        let time = time.to_bits();
        if self.heap.is_empty() {
            self.fill(time);
        }
        let due = self.heap.peek().is_some_and(|Reverse(free)| free.time <= time);
        if due { self.heap.pop().map(|Reverse(free)| free) } else { None }
    }

    /// Puts a free into its bucket.
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

    /// Fills the empty heap with the first frees, if any are due at a time.
    #[inline(never)]
    fn fill(&mut self, time: u64) {
        while let Some(digit) = self.filled.iter().position(|filled| *filled != 0) {
            let Some(filled) = self.filled.get_mut(digit) else { return };
            let value = filled.trailing_zeros() as usize;
            // The digits before are those of the base.
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
            // It keeps the memory for its blocks.
            if let Some(bucket) = self.buckets.get_mut(digit).and_then(|values| values.get_mut(value)) {
                *bucket = blocks;
            }
            if last {
                return;
            }
        }
    }

    /// Leaves the first frees in the heap, and puts the others into buckets.
    #[cold]
    fn shrink(&mut self) {
        let mut frees = std::mem::take(&mut self.heap).into_vec();
        let (_, Reverse(last), _) = frees.select_nth_unstable_by_key(FEW, |Reverse(free)| *free);
        self.up_to = last.time;
        for Reverse(free) in frees.extract_if(.., |Reverse(free)| free.time > self.up_to).collect::<Vec<_>>() {
            self.put(free);
        }
        self.heap = frees.into();
        // Many may be of one time.
        self.many = MANY.max(2 * self.heap.len());
    }
}

/// Returns a digit of a time.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than the number of values")]
fn value(time: u64, digit: usize) -> usize {
    (time >> (DIGIT * digit) & (VALUES as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds and takes frees whose lifetimes `draw` makes of random numbers, and compares with a heap of all.
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
            // At the end, everything.
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
        // Short and long lives, ever longer ones, those of all magnitudes, and ones without end.
        compare(20_000, |_, random| (random % 100_000) as f64 / 3.0);
        compare(20_000, |_, random| if random % 8 == 0 { 1e6 } else { (random % 16) as f64 });
        compare(20_000, |number, random| (number * (random % 3)) as f64);
        compare(20_000, |_, random| f64::from_bits(random << 30));
        compare(2_000, |_, random| if random % 2 == 0 { f64::INFINITY } else { 0.0 });
        // All at one time.
        compare(20_000, |_, _| f64::from_bits(1));
        compare(20_000, |number, _| if number == 0 { 1e300 } else { 1e-300 });
    }
}
