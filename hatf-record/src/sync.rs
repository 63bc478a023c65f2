//! The atomics of lock-free code: those of `core`, and in models of it (`--cfg loom`) ones whose interleavings are explored.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence,
};
#[cfg(all(loom, test))]
pub(crate) use metatf_test::model;
#[cfg(all(loom, test))]
pub(crate) use model::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
