//! The constructor, which runs when the object is loaded.

use core::ffi::{c_char, c_int};

use crate::preload::elf::real;
use crate::preload::hooks::{control, exit, fork};
use crate::preload::platform::thread_state::nested;
use crate::preload::session::{begin, thread_end};

/// Looks up the functions replaced by the hooks, decides whether this process is recorded unless a hook has already
/// decided, and registers handlers for forks and thread ends.
extern "C" fn constructor(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    // For an object loaded later, `inject` does this.
    if nested(is_preloaded) {
        real::known();
        #[cfg(target_arch = "x86_64")]
        nested(crate::preload::hooks::cxx::look_up);
    }
    let Some(session) = begin::session() else {
        // Without an environment, nothing will ever be recorded.
        begin::give_up();
        return;
    };
    nested(|| {
        fork::register();
        thread_end::create_key();
        exit::register();
        control::take_signals(session);
        #[cfg(target_arch = "x86_64")]
        super::linked::begin(session);
    });
}

#[cfg(target_arch = "x86_64")]
use crate::preload::elf::got::is_preloaded;

/// Always returns `true`, because this library can be injected into a running process only on x86-64.
#[cfg(not(target_arch = "x86_64"))]
fn is_preloaded() -> bool {
    true
}

type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: Constructor = constructor;
