//! The atomics of lock-free code. They are the atomics of `core` or, in a model (`--cfg loom`), atomics whose
//! interleavings loom explores.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
#[cfg(all(loom, test))]
pub(crate) use metatf_test::model;
#[cfg(all(loom, test))]
pub(crate) use model::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
