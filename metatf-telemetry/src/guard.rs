//! Buffers whose file somebody cuts: touching memory that is mapped and not there ends a process by `SIGBUS`. In buffers zeros take its
//! place, and the process goes on; what other memory causes is left to the action that was there before.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Once;

use crate::sys;

/// The action that was there before.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: it is written once, before the handler that reads it is there.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// Whether an address is in buffers: a function, once there is one.
static IS_OURS: AtomicUsize = AtomicUsize::new(0);

type IsOurs = fn(usize) -> bool;
type Handler = extern "C" fn(libc::c_int);
type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Puts the handler in place, the first time. `is_ours` may be called in it, and so neither allocates nor locks.
pub(crate) fn install(is_ours: IsOurs) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        IS_OURS.store(is_ours as usize, Release);
        // SAFETY: places for the actions, of which zeros are values; nobody else is at `BEFORE`. The handler does what handlers may.
        unsafe {
            let before = (*BEFORE.0.get()).as_mut_ptr();
            libc::sigaction(libc::SIGBUS, core::ptr::null(), before);
            let mut ours: libc::sigaction = core::mem::zeroed();
            ours.sa_sigaction = on_bus_error as *const () as usize;
            ours.sa_mask = (*before).sa_mask;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | ((*before).sa_flags & libc::SA_RESTART);
            libc::sigaction(libc::SIGBUS, &raw const ours, core::ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let errno = sys::errno();
    // SAFETY: the kernel's description of the signal, valid during the handler.
    let (touched, is_fault) = unsafe { ((*info).si_addr() as usize, (*info).si_code > 0) };
    // SAFETY: it is 0 or such a function.
    let is_ours = unsafe { core::mem::transmute::<usize, Option<IsOurs>>(IS_OURS.load(Acquire)) };
    // SAFETY: a page of buffers, whose file has it no more.
    let done = is_fault && is_ours.is_some_and(|is_ours| is_ours(touched)) && unsafe { sys::blank_page(touched) };
    if !done {
        leave_it(signal, info, context, is_fault);
    }
    sys::set_errno(errno);
}

/// Does what was done before.
fn leave_it(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, is_fault: bool) {
    // SAFETY: it was written before this handler was there.
    let before = unsafe { (*BEFORE.0.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        // What caused it happens again, and ends the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: both may be called in a handler.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: the flag says which of both it is.
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            core::mem::transmute::<usize, InfoHandler>(handler)(signal, info, context);
        },
        // SAFETY: as before.
        handler => unsafe { core::mem::transmute::<usize, Handler>(handler)(signal) },
    }
}
