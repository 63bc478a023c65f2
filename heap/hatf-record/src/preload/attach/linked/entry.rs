//! The entry code of hooked functions in a statically linked allocator. It records the call and continues with the
//! function.

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::event::Kind;
use crate::linked::{JUMP_BYTES, MOVED_MAX, Role};
use crate::preload::choose::call::{Begun, Block, Call};
use crate::preload::events::record;
use crate::preload::hooks::cxx::pass;
use crate::preload::platform::thread_state::{self, current};
use crate::preload::session::begin::session;

/// A hooked function, and the code placed near it.
#[repr(C)]
pub(super) struct Site {
    /// Code that pushes the value of `this` and jumps to the address in `entry`.
    pub(super) code: [u8; 16],
    /// The address of this site.
    pub(super) this: usize,
    /// The address of `moved`.
    pub(super) original: usize,
    /// The address of [`entry`].
    pub(super) entry: usize,
    /// The address after the moved instructions.
    pub(super) behind: usize,
    /// The first instructions of the function, followed by a jump to the rest of the function.
    pub(super) moved: [u8; MOVED_MAX + JUMP_BYTES],
    pub(super) role: u8,
    pub(super) skipped: u8,
    pub(super) _end: [u8; 1],
}

const _: () = assert!(size_of::<Site>() == 104);
/// Whether the CPU has 32-byte vector registers.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Determines the size of vector registers.
pub(super) fn note_registers() {
    // AVX, enabled by the system for programs.
    const FEATURES: u32 = 1 << 27 | 1 << 28;
    let features = core::arch::x86_64::__cpuid(1).ecx;
    WIDE.store(features & FEATURES == FEATURES, Ordering::Relaxed);
}

/// The data of a call that [`entry`] keeps on the stack.
#[repr(C, align(32))]
struct Frame {
    /// The address of the function's moved first instructions.
    original: usize,
    /// The nesting state before the call.
    before: usize,
    /// The arguments of the role.
    arguments: [usize; 3],
    begun: Begun,
    /// Whether the upper half of any vector register was in use.
    wide: u8,
    result: usize,
    /// rcx, rdx, rsi, rdi, r8, r9, r10 and r11.
    registers: [usize; 8],
    vectors: Vectors,
}

/// Saved vector registers.
#[repr(C, align(32))]
struct Vectors([[u8; 32]; 16]);

/// Begins a call. Returns whether it should be recorded.
///
/// # Safety
/// `frame` must be the frame of [`entry`], which contains the saved registers.
unsafe extern "C" fn enter(site: &Site, frame: *mut Frame) -> usize {
    // SAFETY: by the caller's promise.
    let [rcx, rdx, rsi, rdi, ..] = unsafe {
        (*frame).original = site.original;
        (*frame).registers
    };
    if current().is_nested() || session().is_none() {
        return 0;
    }
    let arguments = if site.skipped == 0 { [rdi, rsi, rdx] } else { [rsi, rdx, rcx] };
    let [first, second, third] = arguments;
    let begins = |size: usize| record::realloc_begins(first as *mut c_void, size);
    let mut begun = Begun::No;
    match Role::ALL.get(usize::from(site.role)) {
        Some(Role::Free) if first != 0 => record::call(Kind::Free, Call { address: first, ..Call::default() }),
        Some(Role::Realloc) => begun = begins(second),
        Some(Role::Reallocarray) => begun = begins(second.saturating_mul(third)),
        _ => {}
    }
    // SAFETY: by the caller's promise.
    unsafe {
        (*frame).arguments = arguments;
        (*frame).begun = begun;
        (*frame).before = thread_state::enter(frame as usize);
    }
    1
}

