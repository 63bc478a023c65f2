//! Bytes of records on their way into a chunk. Behind those in use there is room that is filled already, so that a leaf is
//! stored with one check and no change of length.

/// Bytes filled ahead at a time.
const AHEAD: usize = 16 << 10;

/// A buffer of encoded records.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Those in use, and room.
    pub(crate) bytes: Vec<u8>,
    /// How many are in use.
    pub(crate) used: usize,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn in_use(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if let Some(room) = room(&mut self.bytes, self.used, bytes.len()) {
            room.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }

    /// The bytes in use; the buffer is empty then.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.bytes.truncate(self.used);
        self.used = 0;
        std::mem::take(&mut self.bytes)
    }

    /// Takes a vector's memory over.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        *self = Self { bytes, used: 0 };
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
