//! Interned strings, which events refer to by ID. Within a process, a string has the same ID in all telemetry.
//!
//! Strings are stored separately from events, in memory that only grows, so an ID remains valid after a fork and after
//! the ring that first used it was overwritten. Each buffers file has a copy, from which the drain and `postmortem`
//! write the records.
//!
//! An entry is a word followed by the text, padded to a multiple of 8 bytes. The word contains the length of the text,
//! as in an event, and the ID in the upper 32 bits.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, fence};
use core::hash::Hasher as _;
use core::ptr;
use std::hash::DefaultHasher;

use crate::layout::STRINGS_BYTES;
use crate::slot::store;
use crate::sys;
use crate::tail::{CUT, TEXT_MOST, text};

/// Number of slots in the hash table of entries. An entry has at least 16 bytes, except for the empty string, so at
/// least half of the slots remain free.
const SLOTS: u64 = STRINGS_BYTES / 8;

/// The ID of a string, as returned by `intern` in generated code. It denotes the same string in all telemetry of the
/// process and in its forked children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringId(u32);

impl StringId {
    /// The ID that denotes no string, returned if there is no room for a new string. All strings share 256 KiB.
    pub const NONE: Self = Self(0);

    /// Returns the ID as it is stored in the trace.
    #[inline(always)]
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The strings of a process.
pub(crate) struct Strings {
    /// A lock held by the thread that is adding a string.
    lock: AtomicU32,
    /// The entries, followed by the slots. A slot is 0 if it is free, and otherwise contains an entry's offset divided
    /// by 8, plus 1.
    base: AtomicPtr<u8>,
    /// Size of the complete entries in bytes.
    head: AtomicU64,
    count: AtomicU32,
    /// Number of strings for which there was no room.
    refused: AtomicU64,
}

/// The strings of this process.
pub(crate) static STRINGS: Strings = Strings {
    lock: AtomicU32::new(0),
    base: AtomicPtr::new(ptr::null_mut()),
    head: AtomicU64::new(0),
    count: AtomicU32::new(0),
    refused: AtomicU64::new(0),
};

impl Strings {
    /// Returns the ID of a text. A new text gets the next ID, and `publish` is called before any thread can obtain the
    /// ID. A known text is found without a lock, so a signal handler may call this function. If the handler interrupted
    /// this function, a new string gets no ID.
    pub(crate) fn intern(&self, wanted: &str, publish: impl FnOnce()) -> StringId {
        let (length, bytes) = text(wanted);
        let base = match self.base.load(Acquire) {
            base if base.is_null() => self.make(),
            base => base,
        };
        if base.is_null() {
            self.refused.fetch_add(1, Relaxed);
            return StringId::NONE;
        }
        // SAFETY: this is the memory of the strings, which is permanent.
        let found = unsafe { find(base, length, bytes) };
        match found {
            Found::At(id) => id,
            Found::Free(_) => self.add(base, length, bytes, publish),
        }
    }

    /// Allocates the memory. If two threads race, both use the mapping of the thread that stores its address first.
    fn make(&self) -> *mut u8 {
        let bytes = STRINGS_BYTES + 4 * SLOTS;
        let Ok(made) = usize::try_from(bytes).map_err(|_| libc::EFBIG).and_then(sys::private) else {
            return ptr::null_mut();
        };
        // The losing thread's mapping was never accessed, so it uses no memory.
        match self.base.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
            Ok(_) => made,
            Err(other) => other,
        }
    }

    #[cold]
    fn add(&self, base: *mut u8, length: u64, bytes: &[u8], publish: impl FnOnce()) -> StringId {
        let (thread, errno) = (sys::thread(), sys::errno());
        while let Err(owner) = self.lock.compare_exchange(0, thread, Acquire, Relaxed) {
            if owner == thread {
                self.refused.fetch_add(1, Relaxed);
                return StringId::NONE;
            }
            sys::pause();
        }
        // SAFETY: this is the memory of the strings, and only this thread adds to it.
        let id = unsafe { self.add_locked(base, length, bytes, publish) };
        self.lock.store(0, Release);
        // The caller may be a signal handler.
        sys::set_errno(errno);
        id
    }

