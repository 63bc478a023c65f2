//! A file that the program cuts off: touching memory that is mapped and not there ends a process by `SIGBUS`. In a mapping that is
//! guarded it is zeros.

use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use hatf_record::CHUNK_BYTES;

/// Mappings that are guarded: address, a multiple of a chunk's length, and length; 0 where there is none. A process has two.
static GUARDED: [(AtomicUsize, AtomicUsize); 256] = [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 256];

/// Guards a mapping; where too many are guarded already, does nothing.
pub(super) fn guard(memory: usize, bytes: usize) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: zero is a value of this structure; a handler that makes a system call and changes nothing else.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
            ours.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGBUS, &raw const ours, null_mut());
        }
    });
    for (address, length) in &GUARDED {
        if address.compare_exchange(0, memory, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            length.store(bytes, Ordering::SeqCst);
            return;
        }
    }
}

/// Ends that a mapping is guarded, which is about to be undone.
pub(super) fn release(memory: usize) {
    for (address, length) in &GUARDED {
        if address.load(Ordering::SeqCst) == memory {
            length.store(0, Ordering::SeqCst);
            address.store(0, Ordering::SeqCst);
        }
    }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of this signal, valid during the handler.
    let touched = unsafe { (*info).si_addr() } as usize;
    let inside = |(address, length): &(AtomicUsize, AtomicUsize)| {
        touched.wrapping_sub(address.load(Ordering::SeqCst)) < length.load(Ordering::SeqCst)
    };
    if touched != 0 && GUARDED.iter().any(inside) {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let chunk = touched / CHUNK_BYTES * CHUNK_BYTES;
        // SAFETY: a chunk's place in a mapping of ours, whose file has it no more: zeroed memory takes its place.
        if unsafe { libc::mmap(chunk as *mut libc::c_void, CHUNK_BYTES, access, flags, -1, 0) } != libc::MAP_FAILED {
            return;
        }
    }
    // SAFETY: the action that ends the process, as the instruction runs again.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