/// Ends a call and records its result.
///
/// # Safety
/// `frame` must be the frame of [`entry`], filled by [`enter`] and containing the result.
unsafe extern "C" fn leave(site: &Site, frame: *const Frame) {
    // SAFETY: by the caller's promise.
    let (before, arguments, begun, block) =
        unsafe { ((*frame).before, (*frame).arguments, (*frame).begun, (*frame).result) };
    thread_state::leave(before);
    let [first, second, third] = arguments;
    let call = |size: usize, extra: usize| Call { size, address: block, extra, ..Call::default() };
    let resized = |size: usize, extra: usize| Call { old: first, ..call(size, extra) };
    match Role::ALL.get(usize::from(site.role)) {
        Some(Role::Malloc) => record::call(Kind::Malloc, call(first, 0)),
        Some(Role::Zalloc) => record::call(Kind::Calloc, call(first, 1)),
        Some(Role::Calloc) => record::call(Kind::Calloc, call(first.saturating_mul(second), first)),
        Some(Role::Realloc) => record::realloc_ends(current(), Kind::Realloc, resized(second, 0), Block::Other, begun),
        Some(Role::Reallocarray) => {
            let resized = resized(second.saturating_mul(third), second);
            record::realloc_ends(current(), Kind::Reallocarray, resized, Block::Other, begun);
        }
        Some(Role::AlignedAlloc) => record::call(Kind::AlignedAlloc, call(second, first)),
        Some(Role::Memalign) => record::call(Kind::Memalign, call(second, first)),
        Some(Role::Aligned) => record::call(Kind::Memalign, call(first, second)),
        Some(Role::PosixMemalign) => {
            // The result is an `int`.
            let block = if block.cast_signed() << 32 == 0 && first != 0 {
                // SAFETY: the function has succeeded, so it has written to the caller's place.
                unsafe { (first as *const usize).read() }
            } else {
                0
            };
            record::call(Kind::PosixMemalign, Call { size: third, address: block, extra: second, ..Call::default() });
        }
        Some(Role::Mallocx) if second & 63 != 0 => record::call(Kind::Memalign, call(first, 1 << (second & 63))),
        Some(Role::Mallocx) => record::call(Kind::Malloc, call(first, 0)),
        Some(Role::Valloc) => record::call(Kind::Valloc, call(first, 0)),
        Some(Role::Pvalloc) => record::call(Kind::Pvalloc, call(first, 0)),
        Some(Role::Free) | None => {}
    }
}

/// Repeats an instruction for each saved vector register. `\n` in the instruction is replaced with the register number.
macro_rules! each_vector {
    ($instruction:literal) => {
        concat!(".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n", $instruction, "\n.endr")
    };
}