    /// Adds a text.
    ///
    /// # Safety
    /// `base` must be the memory of the strings, and no other thread may add to it.
    unsafe fn add_locked(&self, base: *mut u8, length: u64, bytes: &[u8], publish: impl FnOnce()) -> StringId {
        // SAFETY: guaranteed by the caller.
        let free = match unsafe { find(base, length, bytes) } {
            Found::At(id) => return id,
            Found::Free(slot) => slot,
        };
        let at = self.head.load(Relaxed);
        let end = at + 8 + (bytes.len() as u64).next_multiple_of(8);
        let id = self.count.load(Relaxed) + 1;
        let (Some(slot), true) = (free, end <= STRINGS_BYTES) else {
            self.refused.fetch_add(1, Relaxed);
            publish();
            return StringId::NONE;
        };
        let Ok(place) = usize::try_from(at) else { return StringId::NONE };
        // SAFETY: the new entry is after all existing entries and before the slots.
        unsafe {
            let mut to = base.add(place).cast::<u64>();
            store(to, length | u64::from(id) << 32);
            for word in words_of(bytes) {
                to = to.add(1);
                store(to, word);
            }
        }
        self.count.store(id, Relaxed);
        self.head.store(end, Release);
        // Together with the fence in `copy`, this ensures that this thread sees new buffers, or that the thread that
        // creates them sees the string.
        fence(SeqCst);
        publish();
        if let Ok(at) = u32::try_from(at / 8) {
            slot.store(at + 1, Release);
        }
        StringId(id)
    }

    /// Copies the entries that a buffers file does not contain yet, starting at `from`, and returns their end. `to` is
    /// the area for strings in the file. A concurrent call copies the same data.
    ///
    /// # Safety
    /// `to` must point to [`STRINGS_BYTES`] writable bytes at a multiple of 8.
    pub(crate) unsafe fn copy(&self, to: *mut u8, from: u64) -> u64 {
        // Either this thread sees the newest string, or the thread that adds it sees the buffers.
        fence(SeqCst);
        let base = self.base.load(Acquire);
        let end = self.head.load(Acquire);
        if base.is_null() {
            return 0;
        }
        for at in (from & !7..end).step_by(8).filter_map(|at| usize::try_from(at).ok()) {
            // SAFETY: both areas have room for all strings, and this word is before the head.
            unsafe { store(to.add(at).cast(), load(base.add(at).cast())) };
        }
        end
    }

    /// Returns the number of strings for which there was no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Releases the lock in a forked child, where the thread that held it does not exist.
    pub(crate) fn forget_lock(&self) {
        self.lock.store(0, Relaxed);
    }
}

enum Found<'s> {
    At(StringId),
    /// The text is missing. Contains the slot in which the string can be added, if a slot is free.
    Free(Option<&'s AtomicU32>),
}

/// Finds a text.
///
/// # Safety
/// `base` must be the memory of strings, which is permanent.
unsafe fn find<'s>(base: *mut u8, length: u64, bytes: &[u8]) -> Found<'s> {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let hash = hasher.finish();
    for step in 0..SLOTS {
        let Ok(slot) = usize::try_from(STRINGS_BYTES + 4 * (hash.wrapping_add(step) & (SLOTS - 1))) else { break };
        // SAFETY: the slots follow the entries at multiples of 4.
        let slot = unsafe { AtomicU32::from_ptr(base.add(slot).cast()) };
        let Some(at) = slot.load(Acquire).checked_sub(1) else { return Found::Free(Some(slot)) };
        // SAFETY: a slot contains the offset of an entry, which is complete.
        let found = unsafe { is(base.cast::<u64>().add(at as usize), length, bytes) };
        if let Some(id) = found {
            return Found::At(id);
        }
    }
    Found::Free(None)
}

/// Returns the ID of an entry if the entry contains this text.
///
/// # Safety
/// `entry` must point to an entry.
unsafe fn is(entry: *mut u64, length: u64, bytes: &[u8]) -> Option<StringId> {
    // SAFETY: guaranteed by the caller.
    let head = unsafe { load(entry) };
    #[allow(clippy::cast_possible_truncation, reason = "the number is the upper half")]
    let id = (head >> 32) as u32;
    if head & 0xffff_ffff != length {
        return None;
    }
    // SAFETY: an entry has the number of words that its head indicates.
    let is_same = words_of(bytes).zip(1..).all(|(word, at)| unsafe { load(entry.add(at)) } == word);
    is_same.then_some(StringId(id))
}

/// Returns the words of a text in an entry. The last word is padded with zeros.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        u64::from_ne_bytes(word)
    })
}

