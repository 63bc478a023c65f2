//! Determines whether a call was made by one of the modules to which recording is restricted.
//!
//! A call is attributed to a module if the module's code made it, directly or through the C library or a C++ library:
//! what counts is the innermost frame that is outside of these libraries or in a named module. The results are cached
//! per instruction.

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

/// Name prefixes of libraries that allocate on behalf of their callers.
const LIBRARIES: [&[u8]; 7] = [b"libc.so", b"libc-", b"libstdc++.so", b"libc++", b"libgcc_s", b"ld-linux", b"libm.so"];
/// The number of cached instructions.
const INSTRUCTIONS: usize = 1 << 12;
/// The cached instructions, each with two bits for the result.
static KNOWN: [AtomicU64; INSTRUCTIONS] = [const { AtomicU64::new(0) }; INSTRUCTIONS];

/// The owner of an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Wanted,
    Other,
    /// A library that allocates on behalf of its callers.
    Library,
}

pub(super) fn begin() -> Option<()> {
    unwind::begin()?;
    // An earlier recording of this process may have used other names.
    KNOWN.iter().for_each(|known| known.store(0, Ordering::Relaxed));
    Some(())
}

/// Returns whether the program's call comes from a module whose blocks are recorded.
#[inline(never)]
pub(crate) fn is_module(session: &Session) -> bool {
    let mut walk = Caller { session, whose: Whose::Other };
    unwind::walk(Here::new(), &mut walk);
    walk.whose == Whose::Wanted
}

/// A walk to the innermost frame that determines the module.
struct Caller<'s> {
    session: &'s Session,
    whose: Whose,
}

impl Visitor for Caller<'_> {
    /// Notes the module if stacks are recorded, because the next walk of the complete stack will not report it again.
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
    // Unloaded modules may have been at addresses that other modules now occupy.
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
    // Code generated at run time belongs to no module.
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
