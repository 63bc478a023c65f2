//! `longjmp` and its variants: a jump out of a signal handler may leave a hook that the handler interrupted.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;

use crate::preload::choose::switch;
use crate::preload::elf::real;
use crate::preload::platform::thread_state;

type Jump = unsafe extern "C" fn(*mut c_void, c_int) -> !;

/// Jumps using the real function with this name, which is looked up if it is not known yet.
///
/// # Safety
/// The requirements are those of the real function with this name.
unsafe fn jump(known: Option<Jump>, name: &CStr, place: *mut c_void, value: c_int) -> ! {
    thread_state::leave_hooks();
    switch::leave();
    // SAFETY: null, which is `None`, or dlsym's result for the name of a function with this signature.
    let function = known.or_else(|| unsafe { transmute::<*mut c_void, Option<Jump>>(real::next(name)) });
    match function {
        // SAFETY: the caller's arguments.
        Some(jump) => unsafe { jump(place, value) },
        // SAFETY: never returns. The C library of a program that jumps has the function.
        None => unsafe { libc::abort() },
    }
}

macro_rules! jumps {
    ($($name:ident)*) => {
        $(
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(place: *mut c_void, value: c_int) -> ! {
                let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                let known = if real::known() { real::$name() } else { None };
                // SAFETY: the caller's arguments.
                unsafe { jump(known, name.unwrap_or_default(), place, value) }
            }
        )*
    };
}

jumps! { longjmp _longjmp siglongjmp __longjmp_chk }