/// # Safety
/// `at` must point to a word of the strings.
unsafe fn load(at: *mut u64) -> u64 {
    // SAFETY: words of strings are at multiples of 8.
    unsafe { AtomicU64::from_ptr(at) }.load(Relaxed)
}

/// Splits words of a buffers file into entries. Yields the words of each entry, or `None` if an entry is invalid.
pub(crate) fn entries(mut words: &[u64]) -> impl Iterator<Item = Option<&[u64]>> {
    core::iter::from_fn(move || {
        let head = *words.first()?;
        let length = usize::try_from(head & 0xffff & !CUT).unwrap_or(usize::MAX);
        let count = 1 + length.min(TEXT_MOST).div_ceil(8);
        let is_entry = head >> 32 != 0 && length <= TEXT_MOST && head >> 16 & 0xffff == 0;
        let entry = words.get(..count).filter(|_| is_entry);
        words = if entry.is_some() { words.get(count..).unwrap_or_default() } else { &[] };
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Strings {
        Strings {
            lock: AtomicU32::new(0),
            base: AtomicPtr::new(ptr::null_mut()),
            head: AtomicU64::new(0),
            count: AtomicU32::new(0),
            refused: AtomicU64::new(0),
        }
    }

    fn words(strings: &Strings) -> Vec<u64> {
        let mut words = vec![0_u64; usize::try_from(STRINGS_BYTES / 8).unwrap()];
        // SAFETY: there is room for all strings.
        let end = unsafe { strings.copy(words.as_mut_ptr().cast(), 0) };
        words.truncate(usize::try_from(end / 8).unwrap());
        words
    }

    #[test]
    fn a_text_has_one_number_whoever_asks() {
        let strings = new();
        let all: Vec<String> = (0..200).map(|n| "x".repeat(n % 40) + &n.to_string()).collect();
        let ids = || all.iter().map(|text| strings.intern(text, || ()).number()).collect::<Vec<_>>();
        let threads: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ids)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(threads.iter().all(|ids| *ids == threads[0]));
        let mut sorted = threads[0].clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=200).collect::<Vec<_>>());
        // A truncated string differs from a string that ends at the same position.
        let long = "y".repeat(300);
        assert_ne!(strings.intern(&long, || ()), strings.intern(&long[..252], || ()));
        assert_eq!(entries(&words(&strings)).filter(Option::is_some).count(), 202);
    }

    #[test]
    fn strings_without_room_are_counted() {
        let strings = new();
        let full = (0_u64..).take_while(|n| strings.intern(&format!("{n:0250}"), || ()) != StringId::NONE).count();
        assert_eq!((full as u64, strings.refused()), (STRINGS_BYTES / 264, 1));
        assert_eq!(strings.intern(&format!("{:0250}", 7), || ()).number(), 8, "what is known stays known");
        assert_ne!(strings.intern("short", || ()), StringId::NONE, "where it fits");
        strings.lock.store(sys::thread(), Relaxed);
        assert_eq!(strings.intern("in a signal handler", || ()), StringId::NONE);
        assert_eq!(strings.intern("short", || ()).number() as usize, full + 1);
    }

    #[test]
    fn what_is_no_entry_ends_them() {
        let good = [5 | 1 << 32, u64::from_ne_bytes(*b"hello\0\0\0")];
        for bad in [0, 1 << 32 | 256, 5, 5 | 1 << 16 | 1 << 32, 9 | 1 << 32] {
            let words = [&good[..], &[bad, 0]].concat();
            let found: Vec<_> = entries(&words).collect();
            assert_eq!(found, [Some(&good[..]), None], "{bad:x}");
        }
    }
}

#[cfg(all(loom, test))]
impl Strings {
    /// Shares the memory of the strings in a model that starts without strings. Shares this many words of entries, and
    /// the slots of these strings.
    pub(crate) fn share(&self, words: usize, texts: &[&str]) {
        use crate::sync::model::Share as _;
        self.lock.share();
        self.head.share();
        self.count.share();
        self.refused.share();
        let base = self.make();
        self.base.store(base, Relaxed);
        // SAFETY: this is the memory of the strings, which is permanent.
        unsafe {
            (0..words).for_each(|word| AtomicU64::from_ptr(base.cast::<u64>().add(word)).share());
            for text in texts {
                let Found::Free(Some(slot)) = find(base, text.len() as u64, text.as_bytes()) else {
                    panic!("it is new")
                };
                slot.share();
            }
        }
    }
}
