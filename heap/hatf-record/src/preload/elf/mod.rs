//! The modules of the process, their tables and their functions.
//!
//! `found` is the loader's description of a module, `segments` and `got` read its tables, `real` contains the functions
//! underlying the hooks, and `redirected` makes modules call the hooks if the modules do not find the hooks by name.

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
