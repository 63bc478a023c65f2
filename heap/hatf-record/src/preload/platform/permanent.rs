//! Memory that is kept for the rest of the process, because references to it may exist at any time: small pieces of
//! pages that are never unmapped.

use crate::sync::{AtomicPtr, Ordering};
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;

use super::memory;
use super::memory::pages;

const PAGE: usize = 4096;
/// Every piece begins at a multiple of this value.
pub(crate) const ALIGN: usize = 16;

/// Pages that are handed out from the front, as a pointer to the remainder of the last page. A pointer to the start of
/// a page means that there is no page, because the first piece of a page is handed out when the page is created.
pub(crate) struct Pieces(AtomicPtr<c_void>);

impl Pieces {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Returns zeroed memory, and whether a page was created for it that contains nothing else yet. Returns `None` if
    /// there is no memory. Preserves `errno`.
    pub(crate) fn take(&self, bytes: usize) -> Option<(*mut c_void, bool)> {
        let bytes = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        if bytes > PAGE / 2 {
            return Some((pages(bytes)?, true));
        }
        loop {
            let rest = self.0.load(Ordering::Acquire);
            let used = rest as usize % PAGE;
            if used != 0 && used + bytes <= PAGE {
                // If this fills the page, `next` is the address after it, which is never accessed.
                let next = rest.wrapping_byte_add(bytes);
                if self.0.compare_exchange(rest, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    return Some((rest, false));
                }
                continue;
            }
            let page = pages(PAGE)?;
            if self.0.compare_exchange(rest, page.wrapping_byte_add(bytes), Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                return Some((page, true));
            }
            // Another thread was faster.
            // SAFETY: the page that was created just now, which nobody else has.
            unsafe { memory::unmap(page, PAGE) };
        }
    }
}

static PIECES: Pieces = Pieces::new();

/// Stores a value permanently. Returns `None` if there is no memory.
pub(crate) fn keep<T: Sync>(value: T) -> Option<&'static T> {
    const { assert!(align_of::<T>() <= ALIGN) };
    let (memory, _) = PIECES.take(size_of::<T>())?;
    let place = memory.cast::<T>();
    // SAFETY: fresh memory of this size, aligned for it, which is never unmapped.
    unsafe {
        place.write(value);
        place.as_ref()
    }
}

/// Stores a copy of a string permanently, like [`keep`].
pub(crate) fn keep_text(text: &CStr) -> Option<&'static CStr> {
    let bytes = text.to_bytes_with_nul();
    let (memory, _) = PIECES.take(bytes.len())?;
    // SAFETY: fresh memory of this size, which is never unmapped, and which then contains a string that ends with a
    // zero.
    unsafe {
        memory.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Some(CStr::from_ptr(memory.cast()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_page() {
        let pieces = Pieces::new();
        let taken: Vec<_> = (1..400).map(|bytes| (bytes, pieces.take(bytes).unwrap())).collect();
        let made = taken.iter().filter(|(_, (_, is_new))| *is_new).count();
        assert!((20..30).contains(&made), "{made}");
        let mut places: Vec<_> = taken.iter().map(|(bytes, (at, _))| (*at as usize, *bytes)).collect();
        places.sort_unstable();
        assert!(places.iter().all(|(at, _)| at.is_multiple_of(ALIGN)));
        assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let (large, is_new) = pieces.take(10_000).unwrap();
        assert!(is_new);
        // SAFETY: as long as that, and nobody else's.
        unsafe { large.cast::<u8>().write_bytes(1, 10_000) };
    }

    #[test]
    fn what_is_kept() {
        let texts: Vec<_> =
            (0..300).map(|n| keep_text(&std::ffi::CString::new("x".repeat(n)).unwrap()).unwrap()).collect();
        assert!(texts.iter().enumerate().all(|(n, text)| text.to_bytes() == "x".repeat(n).as_bytes()));
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::sync::model::{Share as _, model, spawn};

    /// Makes two threads take pieces of these lengths from a page with `left` remaining bytes.
    fn taken_by_two_threads(left: usize, lengths: &'static [usize]) {
        let pieces: &Pieces = Box::leak(Box::new(Pieces::new()));
        for bytes in [PAGE / 2, PAGE / 2 - left] {
            pieces.take(bytes).filter(|_| left > 0);
        }
        model(3, move || {
            pieces.0.share();
            let take = || lengths.iter().map(|bytes| (*bytes, pieces.take(*bytes).unwrap())).collect::<Vec<_>>();
            let threads = [spawn(take), spawn(take)];
            let mut taken: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            taken.sort_unstable_by_key(|(_, (at, _))| at.addr());
            let ends = taken.iter().map(|(bytes, (at, _))| at.addr() + bytes);
            assert!(ends.zip(&taken[1..]).all(|(end, (_, (next, _)))| end <= next.addr()), "{taken:?}");
            // A page is created for the first of its pieces.
            assert!(taken.iter().all(|(_, (at, is_new))| *is_new == at.addr().is_multiple_of(PAGE)), "{taken:?}");
            for (_, (page, _)) in taken.iter().filter(|(_, (_, is_new))| *is_new) {
                // SAFETY: a page that was created for this execution.
                unsafe { memory::unmap(*page, PAGE) };
            }
        });
    }

    #[test]
    fn no_piece_is_taken_twice() {
        taken_by_two_threads(48, &[16, 16]);
    }

    #[test]
    fn a_page_is_made_once() {
        taken_by_two_threads(0, &[16, 32]);
        taken_by_two_threads(16, &[32, 16]);
    }
}
