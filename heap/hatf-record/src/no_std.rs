//! Definitions that a shared object without the standard library must provide itself.

/// Links the C library, which `std` would otherwise do.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never returns. No code in this crate is expected to panic.
    unsafe { libc::abort() }
}

// The unwind tables of `core` refer to a personality function, which is called only for unwinding through its frames.
// This never happens if panics abort. The symbol is hidden, so no other Rust code in the program uses it.
core::arch::global_asm!(
    ".text",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,%function",
    ".balign 16",
    "rust_eh_personality:",
    ".long 0",
);
