//! Recording from inside of a program: the interposed functions of the preloaded shared object (feature `preload`), the
//! allocator for Rust programs (feature `allocator`), and the code shared by both.
//!
//! Each directory has one purpose, stated in its `mod.rs`. They form layers, listed here from the lowest to the
//! highest, and each layer uses only the layers before it: `platform`, `elf`, `spool`, `stacks`, `accesses`, `choose`,
//! `session`, `events`, `hooks`, `attach`, `allocator`.
//!
//! A call to `malloc` arrives in `hooks/alloc.rs`. From there, `events/record.rs` processes it in three steps: it is
//! chosen, described, and pushed into the spool.

#![cfg_attr(
    not(feature = "preload"),
    allow(dead_code, reason = "an allocator does not need all parts of the interposed functions")
)]

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod accesses;
pub(crate) mod allocator;
#[cfg(feature = "preload")]
mod attach;
mod choose;
mod elf;
mod events;
mod hooks;
mod platform;
mod session;
mod spool;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod stacks;
