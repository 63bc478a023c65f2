//! Content in memory of its own, and that memory used again for what comes behind it: content is large, and memory fresh
//! from the system costs more to touch for the first time than a fast codec takes to fill it, most of all where several
//! threads ask the system at once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Content that was decompressed, or read from a stream; anyone who holds a part shares it.
#[derive(Clone)]
pub struct Owned {
    /// The content, and what is left of another behind it.
    bytes: Arc<[u8]>,
    length: usize,
}

impl Owned {
    /// Keeps the first bytes only.
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

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("length", &self.length).finish_non_exhaustive()
    }
}

/// A pool of the memory of contents that were given away: what nobody else holds any more is used again.
#[derive(Default)]
pub(super) struct Contents {
    given: Vec<Arc<[u8]>>,
}

/// Contents that are remembered at most; a group seldom has more of them at a time.
const MOST: usize = 32;

/// Bytes of memory that nobody uses which are kept at most where none of it fits.
const KEPT: usize = 16 << 20;

/// Memory for content, which nobody else sees.
pub(super) struct Scratch {
    bytes: Arc<[u8]>,
    length: usize,
}

impl Scratch {
    /// The bytes, whatever is in them; none where the memory is somebody else's, which it is not.
    pub(super) fn bytes(&mut self) -> Option<&mut [u8]> {
        Arc::get_mut(&mut self.bytes)?.get_mut(..self.length)
    }
}

impl Contents {
    /// Memory for content of this many bytes. Not more than twice as much: one who keeps the content keeps all of it.
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

    /// Gives up memory that nobody uses, the oldest first, until little is left.
    fn give_up(&mut self) {
        let mut free: usize = self.given.iter_mut().filter_map(Arc::get_mut).map(|bytes| bytes.len()).sum();
        self.given.retain_mut(|bytes| {
            let surplus = Arc::get_mut(bytes).filter(|_| free > KEPT).map_or(0, |bytes| bytes.len());
            free -= surplus;
            surplus == 0
        });
    }

    /// Makes content of what is in the memory.
    pub(super) fn give(&mut self, scratch: Scratch) -> Owned {
        if self.given.len() >= MOST {
            self.given.remove(0);
        }
        self.given.push(Arc::clone(&scratch.bytes));
        Owned { bytes: scratch.bytes, length: scratch.length }
    }

    /// Takes back memory that holds nothing of worth.
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
        // Too long, and too short for a memory of its size.
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
