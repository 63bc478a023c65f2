//! The atomics of lock-free code: those of `core` or, in a model (`--cfg loom`), those whose interleavings loom
//! explores.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(all(loom, test))]
pub(crate) use metatf_test::model;
#[cfg(all(loom, test))]
pub(crate) use model::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
