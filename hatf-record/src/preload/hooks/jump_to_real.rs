//! Functions that do something and then jump to the real one: that has the arguments as they were, however many, and returns to who called ours.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::preload::elf::got;
use crate::preload::platform::thread_state::nested;

/// Returns the address of the function of this name behind ours. Not `dlsym`'s answer, as that is one of ours.
pub(crate) fn real(known: &AtomicUsize, name: &CStr) -> usize {
    let mut function = known.load(Ordering::Relaxed);
    if function == 0 {
        function = nested(|| got::look_up(name));
        known.store(function, Ordering::Relaxed);
    }
    if function == 0 { nothing as *const () as usize } else { function }
}

/// What is called where the C library has no such function.
extern "C" fn nothing() -> *mut c_void {
    null_mut()
}

/// Defines a function of the C library: it calls `before` with its first two arguments, and jumps to the real one.
macro_rules! jump_to_real {
    ($($(#[$doc:meta])* $name:ident after $before:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name() {
                extern "C" fn address(first: usize, second: usize) -> usize {
                    static REAL: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
                    let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                    $before(first, second);
                    $crate::preload::hooks::jump_to_real::real(&REAL, name.unwrap_or_default())
                }
                // Six registers have arguments, and `al` how many more are in vectors: those are the caller's to lose.
                core::arch::naked_asm!(
                    "push rax",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "call {address}",
                    "mov r11, rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rax",
                    "jmp r11",
                    address = sym address,
                )
            }
        )*
    };
}

pub(crate) use jump_to_real;
