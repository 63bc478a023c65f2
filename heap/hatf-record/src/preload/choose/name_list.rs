//! Names of the threads and modules to which recording is restricted, from files in the first process's directory.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::preload::platform::path::Path;
use crate::preload::platform::{files, memory};

/// The maximum length of a list in bytes.
const LIST: usize = 4096;

/// The names, one per line.
pub(super) struct List {
    bytes: [u8; LIST],
    length: usize,
}

/// The threads whose blocks are recorded.
pub(super) static THREADS: AtomicPtr<List> = AtomicPtr::new(null_mut());
/// The modules whose blocks are recorded.
pub(super) static MODULES: AtomicPtr<List> = AtomicPtr::new(null_mut());

/// Reads a list. Returns `None` on failure.
pub(super) fn read(path: &Path, place: &AtomicPtr<List>) -> Option<()> {
    // Replaces the list of an earlier recording, which another thread may still be using.
    let list = memory::pages(size_of::<List>())?.cast::<List>();
    // SAFETY: fresh zeros, which are a valid value and aligned for it, and which nobody else has yet.
    let filled = unsafe { &mut *list };
    filled.length = files::read(path.as_c(), &mut filled.bytes)?.len();
    place.store(list, Ordering::Release);
    Some(())
}

/// Returns whether a list contains a name. A trailing `*` in the list matches anything. Only the first `most` bytes
/// count, for comparison with names truncated by the kernel.
pub(super) fn has(list: &AtomicPtr<List>, name: &[u8], most: usize) -> bool {
    // SAFETY: null, or a list that was written before its address was stored, and that nobody changes or frees.
    let Some(List { bytes, length }) = (unsafe { list.load(Ordering::Acquire).as_ref() }) else { return false };
    let wanted = bytes.get(..*length).unwrap_or_default().split(|byte| *byte == b'\n');
    wanted.filter(|wanted| !wanted.is_empty()).any(|wanted| is_like(wanted, name, most))
}

fn is_like(wanted: &[u8], name: &[u8], most: usize) -> bool {
    let cut = |name: &[u8]| name.len().min(most);
    match wanted.strip_suffix(b"*") {
        Some(wanted) => name.starts_with(wanted.get(..cut(wanted)).unwrap_or_default()),
        None => wanted.get(..cut(wanted)) == Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_of_threads() {
        let is = |wanted: &str, name: &str| is_like(wanted.as_bytes(), name.as_bytes(), 15);
        assert!(is("worker", "worker") && is("work*", "worker") && is("*", "") && is("*", "any"));
        assert!(!is("worker", "worker-1") && !is("worker", "work") && !is("worker*", "work") && !is("", "a"));
        // The kernel keeps 15 bytes of a name.
        assert!(is("a-very-long-name-of-one", "a-very-long-nam") && is("a-very-long-name-of*", "a-very-long-nam"));
        assert!(!is("a-very-long", "a-very-long-nam"));
    }
}
