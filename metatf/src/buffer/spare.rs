//! The spare capacity after a buffer's bytes. A record is written there before it is known whether all of its values
//! fit, and is committed once they do.
//!
//! The capacity is checked once per record, for the maximum size of its numbers. The memory need not be initialized,
//! because filling it with zeros first would write every byte twice. This requires `unsafe` code, which relies on
//! [`Width`] and on the invariants of the fields of [`Buffer`], [`SpareCapacity`] and [`RawWriter`]. Only code in
//! `buffer/` can set these fields.

use super::{Buffer, Until};
use crate::formula::Width;

/// Maximum count of numbers that a record writes in a row: its tag and 255 leaves. A row begins at the start of the
/// record or after a byte array.
const MOST_NUMBERS: u32 = 256;
/// Maximum size of these numbers in bytes.
pub(super) const RESERVE: usize = 8 * MOST_NUMBERS as usize;

impl Buffer {
    /// Returns the vector, with its length at least covering the bytes in use.
    #[inline]
    pub(super) fn vec(&mut self) -> &mut Vec<u8> {
        if self.used > self.bytes.len() {
            // SAFETY: `used` is at most the capacity, and all bytes before it are initialized (the invariant of
            // `Buffer::used`).
            unsafe { self.bytes.set_len(self.used) };
        }
        &mut self.bytes
    }
}

/// Memory after the bytes in use of a buffer, for consecutive records. When it is dropped, the committed records become
/// bytes in use.
pub(crate) struct SpareCapacity<'o> {
    /// The end of the buffer's bytes in use.
    used: &'o mut usize,
    /// The buffer's allocation. It does not move, and nobody else accesses it, because `used` borrows the buffer.
    memory: *mut u8,
    /// The size of the allocation.
    capacity: usize,
    /// The start of the next record. Never exceeds `capacity`, and all bytes before it are initialized.
    at: usize,
    /// The position at or after which no record may start. It is 0, or `until + RESERVE <= capacity`. The borrowed
    /// buffer does not set it in the meantime, and other threads can only set it to 0.
    until: &'o Until,
}

impl<'o> SpareCapacity<'o> {
    /// Borrows a buffer.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new(buffer: &'o mut Buffer) -> Self {
        let (capacity, memory) = (buffer.bytes.capacity(), buffer.bytes.as_mut_ptr());
        let until = &buffer.until;
        debug_assert!(until.get() == 0 || until.get() + RESERVE <= capacity, "the buffer's limit");
        Self { memory, capacity, at: buffer.used, until, used: &mut buffer.used }
    }

    /// Begins the next record. Returns `None` if it might not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn record(&mut self) -> Option<RawWriter<'_>> {
        if self.at >= self.until.get() {
            return None;
        }
        let (memory, capacity, at) = (self.memory, self.capacity, self.at);
        Some(RawWriter { memory, capacity, at, left: MOST_NUMBERS, committed: &mut self.at })
    }

    /// Returns the start of the next record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at(&self) -> usize {
        self.at
    }
}

impl Drop for SpareCapacity<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        *self.used = self.at;
    }
}

/// A writer for one record, which has no effect until it is committed.
pub(crate) struct RawWriter<'r> {
    /// As in [`SpareCapacity`], which `committed` borrows.
    memory: *mut u8,
    capacity: usize,
    /// The position of the next bytes. All bytes before it are initialized.
    at: usize,
    /// Number of values that still fit: `at + 8 * left <= capacity`. The compiler folds this count into a constant
    /// unless a loop or branch intervenes.
    left: u32,
    committed: &'r mut usize,
}

