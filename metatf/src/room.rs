//! The memory behind a buffer's bytes, where a record is written before it is known whether all of it fits. Whether there is
//! memory is asked once for a record, for the most that its numbers can take.
//!
//! The memory need not hold anything before: to fill it with zeros first would be to write every byte twice.

use std::marker::PhantomData;

/// Numbers of a record that have room in any case: its tag, and 255 leaves.
const NUMBERS: u32 = 256;
/// The bytes that they take at most.
pub(crate) const ROOM: usize = 8 * NUMBERS as usize;

/// A buffer in which records are put one behind the other.
pub(crate) struct Room<'o> {
    out: &'o mut Vec<u8>,
    /// Where its memory begins, and how large it is.
    memory: *mut u8,
    capacity: usize,
    /// All bytes before this are written; the next record begins here.
    at: usize,
    /// Records begin before this. From there on, there are `ROOM` bytes.
    until: usize,
}

impl<'o> Room<'o> {
    /// The next record begins `at` a place up to which the buffer is in use, if that is before `limit` and there is memory.
    #[inline(always)]
    pub(crate) fn new(out: &'o mut Vec<u8>, at: usize, limit: usize) -> Self {
        let (memory, capacity, at) = (out.as_mut_ptr(), out.capacity(), at.min(out.len()));
        let until = limit.min(capacity.saturating_sub(ROOM));
        Self { out, memory, capacity, at, until }
    }

    /// Writes the next record; none where it may have no room.
    #[inline(always)]
    pub(crate) fn pen(&mut self) -> Option<Pen<'_>> {
        if self.at >= self.until {
            return None;
        }
        Some(Pen { memory: self.memory, capacity: self.capacity, at: self.at, left: NUMBERS, room: PhantomData })
    }

    /// Where the next record begins.
    #[inline(always)]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Keeps what the pen has written up to there.
    #[inline(always)]
    pub(crate) fn keep(&mut self, written: Written) {
        self.at = written.0;
    }

    /// What was kept belongs to the buffer; gives where it ends.
    #[inline(always)]
    pub(crate) fn close(&mut self) -> usize {
        if self.at > self.out.len() {
            // SAFETY: all bytes before `at` are written, and it is within the capacity: so it is in `new`, and of a pen, from
            // which `keep` has it.
            unsafe { self.out.set_len(self.at) };
        }
        self.at
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
    /// Writes the low `width` bytes of a number: 0 to 8, as in a plan. False where there is no room.
    #[inline(always)]
    pub(crate) fn number(&mut self, raw: u64, width: usize) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        // SAFETY: `left` was not 0 and `at + 8 * left <= capacity`. That holds where a pen begins, as that is `ROOM` bytes before
        // the end at least, and behind bytes; a number takes 8 bytes from `left`, and adds no more to `at`.
        unsafe { self.memory.add(self.at).cast::<[u8; 8]>().write(raw.to_le_bytes()) };
        debug_assert!(width <= 8, "a plan's or a tag's width");
        self.at += width;
        true
    }

    /// As [`number`](Self::number), for a width known when the program is compiled: it stores no more bytes than that, as far as
    /// one instruction can, so that fewer stores reach from one line of the cache into the next.
    #[inline(always)]
    pub(crate) fn constant_width(&mut self, raw: u64, width: usize) -> bool {
        if !matches!(width, 1 | 2 | 4) {
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
            match width {
                1 => place.write(a),
                2 => place.cast::<[u8; 2]>().write([a, b]),
                _ => place.cast::<[u8; 4]>().write([a, b, c, d]),
            }
        }
        self.at += width;
        true
    }

    /// Writes bytes. False where they and what may follow have no room.
    #[inline(always)]
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
    #[inline(always)]
    pub(crate) fn written(&self) -> Written {
        Written(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there() {
        let mut out = b"abc".to_vec();
        out.reserve_exact(2 * ROOM);
        let mut room = Room::new(&mut out, 2, usize::MAX);
        let mut pen = room.pen().unwrap();
        assert!(pen.number(0x0102_0304, 3) && pen.bytes(b"xyz") && pen.number(5, 8));
        for width in 1..=8 {
            assert!(pen.constant_width(0x8807_0605_0403_0201, width));
        }
        let written = pen.written();
        room.keep(written);
        // A record that is not kept.
        assert!(room.pen().unwrap().bytes(b"gone"));
        assert_eq!(room.close(), 16 + 36);
        assert_eq!(out[..16], *b"ab\x04\x03\x02xyz\x05\0\0\0\0\0\0\0");
        let by_width = (1..=8).flat_map(|width| 0x8807_0605_0403_0201_u64.to_le_bytes()[..width].to_vec());
        assert_eq!(out[16..], by_width.collect::<Vec<u8>>());
    }

    #[test]
    fn nothing_is_written_without_room() {
        let mut out = Vec::with_capacity(ROOM + 10);
        let (capacity, mut room) = (out.capacity(), Room::new(&mut out, 7, usize::MAX));
        let mut pen = room.pen().unwrap();
        assert_eq!((0..1000).filter(|_| pen.number(1, 8)).count(), NUMBERS as usize);
        assert!((1..=8).all(|width| !pen.constant_width(1, width)));
        assert!(!room.pen().unwrap().bytes(&vec![0; capacity - ROOM + 1]));
        assert!(room.pen().unwrap().bytes(&vec![0; capacity - ROOM]));
        assert_eq!(room.close(), 0);
        assert!(Room::new(&mut out, 0, 0).pen().is_none());
        assert!(Room::new(&mut Vec::with_capacity(10), 0, 100).pen().is_none());
    }
}
