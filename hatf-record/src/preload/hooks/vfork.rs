//! `vfork`: the child shares its parent's memory, and its thread's state. It is distinguished from its parent without a system call: who made it waits until
//! it is gone, so in between what that thread says is the child's.

use core::ffi::c_int;
use core::mem::offset_of;

use crate::preload::platform::thread_state::{self, ThreadState};

/// Returns whether this is a child of `vfork`.
pub(crate) fn is_child() -> bool {
    thread_state::current().vforks.get() != 0
}

extern "C" fn fail(error: c_int) -> libc::pid_t {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// `vfork` that counts how deep it is. It is the system call itself, as the C library's is: where the child returns from a function before the
/// parent does, it must leave nothing on the stack. The address to return to is kept in a register, which the kernel gives back to both.
///
/// # Safety
/// As the function of this name.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vfork() -> libc::pid_t {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_register rip, rdx",
        "mov rsi, qword ptr fs:[0]",
        "add rsi, qword ptr [rip + hatf_thread_state@GOTTPOFF]",
        "inc dword ptr [rsi + {vforks}]",
        "mov eax, {call}",
        "syscall",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_offset rip, -8",
        "test eax, eax",
        "jz 2f",
        "dec dword ptr [rsi + {vforks}]",
        "test eax, eax",
        "js 3f",
        "2:",
        "ret",
        "3:",
        "mov edi, eax",
        "neg edi",
        "jmp {fail}",
        ".cfi_endproc",
        vforks = const offset_of!(ThreadState, vforks),
        call = const libc::SYS_vfork,
        fail = sym fail,
    )
}
