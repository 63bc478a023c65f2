//! Whether the module that makes a call is one of those whose blocks alone are recorded.
//!
//! A call is one of a module if code of that module made it, or had the C library or a library of C++ make it: the innermost frame that is in
//! neither, or that is in one which is named, decides. What is found out of an instruction is kept in a table.

use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

use super::name_list::{MODULES, has};
use crate::conditions::Conditions;
use crate::preload::elf::found::Found;
use crate::preload::platform::process;
use crate::preload::spool::session::Session;
use crate::preload::stacks::frame::{Frame, Visitor};
use crate::preload::stacks::met_modules;
use crate::preload::stacks::unwind::{self, Here};

/// Beginnings of the names of libraries that allocate for who calls them.
const LIBRARIES: [&[u8]; 7] = [b"libc.so", b"libc-", b"libstdc++.so", b"libc++", b"libgcc_s", b"ld-linux", b"libm.so"];
/// Instructions of which it is kept what they belong to.
const INSTRUCTIONS: usize = 1 << 12;
/// The instruction, and behind it two bits: the answer.
static KNOWN: [AtomicU64; INSTRUCTIONS] = [const { AtomicU64::new(0) }; INSTRUCTIONS];

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
            met_modules::note(self.session, found);
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
    let place = (instruction as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - INSTRUCTIONS.trailing_zeros());
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
    let path = if name.is_empty() { process::program() } else { name.to_bytes() };
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if has(&MODULES, file, usize::MAX) {
        Whose::Wanted
    } else if LIBRARIES.iter().any(|library| file.starts_with(library)) {
        Whose::Library
    } else {
        Whose::Other
    }
}
