//! Data that child processes need in order to be recorded: the first process's spool, and the variables that name it.
//! The environment may have changed by the time a child process is created, so the path and the variables are stored
//! when recording begins.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::preload::platform::path::{self, Identity, Path};
use crate::preload::platform::permanent;

/// Data that a child process needs, because its environment may differ.
#[derive(Clone, Copy)]
struct Origin {
    /// The path of the first process's events.
    events: &'static CStr,
    /// The variables that a program needs to be recorded, each including its name; an empty string if a variable is not
    /// set.
    variables: [&'static CStr; VARIABLES.len()],
    /// The recorder's file, if there is one.
    library: Option<Identity>,
}

/// The variables that a program needs to be recorded.
pub(crate) const VARIABLES: [&CStr; 3] = [c"HATF_SPOOL", c"HATF_LIBRARY", c"LD_PRELOAD"];
static ORIGIN: AtomicPtr<Origin> = AtomicPtr::new(null_mut());

fn origin() -> Option<&'static Origin> {
    // SAFETY: null, or data that `remember` wrote before it stored the address, and that nobody changes or frees.
    unsafe { ORIGIN.load(Ordering::Acquire).as_ref() }
}

/// Returns the path of the first process's events as of the start of this or an earlier process.
pub(crate) fn events() -> Option<Path> {
    if let Some(origin) = origin() {
        return Path::new().with(origin.events.to_bytes());
    }
    let [spool, ..] = VARIABLES;
    let events = Path::new().with(environment(spool)?)?;
    remember(events);
    Some(events)
}

/// Returns an environment variable, or `None` in a program with higher privileges than the user who started it and
/// chose its environment.
pub(crate) fn environment(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a call that reads the data that the kernel passed to the program.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: a C string; the result is null or a C string that stays while nobody changes the environment, which no
    // other thread does before `main`.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// Stores the path of the first process's events for child processes.
pub(crate) fn remember(events: Path) {
    let entry = |name: &CStr| {
        let entry = Path::new().with(name.to_bytes())?.with(b"=")?.with(environment(name)?)?;
        permanent::keep_text(entry.as_c())
    };
    let keep = || {
        let events = permanent::keep_text(events.as_c())?;
        let origin = match origin() {
            // The stored environment stays unchanged.
            Some(before) => Origin { events, ..*before },
            None => {
                let variables = VARIABLES.map(|name| entry(name).unwrap_or_default());
                Origin { events, variables, library: library(&variables).and_then(path::identity) }
            }
        };
        permanent::keep(origin)
    };
    if let Some(origin) = keep() {
        ORIGIN.store(core::ptr::from_ref(origin).cast_mut(), Ordering::Release);
    }
}

/// Returns a variable that a program needs to be recorded, as `NAME=VALUE`, by its index in [`VARIABLES`]. Returns
/// `None` if it is unknown.
pub(crate) fn variable(place: usize) -> Option<&'static CStr> {
    origin()?.variables.get(place).copied().filter(|entry| !entry.is_empty())
}

/// Returns the path of the recorder's file from the stored variables.
fn library(variables: &[&'static CStr; VARIABLES.len()]) -> Option<&'static CStr> {
    let [_, library, _] = variables;
    let behind = library.to_bytes().iter().position(|byte| *byte == b'=')? + 1;
    CStr::from_bytes_until_nul(library.to_bytes_with_nul().get(behind..)?).ok()
}

/// Returns the path of the recorder's file if the file is gone or has been replaced, or if nobody is recording any
/// more.
pub(crate) fn gone_library() -> Option<&'static [u8]> {
    let origin = origin()?;
    let path = library(&origin.variables)?;
    let is_gone = || origin.library.is_some() && path::identity(path) != origin.library;
    (super::follow::recorder_is_gone() || is_gone()).then(|| path.to_bytes())
}