impl RawWriter<'_> {
    /// Writes the low `width` bytes of a number. Returns false if the number does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn number(&mut self, raw: u64, width: Width) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        // SAFETY: `left` was at least 1, so `at + 8 <= capacity` by its invariant, and the bytes are inside the
        // allocation. A byte array has no alignment requirement. The invariants hold again below: `left` is one less,
        // and a `Width` adds at most 8 to `at`, covering bytes that have just been written.
        unsafe { self.memory.add(self.at).cast::<[u8; 8]>().write(raw.to_le_bytes()) };
        self.at += width.bytes();
        true
    }

    /// Writes a number like [`number`](Self::number), with a width known at compile time. It writes exactly this many
    /// bytes if a single store can do so, which reduces the number of stores that cross a cache line.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn constant_width(&mut self, raw: u64, width: Width) -> bool {
        if !matches!(width.bytes(), 1 | 2 | 4) {
            return self.number(raw, width);
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let [a, b, c, d, ..] = raw.to_le_bytes();
        // SAFETY: as in `number`. These are the first of its 8 bytes, and as many as are added to `at`.
        unsafe {
            let place = self.memory.add(self.at);
            match width.bytes() {
                1 => place.write(a),
                2 => place.cast::<[u8; 2]>().write([a, b]),
                _ => place.cast::<[u8; 4]>().write([a, b, c, d]),
            }
        }
        self.at += width.bytes();
        true
    }

    /// Writes bytes. Returns false unless the bytes and the maximum count of numbers after them fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        if self.capacity.saturating_sub(self.at).saturating_sub(bytes.len()) < RESERVE {
            return false;
        }
        // SAFETY: `RESERVE` is greater than 0, so no subtraction saturated, and `at + bytes.len() + RESERVE <=
        // capacity`. `bytes` is not part of this allocation, which nobody else accesses. The `RESERVE` bytes after them
        // satisfy the initial invariant of `left`.
        unsafe { self.memory.add(self.at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.at += bytes.len();
        self.left = MOST_NUMBERS;
        true
    }

    /// Returns the position of the next bytes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Commits the record. The next record begins after it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(self) {
        *self.committed = self.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(bytes: usize) -> Width {
        Width::saturating(bytes)
    }

    fn buffer(bytes: Vec<u8>, used: usize) -> Buffer {
        let mut buffer = Buffer { bytes, used, ..Buffer::default() };
        buffer.open(usize::MAX);
        buffer
    }

    #[test]
    fn what_is_committed_is_there() {
        let mut buffer = buffer(b"abc".to_vec(), 2);
        let mut spare = buffer.spare();
        let mut record = spare.record().unwrap();
        assert!(record.number(0x0102_0304, width(3)) && record.bytes(b"xyz") && record.number(5, width(8)));
        for bytes in 1..=8 {
            assert!(record.constant_width(0x8807_0605_0403_0201, width(bytes)));
        }
        record.commit();
        // This record is not committed.
        assert!(spare.record().unwrap().bytes(b"gone"));
        drop(spare);
        assert_eq!(buffer.len(), 16 + 36);
        let out = buffer.take();
        assert_eq!(out[..16], *b"ab\x04\x03\x02xyz\x05\0\0\0\0\0\0\0");
        let by_width = (1..=8).flat_map(|width| 0x8807_0605_0403_0201_u64.to_le_bytes()[..width].to_vec());
        assert_eq!(out[16..], by_width.collect::<Vec<u8>>());
    }

    #[test]
    fn nothing_is_written_without_capacity() {
        let mut buffer = buffer(Vec::with_capacity(RESERVE + 10), 0);
        let (capacity, mut spare) = (buffer.bytes.capacity(), buffer.spare());
        let mut record = spare.record().unwrap();
        assert_eq!((0..1000).filter(|_| record.number(1, width(8))).count(), MOST_NUMBERS as usize);
        assert!((1..=8).all(|bytes| !record.constant_width(1, width(bytes))));
        assert!(!spare.record().unwrap().bytes(&vec![0; capacity - RESERVE + 1]));
        assert!(spare.record().unwrap().bytes(&vec![0; capacity - RESERVE]));
        drop(spare);
        assert_eq!(buffer.len(), 0);
        buffer.close();
        assert!(buffer.spare().record().is_none());
        buffer.open(0);
        assert!(buffer.spare().record().is_none());
        assert!(Buffer::default().spare().record().is_none());
    }

    /// Records are written to spare capacity, then to prefilled memory, and then to spare capacity again.
    #[test]
    fn one_after_the_other() {
        let mut buffer = Buffer::default();
        buffer.continue_in(b"before".to_vec());
        let mut expected = b"before".to_vec();
        for i in 0..5_u8 {
            buffer.open(usize::MAX);
            let mut spare = buffer.spare();
            let mut record = spare.record().unwrap();
            assert!(record.number(i.into(), width(2)));
            record.commit();
            drop(spare);
            expected.extend([i, 0]);
            let (mut memory, end) = buffer.prefilled();
            memory.at(end, 3).unwrap().copy_from_slice(&[i; 3]);
            assert!(buffer.spare().record().is_none());
            if i != 3 {
                buffer.keep(end + 3);
                expected.extend([i; 3]);
            }
            assert_eq!(buffer.start(), 6);
            assert_eq!(buffer.in_use(), &expected[6..]);
        }
        assert_eq!(buffer.written(), expected);
        assert_eq!(buffer.take(), expected);
        assert!(buffer.is_empty());
    }
}
