//! What a hook has to heed beside the plain case: one word in the spool's header, so that `hatf` can change it, too.

use core::sync::atomic::Ordering;

use crate::layout::Header;

/// Bits of that word. None is set in a process of one thread, all of whose calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions(pub u32);

impl Conditions {
    /// There is, or was, a second thread.
    pub const THREADS: Self = Self(1);
    /// Blocks are sampled.
    pub const SAMPLE: Self = Self(2);
    /// Stacks are recorded.
    pub const STACKS: Self = Self(4);
    /// Recording is off.
    pub const OFF: Self = Self(8);
    /// Somebody asked for recording to be on or off ([`Header::off`]): the next hook sees to it.
    pub const CHANGE: Self = Self(16);
    /// It is recorded how many bytes blocks really have.
    pub const USABLE: Self = Self(32);
    /// Calls for pages are recorded.
    pub const PAGES: Self = Self(64);
    /// The process ran already when recording began, and may be recorded again later.
    pub const INJECTED: Self = Self(128);
    /// Loads and stores of blocks are counted.
    pub const ACCESSES: Self = Self(256);
    /// Stacks have the frames of Python code.
    pub const PYTHON: Self = Self(512);
    /// Only blocks of some threads are recorded: see [`crate::names::ONLY_THREADS`].
    pub const ONLY_THREADS: Self = Self(1024);
    /// Only blocks of some modules are recorded: see [`crate::names::ONLY_MODULES`].
    pub const ONLY_MODULES: Self = Self(2048);
    /// Of calls that allocate everything is recorded but the address; others are not recorded.
    pub const SIZES: Self = Self(4096);
    /// It is recorded on which processor a thread runs.
    pub const PROCESSORS: Self = Self(8192);
    /// `hatf` asks the kernel what memory the process has.
    pub const RESIDENT: Self = Self(16384);
    /// Not every call is recorded.
    pub const PART: Self = Self(Self::SAMPLE.0 | Self::ONLY_THREADS.0 | Self::ONLY_MODULES.0 | Self::SIZES.0);

    /// Returns whether a bit of `other` is set.
    #[inline]
    #[must_use]
    pub fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Header {
    /// Returns the conditions of this moment.
    #[inline]
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions(self.conditions.load(Ordering::Relaxed))
    }

    /// Sets bits; returns what was before.
    pub fn set(&self, bits: Conditions) -> Conditions {
        Conditions(self.conditions.fetch_or(bits.0, Ordering::AcqRel))
    }

    /// Clears bits; returns what was before.
    pub fn clear(&self, bits: Conditions) -> Conditions {
        Conditions(self.conditions.fetch_and(!bits.0, Ordering::AcqRel))
    }

    /// Returns whether recording is off, or is to be at the next hook.
    #[must_use]
    pub fn is_off(&self) -> bool {
        let conditions = self.conditions();
        if conditions.has(Conditions::CHANGE) {
            return self.off.load(Ordering::Relaxed) != 0;
        }
        conditions.has(Conditions::OFF)
    }

    /// Asks for recording to be off or on from the next hook on.
    pub fn ask(&self, off: bool) {
        self.off.store(off.into(), Ordering::SeqCst);
        self.set(Conditions::CHANGE);
    }
}
