//! Bytes of records on their way into a chunk. Behind those in use there is room, so that a leaf is stored with one check and
//! no change of length.
//!
//! There are two ways to it. A [`Room`] is memory that need not hold anything, for records that know at the start how much they
//! take at most. [`Buffer::memory`] is a vector, which is filled ahead, for those that do not.

mod room;

use room::ROOM;
pub(crate) use room::{Pen, Room, Written};

/// Bytes filled ahead at a time. Miri fills byte by byte.
const AHEAD: usize = if cfg!(miri) { 64 } else { 16 << 10 };

/// A buffer of encoded records.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Those in use, and room. Its length lags behind: bytes that rooms have put are counted when it is needed.
    bytes: Vec<u8>,
    /// Where those in use begin: not at 0 where the memory is lent by a sink.
    start: usize,
    /// Where they end: all bytes before it hold something.
    used: usize,
    /// Up to where records may begin, see [`open`](Self::open): 0, or `ROOM` bytes before the end of the memory at most.
    until: usize,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.start
    }

    /// How many bytes are in use.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used - self.start
    }

    /// Where they begin.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where they end.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.used
    }

    pub(crate) fn in_use(&mut self) -> &[u8] {
        let (start, end) = (self.start, self.used);
        self.vec().get(start..end).unwrap_or_default()
    }

    /// All bytes up to the end of those in use.
    #[inline]
    pub(crate) fn written(&mut self) -> &mut [u8] {
        let end = self.used;
        self.vec().get_mut(..end).unwrap_or_default()
    }

    /// Lets records begin where fewer than `most` bytes are in use, as far as there is memory: for one there is.
    pub(crate) fn open(&mut self, most: usize) {
        self.see_to_room();
        self.until = self.start.saturating_add(most).min(self.end_of_room());
    }

    /// Sees to memory behind the bytes in use for a record, and some.
    #[inline]
    pub(crate) fn see_to_room(&mut self) {
        if self.used >= self.end_of_room() {
            self.vec().reserve(ROOM + AHEAD);
        }
    }

    /// Before this a record may begin as far as memory goes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_of_room(&self) -> usize {
        self.bytes.capacity().saturating_sub(ROOM)
    }

    /// No record may begin until it is opened.
    #[inline]
    pub(crate) fn shut(&mut self) {
        self.until = 0;
    }

    /// Room for records behind the bytes in use, if the buffer is open.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn room(&mut self) -> Room<'_> {
        Room::new(self, self.until)
    }

    /// As much room as there is, whether the buffer is open or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn all_room(&mut self) -> Room<'_> {
        Room::new(self, self.end_of_room())
    }

    /// The memory, and where bytes in use end. It is shut to rooms.
    #[inline]
    pub(crate) fn memory(&mut self) -> (Memory<'_>, usize) {
        self.shut();
        let end = self.used;
        (Memory(self.vec()), end)
    }

    /// Bytes up to there are in use, as far as they hold something.
    #[inline]
    pub(crate) fn keep(&mut self, end: usize) {
        self.used = end.min(self.vec().len());
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let (mut memory, end) = self.memory();
        if let Some(room) = memory.room(end, bytes.len()) {
            room.copy_from_slice(bytes);
            self.keep(end + bytes.len());
        }
    }

    /// The bytes up to the last one in use; the buffer is empty then.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let end = self.used;
        self.vec().truncate(end);
        std::mem::take(self).bytes
    }

    /// Takes a vector's memory over.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        *self = Self { bytes, ..Self::default() };
    }

    /// Takes a vector's memory over, behind what is in it.
    pub(crate) fn go_on_in(&mut self, bytes: Vec<u8>) {
        let start = bytes.len();
        *self = Self { bytes, start, used: start, until: 0 };
    }
}

/// A vector that is filled ahead, and made no shorter.
pub(crate) struct Memory<'b>(&'b mut Vec<u8>);

impl<'b> Memory<'b> {
    #[cfg(feature = "dynamic")]
    pub(crate) fn of(bytes: &'b mut Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The same, for as long as it is borrowed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn borrowed(&mut self) -> Memory<'_> {
        Memory(self.0)
    }

    /// What is there from `at` on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn from(&mut self, at: usize) -> Option<&mut [u8]> {
        self.0.get_mut(at..)
    }

    /// `length` bytes from `at` on, there or filled now.
    #[inline]
    pub(crate) fn room(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        if self.0.len().saturating_sub(at) < length {
            self.fill(at, length);
        }
        self.0.get_mut(at..)?.get_mut(..length)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, at: usize, length: usize) {
        self.0.resize(at.saturating_add(length).saturating_add(AHEAD), 0);
    }
}
