//! Destructors that are compiled once.
//!
//! The compiler emits a type's destructor in every crate that drops a value of the type. The destructor of a reader with
//! everything in it is longer than most programs that read a trace.

use crate::reader::RecordReader;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A value whose destructor is not compiled in other crates.
pub(crate) struct Outlined<T: Discard>(ManuallyDrop<T>);

/// A type without type parameters, so that [`discard`](Self::discard) is compiled in this crate.
pub(crate) trait Discard {
    /// Drops the value.
    fn discard(self);
}

impl Discard for RecordReader<'_> {
    #[inline(never)]
    fn discard(self) {}
}

impl<T: Discard> Outlined<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Discard> Deref for Outlined<T> {
    type Target = T;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Discard> DerefMut for Outlined<T> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Discard> Drop for Outlined<T> {
    fn drop(&mut self) {
        // SAFETY: a destructor runs once, and nothing uses the value after it.
        T::discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}
