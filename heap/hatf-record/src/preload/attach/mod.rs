//! Ways for the program's calls to reach the hooks if the loader alone does not ensure this.
//!
//! `constructor` runs when the object is loaded. `inject` starts recording a running process, `deep_bind` handles
//! libraries that do not bind to the hooks, and `linked` records a statically linked allocator.

#[cfg(feature = "preload")]
mod constructor;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod deep_bind;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod inject;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod linked;
