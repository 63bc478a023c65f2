//! Recording from inside of a program: the interposed functions of the shared object that is preloaded (feature `preload`), and the allocator
//! of a Rust program (feature `allocator`). What both use is the rest.
//!
//! Each folder answers one question, which its `mod.rs` says. From the lowest to the highest, of which each uses those before it alone:
//! `platform`, `elf`, `spool`, `stacks`, `accesses`, `choose`, `session`, `events`, `hooks`, `attach`, `allocator`.
//!
//! A call of `malloc` comes to `hooks/alloc.rs`. `events/record.rs` takes it from there in three steps: chosen, described, and pushed into the spool.

#![cfg_attr(
    not(feature = "preload"),
    allow(dead_code, reason = "an allocator needs not all of what the interposed functions do")
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
