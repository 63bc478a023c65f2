//! Functions that perform an action and then jump to the real function, which receives all arguments unchanged and
//! returns directly to the caller.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::preload::elf::{got, real};
use crate::preload::platform::thread_state::nested;

/// Returns the address of a function that the C library has from the start. A forked child may call this function, so
/// it looks up no symbols.
pub(crate) fn known(function: &AtomicPtr<c_void>, _name: &CStr) -> usize {
    real::known();
    or_nothing(function.load(Ordering::Relaxed))
}

/// Returns the address of a function that may be in a library loaded later, or that is needed while the other functions
/// are being looked up. It does not use `dlsym`, which is interposed as well.
pub(crate) fn known_or_loaded_since(function: &AtomicPtr<c_void>, name: &CStr) -> usize {
    if function.load(Ordering::Relaxed).is_null() {
        function.store(nested(|| got::look_up(name)) as *mut c_void, Ordering::Relaxed);
    }
    or_nothing(function.load(Ordering::Relaxed))
}

fn or_nothing(function: *mut c_void) -> usize {
    if function.is_null() { nothing as *const () as usize } else { function as usize }
}

/// A substitute for a function that the C library does not have.
extern "C" fn nothing() -> *mut c_void {
    null_mut()
}

/// Defines a function of the C library that calls `before` with its first two arguments and jumps to the real function,
/// as returned by `find`.
macro_rules! jump_to_real {
    ($($(#[$doc:meta])* $name:ident $find:ident after $before:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name() {
                extern "C" fn address(first: usize, second: usize) -> usize {
                    use $crate::preload::hooks::jump_to_real::$find;
                    let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                    $before(first, second);
                    $find(&$crate::preload::elf::real::pointers::$name, name.unwrap_or_default())
                }
                // Six registers hold arguments, and `al` holds the number of arguments in vector registers. All of
                // these are caller-saved.
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
