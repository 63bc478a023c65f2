//! The atomics of lock-free code. They come from `core` or, in a model (`--cfg loom`), from loom, which explores their
//! interleavings.

#[cfg(not(all(loom, test)))]
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(all(loom, test))]
pub(crate) use metatf_test::model;
#[cfg(all(loom, test))]
pub(crate) use model::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
