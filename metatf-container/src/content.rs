//! Memory for content, which is reused for later content. Content is large, and touching fresh memory from the system
//! for the first time takes longer than filling it with a fast codec, especially if several threads request memory at
//! the same time.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Content that was decompressed or read from a stream. Clones of a part share it.
#[derive(Clone)]
pub struct Owned {
    /// The content, possibly followed by leftover bytes of earlier content.
    bytes: Arc<[u8]>,
    length: usize,
}

impl Owned {
    /// Keeps only the first bytes.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl Deref for Owned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// A chunk whose columns have not been turned into content.
#[derive(Clone)]
pub struct KeptColumns {
    /// Offset of the chunk.
    pub(super) start: u64,
    /// A copy of the chunk, because another process may change the bytes of a mapped file.
    pub(super) chunk: Arc<[u8]>,
}

impl fmt::Debug for KeptColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptColumns").field("start", &self.start).finish_non_exhaustive()
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("length", &self.length).finish_non_exhaustive()
    }
}

/// A pool of memory for contents. Memory that was handed out is reused once no content uses it.
#[derive(Default)]
pub(super) struct Contents {
    given: Vec<Arc<[u8]>>,
}

/// Maximum number of contents in the pool. A group rarely uses more contents at a time.
const MOST: usize = 32;

/// Maximum amount of unused memory, in bytes, to keep if none of it fits a request.
const KEPT: usize = 16 << 20;

/// Memory for content, not yet shared with anyone.
pub(super) struct Scratch {
    bytes: Arc<[u8]>,
    length: usize,
}

impl Scratch {
    /// Returns the bytes, whose values are arbitrary, or `None` if the memory is shared, which never happens.
    pub(super) fn bytes(&mut self) -> Option<&mut [u8]> {
        Arc::get_mut(&mut self.bytes)?.get_mut(..self.length)
    }
}

impl Contents {
    /// Returns memory for content of this many bytes. The memory is at most twice as large, because a holder of the
    /// content keeps all of it alive.
    pub(super) fn take(&mut self, length: usize) -> Scratch {
        let fits = length..=length.saturating_mul(2);
        let sizes = self.given.iter_mut().enumerate().filter_map(|(at, bytes)| Some((Arc::get_mut(bytes)?.len(), at)));
        let bytes = match sizes.filter(|(size, _)| fits.contains(size)).min() {
            Some((_, at)) => self.given.remove(at),
            None => {
                self.give_up();
                std::iter::repeat_n(0, length).collect()
            }
        };
        Scratch { bytes, length }
    }

    /// Releases unused memory, oldest first, until at most [`KEPT`] bytes of it remain.
    fn give_up(&mut self) {
        let mut free: usize = self.given.iter_mut().filter_map(Arc::get_mut).map(|bytes| bytes.len()).sum();
        self.given.retain_mut(|bytes| {
            let surplus = Arc::get_mut(bytes).filter(|_| free > KEPT).map_or(0, |bytes| bytes.len());
            free -= surplus;
            surplus == 0
        });
    }

    /// Turns the bytes in the memory into content.
    pub(super) fn give(&mut self, scratch: Scratch) -> Owned {
        if self.given.len() >= MOST {
            self.given.remove(0);
        }
        self.given.push(Arc::clone(&scratch.bytes));
        Owned { bytes: scratch.bytes, length: scratch.length }
    }

    /// Returns memory without useful content to the pool.
    pub(super) fn put_back(&mut self, scratch: Scratch) {
        drop(self.give(scratch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(contents: &mut Contents, length: usize, byte: u8) -> Owned {
        let mut scratch = contents.take(length);
        scratch.bytes().unwrap().fill(byte);
        contents.give(scratch)
    }

    #[test]
    fn memory_in_use_is_left_alone() {
        let mut contents = Contents::default();
        let held: Vec<Owned> = (0..100).map(|n| filled(&mut contents, 1000, n)).collect();
        assert!((0..100).zip(&held).all(|(n, content)| content.len() == 1000 && content.iter().all(|&b| b == n)));
        assert_eq!(contents.given.len(), MOST);
    }

    #[test]
    fn memory_is_used_again_where_it_fits() {
        let mut contents = Contents::default();
        let place = |content: &Owned| content.as_ptr();
        let first = filled(&mut contents, 1000, 1);
        let at = place(&first);
        drop(first);
        let shorter = filled(&mut contents, 500, 2);
        assert_eq!((place(&shorter), &shorter[..]), (at, &[2; 500][..]));
        drop(shorter);
        // The free memory is too small for the first request and too large for the second.
        assert_eq!(filled(&mut contents, 1001, 3).len(), 1001);
        let short = filled(&mut contents, 400, 4);
        assert_eq!(&short[..], [4; 400]);
        assert_eq!(short.bytes.len(), 400);
        assert!(filled(&mut contents, 0, 5).is_empty());
    }

    #[test]
    fn little_is_kept() {
        let mut contents = Contents::default();
        for length in 0..20 {
            filled(&mut contents, (length + 1) << 20, 1);
        }
        let kept: usize = contents.given.iter().map(|bytes| bytes.len()).sum();
        assert!(kept <= KEPT + (20 << 20), "{kept}");
        filled(&mut contents, 1, 1);
        let kept: usize = contents.given.iter().map(|bytes| bytes.len()).sum();
        assert!(kept <= KEPT, "{kept}");
    }
}
