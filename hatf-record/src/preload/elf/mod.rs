//! Where are the modules of the process, their tables and their functions?
//!
//! `found` is what the loader says of one, `segments` and `got` read its tables, `real` has the functions behind the hooks, and `redirected` has modules
//! call the hooks that do not find them by name.

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod found;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod got;
#[cfg(feature = "preload")]
pub(crate) mod real;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod redirected;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) mod segments;
