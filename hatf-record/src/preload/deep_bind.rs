//! Libraries that are loaded with `RTLD_DEEPBIND`: the loader binds their calls to the C library's own functions and not to ours, so the addresses
//! that they call are replaced (`modules.rs`) before the program gets a function of such a library.
//!
//! `dlopen` and `dlsym` go by the address that they return to: it says which module asks. So ours jump to the real ones.

use core::ffi::{CStr, c_int};

use super::jump_on::jump_on;
use super::thread_state::nested;
use super::{inject, modules, session};
use crate::conditions::Conditions;

jump_on! {
    /// `dlopen` that remembers whether calls of what it loads will have to be redirected.
    dlopen after |_, flags| before_dlopen(flags);
    /// `dlsym` that has calls of libraries redirected first, if some are expected.
    dlsym after |_, _| before_dlsym();
}

#[expect(clippy::cast_possible_truncation, reason = "an `int` is the low half of its register")]
fn before_dlopen(flags: usize) {
    if flags as c_int & libc::RTLD_DEEPBIND != 0
        && let Some(session) = session::current()
        && nested(|| modules::expect(&mut inject::hooks()))
    {
        session.spool.header().set(Conditions::INJECTED);
    }
}

fn before_dlsym() {
    if modules::is_expecting() && session::current().is_some() {
        nested(modules::look_now);
    }
}
