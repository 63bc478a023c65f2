//! Address ranges of this process that belong to the recorder. A file can be mapped over other memory only through such
//! a range, which cannot grow.

use crate::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::{large, memory};

/// Bytes per page.
const PAGE: usize = 4096;

/// Addresses that nobody else maps or unmaps. The address and length form one value, which cannot be copied.
#[derive(Debug)]
pub(crate) struct OwnRange {
    from: *mut c_void,
    bytes: usize,
    /// Whether memory was mapped in the range, to which a thread in the middle of a hook may still write.
    is_used: bool,
}

impl OwnRange {
    /// Reserves at least this many bytes of address space, aligned to `align`, which must be a power of two and at
    /// least the page size.
    pub(crate) fn reserve(bytes: usize, align: usize) -> Option<Self> {
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let more = align - PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: addresses chosen by the system; then those of them that were not requested.
        unsafe {
            let all = memory::map(null_mut(), bytes.checked_add(more)?, libc::PROT_NONE, flags, -1, 0);
            if all == libc::MAP_FAILED {
                return None;
            }
            // Addresses without memory would count against a limit for locked memory.
            memory::unlock(all, bytes + more);
            let before = (all as usize).next_multiple_of(align) - all as usize;
            let range = Self { from: all.byte_add(before), bytes, is_used: false };
            if before > 0 {
                memory::unmap(all, before);
            }
            if more > before {
                memory::unmap(range.from.byte_add(bytes), more - before);
            }
            Some(range)
        }
    }

    /// Returns the start of the range.
    pub(crate) fn memory(&self) -> *mut u8 {
        self.from.cast()
    }

    /// Maps the beginning of a file at the start of the range for reading and writing. Returns `false` if that is
    /// impossible or there is no room.
    pub(crate) fn map_file(&self, bytes: usize, file: c_int) -> bool {
        if bytes.checked_next_multiple_of(PAGE).is_none_or(|bytes| bytes > self.bytes) {
            return false;
        }
        // SAFETY: addresses of ours. They are replaced and never free in between: a thread may still write to the
        // previous contents.
        unsafe {
            if self.is_used {
                large::map_over(self.from, bytes, file)
            } else {
                large::map(self.from, bytes, libc::MAP_SHARED | libc::MAP_FIXED, file) != libc::MAP_FAILED
            }
        }
    }

    /// Unmaps the addresses after the first `bytes`.
    pub(crate) fn cut(&mut self, bytes: usize) {
        let kept = self.keep_first(bytes);
        if kept.bytes > 0 {
            kept.unmap();
        }
    }

    /// Splits off the addresses after the first `bytes`.
    fn keep_first(&mut self, bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE).min(self.bytes);
        let rest = Self { from: self.from.wrapping_byte_add(bytes), bytes: self.bytes - bytes, is_used: self.is_used };
        self.bytes = bytes;
        rest
    }

    /// Unmaps the entire range, which nobody uses any more.
    pub(crate) fn unmap(self) {
        // SAFETY: addresses of ours.
        unsafe { large::unmap(self.from, self.bytes) };
    }
}

/// The range in which an object of the recorder is or was mapped. The next object of the same kind may be mapped in the
/// same range, so a process to which `hatf` attaches repeatedly has only one range of each kind.
pub(crate) struct Place {
    state: AtomicU32,
    from: AtomicPtr<c_void>,
    bytes: AtomicUsize,
}

/// There is no range.
const NONE: u32 = 0;
/// A thread is reading or changing the range.
const BUSY: u32 = 1;
/// An object is mapped in the range.
const USED: u32 = 2;
/// The range contains private zeros, to which a thread in the middle of a hook may still write.
const FREE: u32 = 3;

