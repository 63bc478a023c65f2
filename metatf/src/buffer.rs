//! Bytes of records on their way into a chunk. Behind those in use there is room that is filled already, so that a leaf is
//! stored with one check and no change of length.

use crate::room::{ROOM, Room};

/// Bytes filled ahead at a time. Miri fills byte by byte.
const AHEAD: usize = if cfg!(miri) { 64 } else { 16 << 10 };

/// A buffer of encoded records.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Those in use, and room.
    pub(crate) bytes: Vec<u8>,
    /// Where those in use begin: not at 0 where the memory is lent by a sink.
    pub(crate) start: usize,
    /// Where they end.
    pub(crate) used: usize,
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

    pub(crate) fn in_use(&self) -> &[u8] {
        self.bytes.get(self.start..self.used).unwrap_or_default()
    }

    /// Sees to memory behind the bytes in use for a record, and some.
    #[inline]
    pub(crate) fn see_to_room(&mut self) {
        if self.bytes.capacity() - self.used <= ROOM {
            let more = self.used + ROOM + AHEAD - self.bytes.len();
            self.bytes.reserve(more);
        }
    }

    /// The memory behind the bytes in use, for records that begin before a limit.
    #[inline(always)]
    pub(crate) fn room(&mut self, limit: usize) -> Room<'_> {
        Room::new(&mut self.bytes, self.used, limit)
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if let Some(room) = room(&mut self.bytes, self.used, bytes.len()) {
            room.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }

    /// The bytes up to the last one in use; the buffer is empty then.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.bytes.truncate(self.used);
        (self.start, self.used) = (0, 0);
        std::mem::take(&mut self.bytes)
    }

    /// Takes a vector's memory over.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        *self = Self { bytes, start: 0, used: 0 };
    }

    /// Takes a vector's memory over, behind what is in it.
    pub(crate) fn go_on_in(&mut self, bytes: Vec<u8>) {
        let start = bytes.len();
        *self = Self { bytes, start, used: start };
    }
}

/// `length` bytes from `at` on, there or filled now.
#[inline]
pub(crate) fn room(bytes: &mut Vec<u8>, at: usize, length: usize) -> Option<&mut [u8]> {
    if bytes.len().saturating_sub(at) < length {
        fill(bytes, at, length);
    }
    bytes.get_mut(at..)?.get_mut(..length)
}

#[cold]
#[inline(never)]
fn fill(bytes: &mut Vec<u8>, at: usize, length: usize) {
    bytes.resize(at.saturating_add(length).saturating_add(AHEAD), 0);
}
