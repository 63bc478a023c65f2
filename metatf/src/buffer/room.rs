//! The memory behind a buffer's bytes, where a record is written before it is known whether all of it fits. Whether there is
//! memory is asked once for a record, for the most that its numbers can take.
//!
//! The memory need not hold anything before: to fill it with zeros first would be to write every byte twice.

use std::marker::PhantomData;

use super::Buffer;
use crate::formula::Width;

/// Numbers of a record that have room in any case: its tag, and 255 leaves.
const NUMBERS: u32 = 256;
/// The bytes that they take at most.
pub(super) const ROOM: usize = 8 * NUMBERS as usize;

impl Buffer {
    /// The vector, its length no less than the bytes in use.
    #[inline]
    pub(super) fn vec(&mut self) -> &mut Vec<u8> {
        if self.used > self.bytes.len() {
            // SAFETY: all bytes before `used` hold something, and it is within the capacity: it is the vector's length at most
            // where it is set, or where a room was kept.
            unsafe { self.bytes.set_len(self.used) };
        }
        &mut self.bytes
    }
}

/// Memory in which records are put one behind the other, from the end of a buffer's bytes in use on.
pub(crate) struct Room<'o> {
    /// The buffer's.
    used: &'o mut usize,
    /// Where its memory begins, and how large it is.
    memory: *mut u8,
    capacity: usize,
    /// All bytes before this are written; the next record begins here.
    at: usize,
    /// Records begin before this. From there on, there are `ROOM` bytes.
    until: usize,
}

impl<'o> Room<'o> {
    /// Behind the bytes in use of a buffer. There have to be `ROOM` bytes of memory from `until` on, or none is before it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new(buffer: &'o mut Buffer, until: usize) -> Self {
        let (capacity, memory) = (buffer.bytes.capacity(), buffer.bytes.as_mut_ptr());
        Self { memory, capacity, at: buffer.used, until, used: &mut buffer.used }
    }

    /// Writes the next record; none where it may have no room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pen(&mut self) -> Option<Pen<'_>> {
        if self.at >= self.until {
            return None;
        }
        Some(Pen { memory: self.memory, capacity: self.capacity, at: self.at, left: NUMBERS, room: PhantomData })
    }

    /// Where the next record begins.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Keeps what the pen has written up to there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn keep(&mut self, written: Written) {
        self.at = written.0;
    }

    /// What was kept is in use.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn close(&mut self) {
        *self.used = self.at;
    }
}

/// Where a pen was when its record was done.
#[derive(Clone, Copy)]
pub(crate) struct Written(usize);

/// Writes a record. What is behind its place is nobody's: until the room is told to keep it, nothing has happened.
pub(crate) struct Pen<'r> {
    memory: *mut u8,
    capacity: usize,
    /// All bytes before this are written.
    at: usize,
    /// So many numbers have room: `at + 8 * left <= capacity`. Where they are written in a straight line the compiler counts them.
    left: u32,
    room: PhantomData<&'r mut u8>,
}

impl Pen<'_> {
    /// Writes the low `width` bytes of a number. False where there is no room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn number(&mut self, raw: u64, width: Width) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        // SAFETY: `left` was not 0 and `at + 8 * left <= capacity`. That holds where a pen begins, as that is `ROOM` bytes before
        // the end at least, and behind bytes; a number takes 8 bytes from `left`, and adds no more to `at`.
        unsafe { self.memory.add(self.at).cast::<[u8; 8]>().write(raw.to_le_bytes()) };
        self.at += width.bytes();
        true
    }

    /// As [`number`](Self::number), for a width known when the program is compiled: it stores no more bytes than that, as far as
    /// one instruction can, so that fewer stores reach from one line of the cache into the next.
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
        // SAFETY: as in `number`, of which these are the first bytes.
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

    /// Writes bytes. False where they and what may follow have no room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        if self.capacity.saturating_sub(self.at).saturating_sub(bytes.len()) < ROOM {
            return false;
        }
        // SAFETY: `at + bytes.len() + ROOM <= capacity`, and the memory is not that of `bytes`: a room has it alone.
        unsafe { self.memory.add(self.at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.at += bytes.len();
        self.left = NUMBERS;
        true
    }

    /// Where it is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn written(&self) -> Written {
        Written(self.at)
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
    fn what_is_kept_is_there() {
        let mut buffer = buffer(b"abc".to_vec(), 2);
        let mut room = buffer.room();
        let mut pen = room.pen().unwrap();
        assert!(pen.number(0x0102_0304, width(3)) && pen.bytes(b"xyz") && pen.number(5, width(8)));
        for bytes in 1..=8 {
            assert!(pen.constant_width(0x8807_0605_0403_0201, width(bytes)));
        }
        let written = pen.written();
        room.keep(written);
        // A record that is not kept.
        assert!(room.pen().unwrap().bytes(b"gone"));
        room.close();
        assert_eq!(buffer.len(), 16 + 36);
        let out = buffer.take();
        assert_eq!(out[..16], *b"ab\x04\x03\x02xyz\x05\0\0\0\0\0\0\0");
        let by_width = (1..=8).flat_map(|width| 0x8807_0605_0403_0201_u64.to_le_bytes()[..width].to_vec());
        assert_eq!(out[16..], by_width.collect::<Vec<u8>>());
    }

    #[test]
    fn nothing_is_written_without_room() {
        let mut buffer = buffer(Vec::with_capacity(ROOM + 10), 0);
        let (capacity, mut room) = (buffer.bytes.capacity(), buffer.room());
        let mut pen = room.pen().unwrap();
        assert_eq!((0..1000).filter(|_| pen.number(1, width(8))).count(), NUMBERS as usize);
        assert!((1..=8).all(|bytes| !pen.constant_width(1, width(bytes))));
        assert!(!room.pen().unwrap().bytes(&vec![0; capacity - ROOM + 1]));
        assert!(room.pen().unwrap().bytes(&vec![0; capacity - ROOM]));
        room.close();
        assert_eq!(buffer.len(), 0);
        buffer.shut();
        assert!(buffer.room().pen().is_none() && buffer.all_room().pen().is_some());
        buffer.open(0);
        assert!(buffer.room().pen().is_none());
        assert!(Buffer::default().room().pen().is_none() && Buffer::default().all_room().pen().is_none());
    }

    /// Records by a room, by the memory, and by a room again.
    #[test]
    fn one_after_the_other() {
        let mut buffer = Buffer::default();
        buffer.go_on_in(b"before".to_vec());
        let mut expected = b"before".to_vec();
        for i in 0..5_u8 {
            buffer.open(usize::MAX);
            let mut room = buffer.room();
            let mut pen = room.pen().unwrap();
            assert!(pen.number(i.into(), width(2)));
            let written = pen.written();
            room.keep(written);
            room.close();
            expected.extend([i, 0]);
            let (mut memory, end) = buffer.memory();
            memory.room(end, 3).unwrap().copy_from_slice(&[i; 3]);
            assert!(buffer.room().pen().is_none());
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