impl Place {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU32::new(NONE), from: AtomicPtr::new(null_mut()), bytes: AtomicUsize::new(0) }
    }

    /// Removes the range from the place and returns it, if the place is in this state.
    fn out(&self, state: u32) -> Option<OwnRange> {
        self.state.compare_exchange(state, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let (from, bytes) = (self.from.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        Some(OwnRange { from, bytes, is_used: true })
    }

    /// Stores a range in the place, which is then in this state.
    fn set(&self, range: OwnRange, state: u32) {
        self.from.store(range.from, Ordering::Relaxed);
        self.bytes.store(range.bytes, Ordering::Relaxed);
        self.state.store(state, Ordering::Release);
    }

    /// Takes the range of an object that is no longer mapped, if it is long enough.
    pub(crate) fn take(&self, bytes: usize) -> Option<OwnRange> {
        let range = self.out(FREE)?;
        if range.bytes < bytes {
            self.set(range, FREE);
            return None;
        }
        self.state.store(NONE, Ordering::Release);
        Some(range)
    }

    /// Keeps the range of a newly mapped object. A previous range stays mapped but is no longer tracked. Only the
    /// thread that begins a recording calls this, and only one thread begins a recording at a time.
    pub(crate) fn keep(&self, range: OwnRange) {
        self.state.store(BUSY, Ordering::Relaxed);
        self.set(range, USED);
    }

    /// Unmaps the range after its first `bytes` bytes. Does nothing if another thread is changing the range.
    pub(crate) fn cut(&self, bytes: usize) {
        if let Some(mut range) = self.out(USED) {
            range.cut(bytes);
            self.set(range, USED);
        }
    }

    /// Gives up the addresses after the first `bytes`, which another owner unmaps.
    pub(crate) fn forget_rest(&self, bytes: usize) {
        if let Some(mut range) = self.out(USED) {
            range.keep_first(bytes);
            self.set(range, USED);
        }
    }

    /// Replaces the mapped object with private, zero-filled memory. The next object of its kind may take the range.
    pub(crate) fn retire(&self) {
        if let Some(range) = self.out(USED) {
            // SAFETY: addresses of ours.
            unsafe { replace_by_zeros(range.memory(), range.bytes) };
            self.set(range, FREE);
        }
    }

    /// Puts back a range that was taken or created but is not needed.
    pub(crate) fn put_back(&self, range: OwnRange) {
        // SAFETY: addresses of ours.
        unsafe { replace_by_zeros(range.memory(), range.bytes) };
        if self.state.compare_exchange(NONE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            self.set(range, FREE);
        }
    }
}

/// Replaces one of our mappings with private, zero-filled memory. References into it stay valid, because all of its
/// contents are atomics. Preserves `errno`, which may be inspected after a fork.
///
/// # Safety
/// The recorder must have mapped these addresses, and nobody may have unmapped them.
pub(crate) unsafe fn replace_by_zeros(from: *mut u8, bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: by the caller's promise; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        memory::map(from.cast(), bytes, access, flags, -1, 0);
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    fn file(bytes: usize) -> std::fs::File {
        let file = tempfile();
        file.set_len(bytes as u64).unwrap();
        file
    }

    fn tempfile() -> std::fs::File {
        // SAFETY: a C string; the descriptor is new, and nobody else has it.
        unsafe {
            use std::os::fd::FromRawFd as _;
            let file = libc::memfd_create(c"range".as_ptr(), 0);
            assert!(file >= 0);
            std::fs::File::from_raw_fd(file)
        }
    }

    /// Maps zeros at an address. Returns `false` if anything is already mapped there.
    pub(super) fn program_maps(from: *mut u8, bytes: usize) -> bool {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: nothing is replaced.
        unsafe { libc::mmap(from.cast(), bytes, access, flags, -1, 0) == from.cast() }
    }

    #[test]
    fn aligned_ranges() {
        for align in [PAGE, 4 * PAGE, 1 << 20] {
            let range = OwnRange::reserve(3 * PAGE - 1, align).unwrap();
            assert!((range.memory() as usize).is_multiple_of(align));
            assert_eq!(range.bytes, 3 * PAGE);
            assert!(!range.map_file(4 * PAGE, file(4 * PAGE).as_raw_fd()));
            assert!(range.map_file(3 * PAGE, file(3 * PAGE).as_raw_fd()));
            range.unmap();
        }
    }

    /// A range is cut, the program maps memory there, and the next file is longer.
    #[test]
    fn a_place_never_maps_over_what_was_given_back() {
        const PAGES: usize = 16;
        let place = Place::new();
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % below as u64).unwrap()
        };
        let mut cuts = 0;
        for _ in 0..300 {
            let bytes = (1 + next(PAGES)) * PAGE;
            let range = place.take(bytes).unwrap_or_else(|| OwnRange::reserve(bytes, PAGE).unwrap());
            let (from, length) = (range.memory(), range.bytes);
            assert!(range.map_file(bytes, file(bytes).as_raw_fd()));
            place.keep(range);
            assert!(place.take(PAGE).is_none(), "what is in use");
            let kept = (1 + next(length / PAGE)) * PAGE;
            let mut theirs = None;
            if next(2) == 0 {
                place.cut(kept);
                let rest = length - kept;
                if rest > 0 && program_maps(from.wrapping_byte_add(kept), rest) {
                    // SAFETY: the memory that was mapped just now.
                    let memory = unsafe { core::slice::from_raw_parts_mut(from.wrapping_byte_add(kept), rest) };
                    memory.fill(0xa5);
                    theirs = Some(memory);
                    cuts += 1;
                }
            }
            place.retire();
            if let Some(range) = place.take(next(PAGES) * PAGE) {
                range.map_file(range.bytes, file(range.bytes).as_raw_fd());
                // SAFETY: mapped just now, as long as that.
                unsafe { range.memory().write_bytes(1, range.bytes) };
                place.put_back(range);
            }
            if let Some(memory) = theirs {
                assert!(memory.iter().all(|byte| *byte == 0xa5));
                // SAFETY: mapped above.
                unsafe { libc::munmap(memory.as_mut_ptr().cast(), memory.len()) };
            }
        }
        assert!(cuts > 20, "{cuts}");
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::tests::program_maps;
    use super::*;
    use crate::sync::model::{Share as _, model, spawn};

    /// Creates a place and, in each execution, a range of two pages that it keeps.
    fn place(run: impl Fn(&'static Place, *mut u8) + 'static) {
        let place: &Place = Box::leak(Box::new(Place::new()));
        model(3, move || {
            place.state.share();
            place.from.share();
            place.bytes.share();
            let range = OwnRange::reserve(2 * PAGE, PAGE).unwrap();
            let from = range.memory();
            place.keep(range);
            run(place, from);
        });
    }

    #[test]
    fn one_thread_gets_a_range() {
        place(|place, from| {
            place.retire();
            let threads = [PAGE, 2 * PAGE, 3 * PAGE].map(|bytes| spawn(move || place.take(bytes)));
            let taken = threads.map(|thread| thread.join().unwrap());
            assert!(taken[2].is_none(), "too short");
            let mut taken = taken.into_iter().flatten().chain(place.take(PAGE));
            let range = taken.next().unwrap();
            assert!(taken.next().is_none());
            assert_eq!((range.memory(), range.bytes), (from, 2 * PAGE));
            range.unmap();
        });
    }

    /// The program maps memory at addresses returned by one thread, while another thread retires the range and takes it
    /// again.
    #[test]
    fn what_was_given_back_is_not_touched() {
        place(|place, from| {
            let theirs = from.wrapping_byte_add(PAGE);
            let program = spawn(move || {
                place.cut(PAGE);
                let is_free = program_maps(theirs, PAGE);
                if is_free {
                    // SAFETY: mapped just now.
                    unsafe { theirs.write_bytes(0xa5, PAGE) };
                }
                is_free
            });
            let recorder = spawn(|| {
                place.retire();
                place.take(PAGE)
            });
            let (is_free, taken) = (program.join().unwrap(), recorder.join().unwrap());
            let range = taken.or_else(|| place.out(USED)).or_else(|| place.out(FREE)).unwrap();
            assert_eq!((range.memory(), range.bytes), (from, if is_free { PAGE } else { 2 * PAGE }));
            if is_free {
                // SAFETY: the program has mapped the page, and nobody has unmapped it.
                let page = unsafe { core::slice::from_raw_parts(theirs, PAGE) };
                assert!(page.iter().all(|byte| *byte == 0xa5));
                // SAFETY: as above.
                unsafe { memory::unmap(theirs.cast(), PAGE) };
            }
            range.unmap();
        });
    }
}
