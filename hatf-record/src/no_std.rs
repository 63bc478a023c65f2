//! What a shared object without the standard library has to define itself.

/// The C library is linked by `std` otherwise.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never returns. Nothing here is meant to get this far.
    unsafe { libc::abort() }
}

// The unwind tables of `core` name a personality function, which is called only to unwind through
// its frames: never, where a panic aborts. Hidden, so that no other Rust code in the program gets it.
core::arch::global_asm!(
    ".text",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,%function",
    ".balign 16",
    "rust_eh_personality:",
    ".long 0",
);
