//! The tree of stacks: a table beside the spool, in which each node is a return address and the node of its caller.

use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::frame::DEPTH_MAX;
use super::{met_modules, python, unwind};
use crate::names;
use crate::preload::platform::path::Path;
use crate::preload::platform::{files, large, memory};
use crate::preload::spool::mapping::{self, Place};
use crate::stack_table::{StackTable, stacks_bytes, stacks_first_bytes, stacks_head};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Nodes of the table that are kept by their hash.
const MET_NODES: usize = 1 << 15;
/// The table, if stacks are recorded, and in the bits that an address of a page has not, its length: [`StackTable::power`].
static TABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// Bytes of it, from its beginning, to which this process has given memory.
static GROWN: AtomicUsize = AtomicUsize::new(0);
/// Where it was in an earlier recording of this process.
static PLACE: Place = Place::new();
/// The most frames of a stack.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Nodes that were met, by the hash of caller and address; 0: none. Of another process's table they are not what is looked for.
static MET: [AtomicU32; MET_NODES] = [const { AtomicU32::new(0) }; MET_NODES];

/// Maps the table beside the spool of a process, and makes it where there is none, with this many MiB at most; `None` where that cannot be, and no
/// stacks are recorded.
pub(crate) fn begin(events: &Path, depth: u32, room: u32) -> Option<()> {
    let path = events.folder()?.with(names::STACKS.as_bytes())?;
    let depth = usize::try_from(depth).unwrap_or_default().min(DEPTH_MAX);
    let room = usize::try_from(room).unwrap_or_default() << 20;
    // SAFETY: a C string, and system calls with valid arguments whose results are checked.
    unsafe {
        let (file, bytes) = files::open_own(path.as_c()).or_else(|| create(&path, depth, room))?;
        let place = PLACE.take(bytes);
        let flags = if place.is_some() { libc::MAP_SHARED | libc::MAP_FIXED } else { libc::MAP_SHARED };
        let memory = large::map(place.unwrap_or_default(), bytes, flags, file);
        libc::close(file);
        if memory == libc::MAP_FAILED {
            return None;
        }
        set_table(&StackTable::attach(memory.cast(), bytes)?);
    }
    unwind::begin()?;
    DEPTH.store(depth, Ordering::Release);
    Some(())
}

/// There was no memory for the table to grow. It is not asked for again: what there is is for events.
static CANNOT_GROW: AtomicBool = AtomicBool::new(false);
/// A thread has it grow. Another's call has no stack meanwhile.
static GROWING: AtomicBool = AtomicBool::new(false);
/// How often it is looked whether another thread is done.
const SHRINK_SPINS: usize = 1 << 20;

/// Gives memory to bytes of the table; `false` if there is none. Keeps `errno`.
#[cold]
fn grow(table: &StackTable<'_>, bytes: Range<usize>) -> bool {
    if CANNOT_GROW.load(Ordering::Relaxed) || GROWING.swap(true, Ordering::Acquire) {
        return false;
    }
    // The table may have become smaller meanwhile.
    if self::table().is_none_or(|now| bytes.end > now.bytes()) {
        GROWING.store(false, Ordering::Release);
        return false;
    }
    // Whole pages: the one that bytes before these are in is there.
    let (start, end) = (bytes.start.next_multiple_of(PAGE), bytes.end.next_multiple_of(PAGE));
    // SAFETY: `errno` of this thread, and pages of the mapping that nobody uses yet. Where only some could be had they are given back.
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

/// Gives back addresses of what the table has not grown to, so that it has this many bytes at most, for a program that may have few.
pub(crate) fn shrink(bytes: usize) {
    let Some(table) = table().filter(|table| table.bytes() > stacks_bytes(bytes)) else { return };
    // One who has it grow is done soon, unless this is a signal handler on top of it.
    let mut others = (0..SHRINK_SPINS).map(|_| GROWING.swap(true, Ordering::Acquire));
    if others.all(|grows| grows) {
        return;
    }
    let kept = table.used_bytes().max(GROWN.load(Ordering::Relaxed)).max(stacks_bytes(bytes));
    // SAFETY: pages of the mapping behind those that have nodes. One who has looked at the table before may ask for them: `grow` refuses that.
    unsafe {
        if let Some(smaller) = StackTable::attach(table.memory(), kept) {
            set_table(&smaller);
            let (start, end) = (kept.next_multiple_of(PAGE), table.bytes().next_multiple_of(PAGE));
            large::unmap(table.memory().byte_add(start).cast(), end.saturating_sub(start));
        }
    }
    GROWING.store(false, Ordering::Release);
}

/// Makes the file of an empty table, of whose memory the first part is present, or all where it cannot grow: touching a page that a full
/// disk cannot give would end the program. Returns its length, too.
fn create(path: &Path, depth: usize, room: usize) -> Option<(c_int, usize)> {
    let bytes = stacks_bytes(room.min(mapping::share_of_address_space()).min(mapping::file_size_limit()));
    // A longer file than the process may have is a signal that ends it.
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

/// Returns whether the kernel gives memory to pages that nobody touches: it does from 5.14 on, and then takes nothing as that.
fn can_grow() -> bool {
    // SAFETY: no bytes.
    unsafe { memory::advise(core::ptr::null_mut(), 0, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Forgets the stacks and modules of the process that this one was forked from. Its table stays mapped, as the rest of an interrupted hook
/// may write there.
pub(crate) fn leave() {
    DEPTH.store(0, Ordering::Relaxed);
    TABLE.store(core::ptr::null_mut(), Ordering::Relaxed);
    met_modules::leave();
    CANNOT_GROW.store(false, Ordering::Relaxed);
    GROWING.store(false, Ordering::Relaxed);
    GROWN.store(0, Ordering::Relaxed);
    python::leave();
    // A module is recorded when a row of its is looked up.
    unwind::forget();
}

/// Forgets all stacks, and gives their memory back. Other threads may be in the middle of a walk: what they still write reaches nobody.
pub(crate) fn retire() {
    if let Some(table) = table() {
        PLACE.put(table.memory(), table.bytes());
    }
    leave();
}

/// Returns the innermost frame of a stack.
pub(crate) fn innermost(stack: u32) -> Option<usize> {
    let (_, address) = table().filter(|_| stack != 0)?.get(stack)?;
    usize::try_from(address).ok()
}

/// Returns the most frames that a stack has.
#[inline]
pub(crate) fn depth() -> usize {
    DEPTH.load(Ordering::Relaxed)
}

/// Returns the table, if stacks are recorded.
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

/// Returns the number of a stack, innermost frame first.
pub(crate) fn number(table: &StackTable<'_>, frames: &[usize]) -> u32 {
    frames.iter().rev().try_fold(0, |caller, frame| node(table, caller, *frame)).unwrap_or(0)
}

/// Returns the number of the stack that a caller's becomes by a call at an address; `None` if there is no room for it.
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
