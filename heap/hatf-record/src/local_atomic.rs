//! Memory of a single thread, which its signal handlers may change between any two instructions. No other thread may
//! access it.
//!
//! A `Cell` is not sufficient: the compiler may keep its value in a register, reorder its stores, or drop a store that
//! a handler must see. The types in this module are relaxed atomics, which cost the same as plain memory. If the order
//! of two accesses matters, [`in_order`] must separate them.

use crate::sync::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::ffi::c_void;
#[cfg(feature = "hooks")]
use core::sync::atomic::compiler_fence;

/// Memory that stays sound if a signal handler interrupts its thread between any two instructions. `Cell` is not such
/// memory.
pub(crate) trait Interruptible {}

/// Declares a structure whose fields are all [`Interruptible`].
macro_rules! interruptible {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident { $($(#[$field_about:meta])* $field_visible:vis $field:ident: $type:ty,)* }
    ) => {
        $(#[$about])*
        $visible struct $name { $($(#[$field_about])* $field_visible $field: $type,)* }

        impl $crate::local_atomic::Interruptible for $name {}

        #[allow(unused_doc_comments, reason = "the documentation of the fields")]
        const _: () = {
            const fn check<T: $crate::local_atomic::Interruptible>() {}
            $($(#[$field_about])* check::<$type>();)*
        };
    };
}

pub(crate) use interruptible;

impl<T: Interruptible, const N: usize> Interruptible for [T; N] {}

/// Prevents the compiler from moving memory accesses across this call, so a handler sees them in source order.
#[cfg(feature = "hooks")]
#[inline(always)]
pub(crate) fn in_order() {
    compiler_fence(Ordering::SeqCst);
}

/// A type that fits into one atomic word.
pub(crate) trait Word: Copy {
    type Atomic;
    fn load(word: &Self::Atomic) -> Self;
    fn store(word: &Self::Atomic, value: Self);
    fn atomic(value: Self) -> Self::Atomic;
}

macro_rules! words {
    ($($type:ty = $atomic:ty;)*) => {
        $(
            impl Word for $type {
                type Atomic = $atomic;

                #[inline(always)]
                fn load(word: &$atomic) -> Self {
                    word.load(Ordering::Relaxed)
                }

                #[inline(always)]
                fn store(word: &$atomic, value: Self) {
                    word.store(value, Ordering::Relaxed);
                }

                fn atomic(value: Self) -> $atomic {
                    <$atomic>::new(value)
                }
            }
        )*
    };
}

words! {
    bool = AtomicBool;
    i64 = AtomicI64;
    u32 = AtomicU32;
    u64 = AtomicU64;
    usize = AtomicUsize;
    *mut c_void = AtomicPtr<c_void>;
}

/// A one-word value shared by a thread and its signal handlers. All zeros is a valid value of each type.
#[repr(transparent)]
pub(crate) struct Local<T: Word>(T::Atomic);

impl<T: Word> Interruptible for Local<T> {}

impl<T: Word> Local<T> {
    /// Returns the value.
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        T::load(&self.0)
    }

    /// Sets the value.
    #[inline(always)]
    pub(crate) fn set(&self, value: T) {
        T::store(&self.0, value);
    }

    /// Sets the value and returns the previously read one. A value written by a handler in between is overwritten.
    #[inline(always)]
    pub(crate) fn replace(&self, value: T) -> T {
        let before = self.get();
        self.set(value);
        before
    }
}

impl<T: Word + Default> Default for Local<T> {
    fn default() -> Self {
        Self(T::atomic(T::default()))
    }
}

impl<T: Word + core::fmt::Debug> core::fmt::Debug for Local<T> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.get().fmt(formatter)
    }
}

impl Interruptible for LocalAtomic {}

/// A word shared by a thread and its signal handlers. Each change is a single instruction, so a handler runs either
/// before or after it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct LocalAtomic(AtomicUsize);

impl LocalAtomic {
    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the word and returns the previous value.
    #[cfg(all(target_arch = "x86_64", not(all(loom, test))))]
    #[inline]
    pub(crate) fn fetch_add(&self, add: usize) -> usize {
        let before: usize;
        // SAFETY: changes the word and the flags. There is no `lock` prefix, which would cost more than the rest of an
        // event: no other thread accesses the word.
        unsafe {
            core::arch::asm!(
                "xadd qword ptr [{word}], {add}",
                word = in(reg) self.0.as_ptr(),
                add = inout(reg) add => before,
                options(nostack),
            );
        }
        before
    }

    /// Adds to the word and returns the previous value.
    #[cfg(any(not(target_arch = "x86_64"), all(loom, test)))]
    #[inline]
    pub(crate) fn fetch_add(&self, add: usize) -> usize {
        self.0.fetch_add(add, Ordering::Relaxed)
    }

    /// Sets the word.
    #[cfg(feature = "hooks")]
    #[inline]
    pub(crate) fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Changes the word from one value to another. Returns `false` if it does not contain the expected value.
    #[inline]
    pub(crate) fn replace(&self, from: usize, to: usize) -> bool {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
