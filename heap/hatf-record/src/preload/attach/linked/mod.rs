//! Recording of a statically linked allocator by patching its function entries.
//!
//! `hatf record` determines these functions and the bytes at their entries for each program that a recorded process
//! executes: see [`crate::linked`]. Each entry is replaced by a jump to nearby code, which pushes the address of the
//! function's data and continues at [`entry`](entry::entry). That code records the call and calls the moved first
//! instructions of the function, which are followed by a jump to the rest of the function.
//!
//! Patching is done before the application code runs, while there is only one thread, and for all functions or none.
//! The file must be the one from which the program was loaded, and each function entry must match the file. If anything
//! differs, nothing is changed.
//!
//! `program` changes the program's code, and `entry` is the code that its functions jump to.

mod entry;
mod program;

use core::ffi::c_void;
use core::ptr::{null, with_exposed_provenance_mut};
use core::sync::atomic::Ordering;

use crate::clock::nanoseconds;
use crate::layout::{Header, KEEPER_GONE};
use crate::linked::{NO_PLANS, PATCH_BYTES, PATCHES_MAX, PLANS_LATE, Patch, SOURCE_BYTES, Source};
use crate::names;
use crate::preload::platform::own_stack::MappedStack;
use crate::preload::platform::{files, memory};
use crate::preload::session::{follow, origin, patched};
use crate::preload::spool::session::Session;
use entry::{Site, note_registers};
use program::{Program, pages_of, protect};

/// The maximum size of the file in bytes.
const FILE_MAX: usize = SOURCE_BYTES + PATCHES_MAX * PATCH_BYTES;
/// The maximum time in nanoseconds to wait for a plan. Searching a large program takes a second.
const LONGEST: u64 = 5_000_000_000;

/// Redirects the calls to a statically linked allocator, if there is one that can be redirected. This runs on a mapped
/// stack because the program's stack may be small.
pub(crate) fn begin(session: &Session) {
    let header = session.spool.header();
    let patched = MappedStack::new().and_then(|stack| stack.run(|| patch(header))).flatten().unwrap_or(0);
    if patched > 0 {
        patched::set(header, u32::try_from(patched).unwrap_or(u32::MAX));
    }
}

/// Returns the number of patched functions.
fn patch(header: &Header) -> Option<usize> {
    let own = own_file()?;
    let file = Pages::new(FILE_MAX)?;
    // SAFETY: fresh pages of that size, which nobody else has.
    let bytes = unsafe { core::slice::from_raw_parts_mut(file.at.cast::<u8>(), FILE_MAX) };
    let (source, patches) = Source::split(read_plan(header, own, bytes)?)?;
    let (patches, rest) = patches.as_chunks::<PATCH_BYTES>();
    if !rest.is_empty() || patches.is_empty() || source != own || threads() != Some(1) {
        return None;
    }
    let program = Program::find()?;
    // Check all patches before changing anything.
    if !patches.iter().all(|bytes| Patch::from_bytes(bytes).is_some_and(|patch| program.has(&patch))) {
        return None;
    }
    note_registers();
    let bytes = patches.len() * size_of::<Site>();
    let sites = program.near(bytes)?;
    let prepare = || {
        for (number, bytes) in patches.iter().enumerate() {
            let at = sites + number * size_of::<Site>();
            let site = program.site(&Patch::from_bytes(bytes)?, at)?;
            // SAFETY: inside of the pages created just now, and aligned for it.
            unsafe { with_exposed_provenance_mut::<Site>(at).write(site) };
        }
        protect(&pages_of(sites..sites + bytes), libc::PROT_READ | libc::PROT_EXEC)
    };
    let changed = prepare().and_then(|()| program.redirect(patches, sites));
    if changed.is_none() {
        // SAFETY: the pages created just now, to which nothing leads.
        unsafe { memory::unmap(sites as *mut c_void, bytes) };
    }
    changed.map(|()| patches.len())
}

/// Reads the plan for the program. If there is no plan yet, asks `hatf` for it and waits.
fn read_plan<'b>(header: &Header, own: Source, bytes: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut path = origin::events()?.folder()?.with(names::LINKED.as_bytes())?;
    for (place, number) in own.numbers().into_iter().enumerate() {
        path = if place == 0 { path } else { path.with(b"-")? }.with_number(number)?;
    }
    // SAFETY: a C string.
    if unsafe { libc::access(path.as_c().as_ptr(), libc::R_OK) } != 0 {
        wait_for_plan(header)?;
    }
    files::read(path.as_c(), bytes)
}

/// Asks `hatf` for a plan and waits until it has been written. Returns `None` if there will be no plan soon.
fn wait_for_plan(header: &Header) -> Option<()> {
    let plans = header.plans.load(Ordering::Relaxed);
    if plans == NO_PLANS {
        return None;
    }
    // A system call filter may kill the program for waiting.
    let headers = || follow::first().into_iter().chain([header]);
    let does_wait = plans != PLANS_LATE && !headers().any(Header::is_silent);
    let number = header.ask_plan();
    let begun = nanoseconds();
    while does_wait && !is_abandoned(header) {
        let given = header.given_plan();
        if given == number {
            return Some(());
        }
        if nanoseconds().wrapping_sub(begun) > LONGEST {
            headers().for_each(|header| header.plans.store(PLANS_LATE, Ordering::Relaxed));
            break;
        }
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        // SAFETY: a futex word that stays mapped, a timeout on the stack, and no other pointers. The word is in memory
        // shared by two processes: not a private futex.
        unsafe {
            let word = header.plan_futex();
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, given, &raw const timeout, null::<u32>(), 0);
        }
    }
    None
}

/// Returns whether `hatf` was killed, or no longer reads this spool.
fn is_abandoned(header: &Header) -> bool {
    header.closed.load(Ordering::Relaxed) != 0
        || header.keeper.load(Ordering::Relaxed) & KEEPER_GONE != 0
        || follow::recorder_is_gone()
}

/// Pages that are unmapped when dropped.
struct Pages {
    at: *mut c_void,
    bytes: usize,
}

impl Pages {
    fn new(bytes: usize) -> Option<Self> {
        memory::pages(bytes).map(|at| Self { at, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages that were created, which nobody uses any more.
        unsafe { memory::unmap(self.at, self.bytes) };
    }
}

/// Returns the metadata of a file.
fn status(path: &core::ffi::CStr) -> Option<libc::stat> {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string, and room for the result, which is complete if the call succeeds.
    unsafe { (libc::stat(path.as_ptr(), found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
}

/// Returns the file from which the program was loaded.
fn own_file() -> Option<Source> {
    let found = status(c"/proc/self/exe")?;
    let number = |number: i64| u64::try_from(number).ok();
    let changed = (number(found.st_mtime)?, number(found.st_mtime_nsec)?);
    Some(Source { device: found.st_dev, inode: found.st_ino, bytes: number(found.st_size)?, changed })
}

/// Returns the number of threads. Each thread is a subdirectory of this directory, and the link count includes two more
/// links.
fn threads() -> Option<u64> {
    status(c"/proc/self/task")?.st_nlink.checked_sub(2)
}
