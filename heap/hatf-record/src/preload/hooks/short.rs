//! The entry points of the most frequent functions, which handle most calls in a few instructions if recording is off
//! or a sample is recorded.
//!
//! The conditions of the session select one of three paths with a single comparison. If recording is off, the entry
//! point jumps to the real function. If a sample is recorded, it subtracts the size from the number of bytes until the
//! thread's next selection, and jumps to the real function if bytes are left and the call ends no block near a recorded
//! one. All other calls continue with the complete path, which begins from the start: nothing has been changed yet.
//!
//! A call that the real function makes in turn would count like a call of the program, and its block could be selected
//! as well. Therefore the path for samples is only for allocators that make no such calls
//! ([`Conditions::REENTRANT`](crate::Conditions::REENTRANT)).

use core::ffi::c_void;
use core::mem::offset_of;

use super::alloc;
use crate::conditions::Conditions;
use crate::preload::choose::recorded_blocks::{self, NEAR_BITS, NEARBY};
use crate::preload::elf::real;
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::word::WORD;

// Of signed numbers, only a word of the path for samples is less than the first bit. Of unsigned numbers, only
// a word without a path is less.
const _: () = assert!(Conditions::OFF_PATH.0 == 1 << 30 && Conditions::SAMPLED_PATH.0 == 1 << 31);

/// Instructions that jump to `9` if recording is off, and continue after this code if a sample is recorded.
macro_rules! select {
    () => {
        "mov rax, qword ptr [rip + {word}]
         cmp dword ptr [rax], 0x40000000
         jge 9f
         jb {complete}"
    };
}

/// Instructions that take the complete path if the block at `rdi` may be recorded.
macro_rules! ends {
    () => {
        "mov eax, edi
         shr eax, {near}
         lea rcx, [rip + {nearby}]
         cmp byte ptr [rcx + rax], 0
         jne {recorded}"
    };
}

/// Instructions that count the bytes of a block, whose number is in a register, and take the complete path if the block
/// is selected. An empty block counts as one byte. A thread whose count is 0 has not begun to count.
macro_rules! begins {
    ($size:literal) => {
        concat!(
            "mov rcx, qword ptr [rip + hatf_thread_state@GOTTPOFF]\n",
            "mov rax, qword ptr fs:[rcx + {left}]\n",
            "cmp ",
            $size,
            ", 1\nsbb rax, ",
            $size,
            "\njbe {complete}\n",
            "mov qword ptr fs:[rcx + {left}], rax",
        )
    };
}

/// Defines the entry point of a function, with the code for a call while a sample is recorded.
macro_rules! entry {
    ($name:ident: $($code:expr),+; $($operands:tt)*) => {
        /// # Safety
        /// The requirements are those of the real function with this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                select!(),
                $($code,)+
                "9:",
                "jmp qword ptr [rip + {real}]",
                ".cfi_endproc",
                word = sym WORD,
                complete = sym alloc::$name,
                real = sym real::pointers::$name,
                $($operands)*
            )
        }
    };
}

entry! { malloc: begins!("rdi"); left = const offset_of!(ThreadState, until_sample) }
// If the product overflows, the call fails, whether it is counted or not.
entry! { calloc: "mov r8, rdi", "imul r8, rsi", begins!("r8"); left = const offset_of!(ThreadState, until_sample) }
entry! { memalign: begins!("rsi"); left = const offset_of!(ThreadState, until_sample) }
entry! { aligned_alloc: begins!("rsi"); left = const offset_of!(ThreadState, until_sample) }
entry! { posix_memalign: begins!("rdx"); left = const offset_of!(ThreadState, until_sample) }
entry! { free: ends!(); near = const NEAR_BITS, nearby = sym NEARBY, recorded = sym free_near }
entry! {
    realloc: ends!(), begins!("rsi");
    near = const NEAR_BITS,
    nearby = sym NEARBY,
    recorded = sym alloc::realloc,
    left = const offset_of!(ThreadState, until_sample)
}

/// Frees a block near a recorded block.
unsafe extern "C" fn free_near(block: *mut c_void) {
    // SAFETY: the caller's block. It is from the real allocator, because the path for samples is not taken while a
    // block of the arena exists.
    unsafe {
        match real::free() {
            Some(free) if !recorded_blocks::has(block as usize) => free(block),
            _ => alloc::free(block),
        }
    }
}
