//! Survives truncation of the buffers file. Accessing a mapped page past the end of a file raises `SIGBUS`, which kills
//! the process. This handler replaces such a page of the buffers with zeros, so that the process continues. A signal
//! with any other cause is passed to the previous action.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Once;

use crate::sys;

/// The previous action.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: the action is written once, before the handler that reads it is installed.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// The function that checks whether an address is in buffers, or 0 if it is not set yet.
static IS_OURS: AtomicUsize = AtomicUsize::new(0);

type IsOurs = fn(usize) -> bool;
type Handler = extern "C" fn(libc::c_int);
type InfoHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs the handler at the first call. The handler may call `is_ours`, so it must neither allocate nor lock.
pub(crate) fn install(is_ours: IsOurs) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        IS_OURS.store(is_ours as usize, Release);
        // SAFETY: the actions are valid when zeroed, and nothing else accesses `BEFORE`. The handler performs only
        // operations that are allowed in a handler.
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
    // SAFETY: the kernel's description of the signal is valid during the handler.
    let (touched, is_fault) = unsafe { ((*info).si_addr() as usize, (*info).si_code > 0) };
    // SAFETY: the value is either 0 or such a function.
    let is_ours = unsafe { core::mem::transmute::<usize, Option<IsOurs>>(IS_OURS.load(Acquire)) };
    // SAFETY: this is a page of buffers whose file no longer contains it.
    let done = is_fault && is_ours.is_some_and(|is_ours| is_ours(touched)) && unsafe { sys::blank_page(touched) };
    if !done {
        leave_it(signal, info, context, is_fault);
    }
    sys::set_errno(errno);
}

/// Performs the previous action.
fn leave_it(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, is_fault: bool) {
    // SAFETY: the action was written before this handler was installed.
    let before = unsafe { (*BEFORE.0.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        // The same access then raises the signal again, which kills the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: both functions may be called in a handler.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: the flag indicates which of the two types the handler has.
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            core::mem::transmute::<usize, InfoHandler>(handler)(signal, info, context);
        },
        // SAFETY: as above.
        handler => unsafe { core::mem::transmute::<usize, Handler>(handler)(signal) },
    }
}
