//! How do the program's calls come to the hooks, where the loader alone does not see to it?
//!
//! `constructor` runs when the object is loaded. `inject` begins to record a process that runs already, `deep_bind` sees libraries loaded that do not find
//! the hooks, and `linked` records an allocator that the program has linked in.

#[cfg(feature = "preload")]
mod constructor;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod deep_bind;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod inject;
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
mod linked;
