//! The stack tree: a table next to the spool in which each node contains a return address and its caller's node.

use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::frame::DEPTH_MAX;
use super::{met_modules, python, unwind};
use crate::names;
use crate::preload::platform::own_range::{OwnRange, Place};
use crate::preload::platform::path::Path;
use crate::preload::platform::{files, memory};
use crate::preload::spool::mapping;
use crate::stack_table::{StackTable, stacks_bytes, stacks_first_bytes, stacks_head};

/// Bytes per page.
const PAGE: usize = 4096;
/// The number of nodes cached by their hash.
const MET_NODES: usize = 1 << 15;
/// The table, if stacks are recorded. The low bits of the page-aligned address contain the size: [`StackTable::power`].
static TABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The length in bytes of the initial part of the table for which this process has allocated memory.
static GROWN: AtomicUsize = AtomicUsize::new(0);
/// The address range of the table in an earlier recording of this process.
static PLACE: Place = Place::new();
/// The maximum number of frames in a stack.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Recently seen nodes by the hash of caller and address, or 0 for no node. Lookups verify nodes, so nodes of another
/// process's table do not match.
static MET: [AtomicU32; MET_NODES] = [const { AtomicU32::new(0) }; MET_NODES];

/// Maps the table next to the spool of a process, creating it with at most this many MiB if necessary. Returns `None`
/// on failure, in which case no stacks are recorded.
pub(crate) fn begin(events: &Path, depth: u32, room: u32) -> Option<()> {
    let path = events.folder()?.with(names::STACKS.as_bytes())?;
    let depth = usize::try_from(depth).unwrap_or_default().min(DEPTH_MAX);
    let room = usize::try_from(room).unwrap_or_default() << 20;
    let (file, bytes) = files::open_own(path.as_c()).or_else(|| create(&path, depth, room))?;
    let range = PLACE.take(bytes).or_else(|| OwnRange::reserve(bytes, PAGE));
    let is_mapped = range.as_ref().is_some_and(|range| range.map_file(bytes, file));
    // SAFETY: the file that was opened.
    unsafe { libc::close(file) };
    let range = range?;
    // SAFETY: the file as long as that, which stays mapped while it is in use.
    let table = if is_mapped { unsafe { StackTable::attach(range.memory(), bytes) } } else { None };
    let Some(table) = table else {
        PLACE.put_back(range);
        return None;
    };
    PLACE.keep(range);
    set_table(&table);
    unwind::begin()?;
    DEPTH.store(depth, Ordering::Release);
    Some(())
}

/// Whether there was no memory to grow the table. Memory is not requested again, because the remaining memory is for
/// events.
static CANNOT_GROW: AtomicBool = AtomicBool::new(false);
/// Whether a thread is growing the table. Meanwhile, calls by other threads have no stack.
static GROWING: AtomicBool = AtomicBool::new(false);
/// The maximum number of times to check whether another thread has finished growing the table.
const SHRINK_SPINS: usize = 1 << 20;

/// Allocates memory for a range of bytes in the table. Returns `false` if no memory is available. Preserves `errno`.
#[cold]
fn grow(table: &StackTable<'_>, bytes: Range<usize>) -> bool {
    if CANNOT_GROW.load(Ordering::Relaxed) || GROWING.swap(true, Ordering::Acquire) {
        return false;
    }
    // The table may have been shrunk in the meantime.
    if self::table().is_none_or(|now| bytes.end > now.bytes()) {
        GROWING.store(false, Ordering::Release);
        return false;
    }
    // Allocate complete pages only. The page that contains the preceding bytes is already allocated.
    let (start, end) = (bytes.start.next_multiple_of(PAGE), bytes.end.next_multiple_of(PAGE));
    // SAFETY: `errno` of this thread, and pages of the mapping that nobody uses yet. If only some could be allocated,
    // they are returned.
    unsafe {
        let errno = *libc::__errno_location();
        let pages = table.memory().byte_add(start).cast();
        let grown = memory::advise(pages, end - start, libc::MADV_POPULATE_WRITE) == 0;
        if !grown {
            CANNOT_GROW.store(true, Ordering::Relaxed);
            memory::advise(pages, end - start, libc::MADV_REMOVE);
        } else {
            GROWN.store(bytes.end, Ordering::Relaxed);
        }
        *libc::__errno_location() = errno;
        GROWING.store(false, Ordering::Release);
        grown
    }
}

