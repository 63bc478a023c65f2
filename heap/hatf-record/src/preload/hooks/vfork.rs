//! `vfork`, whose child shares its parent's memory and its thread's state. The two are distinguished without a system
//! call: the parent waits until the child is gone, so in the meantime the thread's state belongs to the child.

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

/// `vfork`, extended to count its nesting depth. Like the C library's version, it makes the system call itself: the
/// child returns from the function before the parent does, so it must leave nothing on the stack. The return address is
/// kept in a register, which the kernel restores in both processes.
///
/// # Safety
/// The requirements are those of the real function with this name.
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