/// The code that all hooked functions jump to. On top of the stack is the address of the function's site, followed by
/// the return address.
///
/// A caller in the same program may know which registers the function preserves (GCC's `-fipa-ra`), and how the stack
/// is aligned. Therefore this code changes no register except the registers that the function itself changes. For
/// vector registers, this covers the first sixteen, up to 32 bytes each; the upper half is restored only if it is in
/// use, because loading it slows down other instructions.
///
/// An exception that leaves the function ends the nesting, as in `hooks/cxx.rs`.
///
/// # Safety
/// Must be reached only through a jump from the code of a [`Site`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn entry() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {pass}",
        ".cfi_def_cfa_offset 16",
        "push rbp",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset rbp, -24",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, {bytes}",
        "and rsp, -32",
        "mov qword ptr [rsp + {result}], rax",
        "call 2f",
        "mov rdi, qword ptr [rbp + 8]",
        "mov rsi, rsp",
        "call {enter}",
        "test rax, rax",
        "je 7f",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "call qword ptr [rsp + {original}]",
        "mov qword ptr [rsp + {result}], rax",
        "call 8f",
        "mov rdi, qword ptr [rbp + 8]",
        "mov rsi, rsp",
        "call {leave}",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_remember_state",
        ".cfi_def_cfa rsp, 16",
        ".cfi_restore rbp",
        "lea rsp, [rsp + 8]",
        ".cfi_def_cfa_offset 8",
        "ret",
        // If the call is not recorded, continue with the function, with nothing of ours on the stack.
        "7:",
        ".cfi_restore_state",
        ".cfi_remember_state",
        "mov rax, qword ptr [rsp + {original}]",
        "mov qword ptr [rbp + 8], rax",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 16",
        ".cfi_restore rbp",
        "lea rsp, [rsp + 8]",
        ".cfi_def_cfa_offset 8",
        // The jump target is in the 128 bytes below the stack pointer, which signal handlers do not overwrite.
        "jmp qword ptr [rsp - 8]",
        // Save registers in the frame above the return address. Determine first whether the upper halves of vector
        // registers are in use.
        "2:",
        ".cfi_restore_state",
        "mov byte ptr [rsp + 8 + {wide}], 0",
        "cmp byte ptr [rip + {has_wide}], 0",
        "je 3f",
        each_vector!("vmovups ymmword ptr [rsp + 8 + {vectors} + 32 * \\n], ymm\\n"),
        "vmovups xmm0, xmmword ptr [rsp + 8 + {vectors} + 16]",
        ".irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 32 * \\n + 16]",
        ".endr",
        "vptest xmm0, xmm0",
        "setne byte ptr [rsp + 8 + {wide}]",
        "jmp 9f",
        // Save the registers again after the function has returned.
        "8:",
        "cmp byte ptr [rsp + 8 + {wide}], 0",
        "je 3f",
        each_vector!("vmovups ymmword ptr [rsp + 8 + {vectors} + 32 * \\n], ymm\\n"),
        "jmp 9f",
        "3:",
        each_vector!("movups xmmword ptr [rsp + 8 + {vectors} + 32 * \\n], xmm\\n"),
        "9:",
        "mov qword ptr [rsp + 8 + {registers}], rcx",
        "mov qword ptr [rsp + 8 + {registers} + 8], rdx",
        "mov qword ptr [rsp + 8 + {registers} + 16], rsi",
        "mov qword ptr [rsp + 8 + {registers} + 24], rdi",
        "mov qword ptr [rsp + 8 + {registers} + 32], r8",
        "mov qword ptr [rsp + 8 + {registers} + 40], r9",
        "mov qword ptr [rsp + 8 + {registers} + 48], r10",
        "mov qword ptr [rsp + 8 + {registers} + 56], r11",
        "ret",
        // Restore the registers.
        "4:",
        "cmp byte ptr [rsp + 8 + {wide}], 0",
        "je 5f",
        each_vector!("vmovups ymm\\n, ymmword ptr [rsp + 8 + {vectors} + 32 * \\n]"),
        "jmp 6f",
        "5:",
        each_vector!("movups xmm\\n, xmmword ptr [rsp + 8 + {vectors} + 32 * \\n]"),
        "6:",
        "mov rcx, qword ptr [rsp + 8 + {registers}]",
        "mov rdx, qword ptr [rsp + 8 + {registers} + 8]",
        "mov rsi, qword ptr [rsp + 8 + {registers} + 16]",
        "mov rdi, qword ptr [rsp + 8 + {registers} + 24]",
        "mov r8, qword ptr [rsp + 8 + {registers} + 32]",
        "mov r9, qword ptr [rsp + 8 + {registers} + 40]",
        "mov r10, qword ptr [rsp + 8 + {registers} + 48]",
        "mov r11, qword ptr [rsp + 8 + {registers} + 56]",
        "ret",
        ".cfi_endproc",
        pass = sym pass,
        enter = sym enter,
        leave = sym leave,
        has_wide = sym WIDE,
        bytes = const size_of::<Frame>(),
        original = const offset_of!(Frame, original),
        result = const offset_of!(Frame, result),
        registers = const offset_of!(Frame, registers),
        vectors = const offset_of!(Frame, vectors),
        wide = const offset_of!(Frame, wide),
    )
}