/// Unmaps addresses into which the table has not grown, so that the table occupies at most this many bytes. Called when
/// a program limits its address space.
pub(crate) fn shrink(bytes: usize) {
    let Some(table) = table().filter(|table| table.bytes() > stacks_bytes(bytes)) else { return };
    // A thread that is growing the table finishes soon, unless this is a signal handler that interrupted it.
    let mut others = (0..SHRINK_SPINS).map(|_| GROWING.swap(true, Ordering::Acquire));
    if others.all(|grows| grows) {
        return;
    }
    let kept = table.used_bytes().max(GROWN.load(Ordering::Relaxed)).max(stacks_bytes(bytes));
    // SAFETY: pages of the mapping after those that have nodes. A thread that has read the table before may request
    // them: `grow` rejects that.
    unsafe {
        if let Some(smaller) = StackTable::attach(table.memory(), kept) {
            set_table(&smaller);
            PLACE.cut(kept);
        }
    }
    GROWING.store(false, Ordering::Release);
}

/// Creates the file of an empty table. Allocates its first part, or the entire file if it cannot grow, because touching
/// a page that a full disk cannot provide would kill the program. Returns the file and its length.
fn create(path: &Path, depth: usize, room: usize) -> Option<(c_int, usize)> {
    let bytes = stacks_bytes(room.min(mapping::share_of_address_space()).min(mapping::file_size_limit()));
    // A file longer than the process's limit raises a signal that kills it.
    if bytes > mapping::file_size_limit() {
        return None;
    }
    let file = files::create(path.as_c())?;
    let whole = !can_grow();
    let head = stacks_head(depth, bytes, whole);
    let place = |bytes: usize| libc::off_t::try_from(bytes).ok();
    let first = place(stacks_first_bytes(bytes, whole))?;
    // SAFETY: an open file, and words with their length.
    let made = unsafe {
        libc::ftruncate(file, place(bytes)?) == 0
            && libc::posix_fallocate(file, 0, first) == 0
            && libc::write(file, head.as_ptr().cast(), size_of_val(&head)).cast_unsigned() == size_of_val(&head)
    };
    if !made {
        // SAFETY: the file that was opened.
        unsafe { libc::close(file) };
        return None;
    }
    Some((file, bytes))
}

/// Returns whether the kernel can allocate pages without touching them. Kernels since 5.14 can, and accept this request
/// for zero bytes.
fn can_grow() -> bool {
    // SAFETY: no bytes.
    unsafe { memory::advise(core::ptr::null_mut(), 0, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Discards the parent process's stacks and modules. The parent's table stays mapped, because an interrupted hook may
/// still write to it when it resumes.
pub(crate) fn leave() {
    DEPTH.store(0, Ordering::Relaxed);
    TABLE.store(core::ptr::null_mut(), Ordering::Relaxed);
    met_modules::leave();
    CANNOT_GROW.store(false, Ordering::Relaxed);
    GROWING.store(false, Ordering::Relaxed);
    GROWN.store(0, Ordering::Relaxed);
    python::leave();
    // Discard all rows, because a module is recorded only when a row of it is parsed.
    unwind::forget();
}

/// Discards all stacks and frees their memory. Other threads may be in the middle of a walk, but nobody reads what they
/// still write.
pub(crate) fn retire() {
    PLACE.retire();
    leave();
}

/// Returns the innermost frame of a stack.
pub(crate) fn innermost(stack: u32) -> Option<usize> {
    let (_, address) = table().filter(|_| stack != 0)?.get(stack)?;
    usize::try_from(address).ok()
}

/// Returns the maximum number of frames in a stack.
#[inline]
pub(crate) fn depth() -> usize {
    DEPTH.load(Ordering::Relaxed)
}

/// Returns the table if stacks are recorded.
#[inline]
pub(crate) fn table() -> Option<StackTable<'static>> {
    let table = TABLE.load(Ordering::Acquire);
    let memory = table.map_addr(|address| address & !(PAGE - 1));
    // SAFETY: null, or the mapping of `begin`, of which this much stays.
    if memory.is_null() { None } else { unsafe { StackTable::of_power(memory, table.addr() % PAGE) } }
}

fn set_table(table: &StackTable<'_>) {
    TABLE.store(table.memory().map_addr(|address| address | table.power()), Ordering::Release);
}

/// Returns the number of a stack, given its frames from the innermost to the outermost.
pub(crate) fn number(table: &StackTable<'_>, frames: &[usize]) -> u32 {
    frames.iter().rev().try_fold(0, |caller, frame| node(table, caller, *frame)).unwrap_or(0)
}

/// Returns the number of the stack formed by a caller's stack and an address, or `None` if there is no room for it.
#[inline]
pub(crate) fn node(table: &StackTable<'_>, caller: u32, address: usize) -> Option<u32> {
    let hash = (address as u64 ^ u64::from(caller) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let met = MET.get(usize::try_from(hash >> (64 - MET_NODES.trailing_zeros())).ok()?)?;
    let known = met.load(Ordering::Relaxed);
    if known != 0 && table.caller(known, address as u64) == Some(caller) {
        return Some(known);
    }
    let node = table.insert(caller, address as u64, |bytes| grow(table, bytes))?;
    met.store(node, Ordering::Relaxed);
    Some(node)
}
