//! Support for libraries loaded with `RTLD_DEEPBIND`. The loader binds their calls to the C library's own functions and
//! not to ours, so the addresses they call are replaced (`elf/redirected.rs`) before the program receives a function of
//! such a library.
//!
//! `dlopen` and `dlsym` inspect their return addresses to identify the calling module, so our versions jump to the real
//! functions.

use core::ffi::{CStr, c_int};

use super::inject;
use crate::conditions::Conditions;
use crate::preload::elf::redirected;
use crate::preload::hooks::jump_to_real::jump_to_real;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::session;

jump_to_real! {
    /// `dlopen`, extended to remember whether calls from the loaded object must be redirected.
    dlopen known_or_loaded_since after |_, flags| before_dlopen(flags);
    /// `dlsym`, extended to redirect the calls of libraries first, if any are pending.
    dlsym known_or_loaded_since after |_, _| before_dlsym();
}

#[expect(clippy::cast_possible_truncation, reason = "an `int` is the low half of its register")]
fn before_dlopen(flags: usize) {
    if flags as c_int & libc::RTLD_DEEPBIND != 0
        && let Some(session) = session::current()
        && nested(|| redirected::expect(&mut inject::hooks()))
    {
        session.spool.header().set(Conditions::INJECTED);
    }
}

fn before_dlsym() {
    if redirected::is_expecting() && session::current().is_some() {
        nested(redirected::look_now);
    }
}
