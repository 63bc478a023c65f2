//! The interposed functions of the program.
//!
//! Each file contains the functions of one kind, under their original names. They call the real functions and have the
//! calls recorded.

#[cfg(feature = "preload")]
pub(crate) mod alloc;
pub(crate) mod control;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod cxx;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod dlclose;
#[cfg(feature = "preload")]
mod exec;
#[cfg(feature = "preload")]
pub(crate) mod exit;
pub(crate) mod fork;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod jump_to_real;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
mod limits;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) mod lock;
#[cfg(feature = "preload")]
pub(crate) mod longjmp;
mod marks;
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
mod pages;
#[cfg(feature = "preload")]
mod prctl;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod short;
#[cfg(feature = "preload")]
pub(crate) mod threads;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod vfork;
