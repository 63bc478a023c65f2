//! Libraries that are loaded with `RTLD_DEEPBIND`: the loader binds their calls to the C library's own functions and not to ours, so the addresses
//! that they call are replaced (`elf/redirected.rs`) before the program gets a function of such a library.
//!
//! `dlopen` and `dlsym` go by the address that they return to: it says which module asks. So ours jump to the real ones.

use core::ffi::{CStr, c_int};

use super::inject;
use crate::conditions::Conditions;
use crate::preload::elf::redirected;
use crate::preload::hooks::jump_to_real::jump_to_real;
use crate::preload::platform::thread_state::nested;
use crate::preload::spool::session;

jump_to_real! {
    /// `dlopen` that remembers whether calls of what it loads will have to be redirected.
    dlopen known_or_loaded_since after |_, flags| before_dlopen(flags);
    /// `dlsym` that has calls of libraries redirected first, if some are expected.
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
