//! Threads and modules, where only their blocks are recorded: by names in the first process's folder.
//!
//! A thread goes by the name that it has when it allocates. What a thread finds out of its own is kept in its state, until it or another is
//! named again.
//!
//! A call is one of a module if code of that module made it, or had the C library or a library of C++ make it: the innermost frame that is in
//! neither, or that is in one which is named, decides. What is found out of an instruction is kept in a table.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::path::Path;
use super::session::Session;
use super::thread_state::ThreadState;
use super::{follow, mapping, thread_name};
use crate::conditions::Conditions;
use crate::names;

/// Bytes of a list that count.
const LIST: usize = 4096;

/// The names, each with a line feed behind it.
struct List {
    bytes: [u8; LIST],
    length: usize,
}

static THREADS: AtomicPtr<List> = AtomicPtr::new(null_mut());
static MODULES: AtomicPtr<List> = AtomicPtr::new(null_mut());

/// Reads the lists that a recording has; `None` where that cannot be, and nothing is recorded.
pub(crate) fn begin(first_events: &Path, conditions: Conditions) -> Option<()> {
    let folder = first_events.folder()?;
    for (condition, name, list) in [
        (Conditions::ONLY_THREADS, names::ONLY_THREADS, &THREADS),
        (Conditions::ONLY_MODULES, names::ONLY_MODULES, &MODULES),
    ] {
        if conditions.has(condition) {
            read(&folder.with(name.as_bytes())?, list)?;
        }
    }
    names_changed();
    if conditions.has(Conditions::ONLY_MODULES) { caller::begin() } else { Some(()) }
}

fn read(path: &Path, place: &AtomicPtr<List>) -> Option<()> {
    // In place of that of an earlier recording, which another thread may be looking at.
    let list = mapping::pages(size_of::<List>())?.cast::<List>();
    // SAFETY: fresh zeros, which are a value, aligned for it, that nobody else has yet.
    let filled = unsafe { &mut *list };
    filled.length = follow::read(path.as_c(), &mut filled.bytes)?.len();
    place.store(list, Ordering::Release);
    Some(())
}

/// Returns whether a name is one of a list, of which a `*` at the end stands for anything. Of names that are compared with those of the kernel only
/// so many bytes count.
fn has(list: &AtomicPtr<List>, name: &[u8], most: usize) -> bool {
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

/// Goes up when threads may have other names. Bit 0 is of the answer beside it.
static NAMED: AtomicU32 = AtomicU32::new(2);

/// Notes that a thread may have another name now.
pub(crate) fn names_changed() {
    NAMED.fetch_add(2, Ordering::AcqRel);
}

/// Returns whether blocks of the calling thread are recorded.
#[inline]
pub(crate) fn is_thread(state: &ThreadState) -> bool {
    let (known, named) = (state.only.get(), NAMED.load(Ordering::Acquire));
    if known & !1 == named { known & 1 != 0 } else { find_out(state, named) }
}

#[cold]
fn find_out(state: &ThreadState, named: u32) -> bool {
    let mut name = [0; thread_name::BYTES];
    let wanted = thread_name::own(&mut name).is_some_and(|name| has(&THREADS, name, thread_name::BYTES - 1));
    state.only.set(named | u32::from(wanted));
    wanted
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) use caller::is_module;

/// Without stacks nobody knows who calls.
#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
pub(crate) fn is_module(_: &Session) -> bool {
    false
}

#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
mod caller {
    pub(super) fn begin() -> Option<()> {
        None
    }
}

/// The module that makes a call.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod caller {
    use core::ffi::CStr;
    use core::ops::ControlFlow;
    use core::sync::atomic::{AtomicU64, Ordering};

    use super::{Conditions, MODULES, Session, has};
    use crate::preload::frame::{Found, Frame, Visitor};
    use crate::preload::unwind::{self, Here};
    use crate::preload::{loaded, own};

    /// Beginnings of the names of libraries that allocate for who calls them.
    const LIBRARIES: [&[u8]; 7] =
        [b"libc.so", b"libc-", b"libstdc++.so", b"libc++", b"libgcc_s", b"ld-linux", b"libm.so"];
    /// Instructions of which it is kept what they belong to.
    const KEPT: usize = 1 << 12;
    /// The instruction, and behind it two bits: the answer.
    static KNOWN: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];

    /// Whose an instruction is.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Whose {
        Wanted,
        Other,
        /// A library's, which allocates for another.
        Library,
    }

    pub(super) fn begin() -> Option<()> {
        unwind::begin()?;
        // An earlier recording of this process may have had other names.
        KNOWN.iter().for_each(|known| known.store(0, Ordering::Relaxed));
        Some(())
    }

    /// Returns whether the program's call is one of a module whose blocks are recorded.
    #[inline(never)]
    pub(crate) fn is_module(session: &Session) -> bool {
        let mut walk = Caller { session, whose: Whose::Other };
        unwind::walk(Here::new(), &mut walk);
        walk.whose == Whose::Wanted
    }

    /// A walk to the innermost frame that decides.
    struct Caller<'s> {
        session: &'s Session,
        whose: Whose,
    }

    impl Visitor for Caller<'_> {
        /// Who walks the whole stack next does not learn of it.
        fn module(&mut self, found: &Found) {
            if self.session.conditions().has(Conditions::STACKS) {
                loaded::note(self.session, found);
            }
        }

        #[inline(always)]
        fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
            self.whose = whose(frame.instruction);
            if self.whose == Whose::Library { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }

    fn whose(instruction: usize) -> Whose {
        // Modules that were unloaded may have been where others are now.
        let key = instruction as u64 ^ unwind::unloaded() << 48;
        let place = (instruction as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - KEPT.trailing_zeros());
        let Some(known) = KNOWN.get(usize::try_from(place).unwrap_or_default()) else { return Whose::Other };
        let word = known.load(Ordering::Relaxed);
        match (word >> 2 == key & u64::MAX >> 2, word & 3) {
            (true, 1) => return Whose::Wanted,
            (true, 2) => return Whose::Other,
            (true, 3) => return Whose::Library,
            _ => {}
        }
        let whose = look_up(instruction);
        let answer = match whose {
            Whose::Wanted => 1,
            Whose::Other => 2,
            Whose::Library => 3,
        };
        known.store(key << 2 | answer, Ordering::Relaxed);
        whose
    }

    #[cold]
    #[inline(never)]
    fn look_up(instruction: usize) -> Whose {
        // Code that was made at run time is nobody's.
        let Some(found) = unwind::find(instruction) else { return Whose::Other };
        // SAFETY: the loader's description of the module, whose name is a C string, empty for the program itself.
        let name = unsafe {
            found.link.as_ref().filter(|link| !link.name.is_null()).map_or(c"", |link| CStr::from_ptr(link.name))
        };
        let path = if name.is_empty() { own::program() } else { name.to_bytes() };
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if has(&MODULES, file, usize::MAX) {
            Whose::Wanted
        } else if LIBRARIES.iter().any(|library| file.starts_with(library)) {
            Whose::Library
        } else {
            Whose::Other
        }
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
