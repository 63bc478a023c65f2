//! Conditions under which a hook leaves the fast path. They are bits of one word in the spool's header, so that `hatf`
//! can change them as well.

use core::sync::atomic::Ordering;

use crate::layout::Header;

/// The bits of the condition word. No bit is set in a single-threaded process whose calls are all recorded.
///
/// # Examples
///
/// ```
/// use hatf_record::{Conditions, Header};
///
/// let header = Header::default();
/// header.set(Conditions::STACKS);
/// header.ask(true);
/// assert!(header.is_off());
/// // The next hook performs the request.
/// assert!(header.conditions().has(Conditions::CHANGE));
/// assert!(header.conditions().has(Conditions::STACKS));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions(pub u32);

impl Conditions {
    /// A second thread exists or existed.
    pub const THREADS: Self = Self(1);
    /// Blocks are sampled.
    pub const SAMPLE: Self = Self(2);
    /// Stacks are recorded.
    pub const STACKS: Self = Self(4);
    /// Recording is off: hooks record nothing.
    pub const OFF: Self = Self(8);
    /// A request ([`Header::ask`]) is pending; the next hook performs it.
    pub const CHANGE: Self = Self(16);
    /// The usable sizes of blocks are recorded.
    pub const USABLE: Self = Self(32);
    /// Page requests are recorded.
    pub const PAGES: Self = Self(64);
    /// The process was already running when recording began, and may be recorded again later.
    pub const INJECTED: Self = Self(128);
    /// Loads and stores of blocks are counted.
    pub const ACCESSES: Self = Self(256);
    /// Stacks include Python frames.
    pub const PYTHON: Self = Self(512);
    /// Only blocks from certain threads are recorded: see [`crate::names::ONLY_THREADS`].
    pub const ONLY_THREADS: Self = Self(1024);
    /// Only blocks from certain modules are recorded: see [`crate::names::ONLY_MODULES`].
    pub const ONLY_MODULES: Self = Self(2048);
    /// Allocating calls are recorded without their addresses; other calls are not recorded.
    pub const SIZES: Self = Self(4096);
    /// The CPU on which each thread runs is recorded.
    pub const PROCESSORS: Self = Self(8192);
    /// `hatf` queries the kernel for the memory of the process.
    pub const RESIDENT: Self = Self(16384);
    /// According to the events, recording is off.
    pub const STOPPED: Self = Self(32768);
    /// A large block exists or existed, so the untouched pages of ending blocks may have to be recorded.
    pub const LARGE: Self = Self(65536);
    /// `hatf` sleeps; the next hook wakes it. Not set if only some of the calls are recorded.
    pub const BELL: Self = Self(1 << 17);
    /// The allocator calls hooked functions itself, so each hook must hide the calls of its real function.
    pub const REENTRANT: Self = Self(1 << 18);
    /// Recording is off and nothing else is to be done: hooks only call the real function. Follows from the other bits.
    pub const OFF_PATH: Self = Self(1 << 30);
    /// Blocks are sampled, and calls that begin or end no sampled block need no other work. Follows from the others.
    pub const SAMPLED_PATH: Self = Self(1 << 31);
    /// Only some of the calls are recorded.
    pub const PART: Self = Self(Self::SAMPLE.0 | Self::ONLY_THREADS.0 | Self::ONLY_MODULES.0 | Self::SIZES.0);

    /// Returns these conditions with the path that follows from them: one of the last two bits, or neither.
    const fn with_path(self) -> Self {
        const NEVER: u32 = Conditions::CHANGE.0 | Conditions::INJECTED.0;
        // Each call may have to record something else, or is counted only if its thread is recorded.
        const NOT_SAMPLED: u32 =
            Conditions::PAGES.0 | Conditions::PROCESSORS.0 | Conditions::ONLY_THREADS.0 | Conditions::REENTRANT.0;
        let bits = self.0 & !(Self::OFF_PATH.0 | Self::SAMPLED_PATH.0);
        let path = if bits & NEVER != 0 {
            0
        } else if bits & Self::OFF.0 != 0 {
            Self::OFF_PATH.0
        } else if bits & Self::SAMPLE.0 != 0 && bits & NOT_SAMPLED == 0 {
            Self::SAMPLED_PATH.0
        } else {
            0
        };
        Self(bits | path)
    }

    /// Returns whether any bit of `other` is set.
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
    /// Returns the current conditions.
    #[inline]
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        Conditions(self.conditions.load(Ordering::Relaxed))
    }

    /// Sets bits and returns the previous conditions.
    pub fn set(&self, bits: Conditions) -> Conditions {
        self.update(|now| now | bits.0)
    }

    /// Clears bits and returns the previous conditions.
    pub fn clear(&self, bits: Conditions) -> Conditions {
        self.update(|now| now & !bits.0)
    }

    /// Changes the bits, and the path that follows from them, in one step. Returns the previous conditions.
    pub(crate) fn update(&self, change: impl Fn(u32) -> u32) -> Conditions {
        let next = |now| Some(Conditions(change(now)).with_path().0);
        match self.conditions.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) {
            Ok(before) | Err(before) => Conditions(before),
        }
    }

    /// Returns whether recording is off, or will be off from the next hook on.
    #[must_use]
    pub fn is_off(&self) -> bool {
        let conditions = self.conditions();
        if conditions.has(Conditions::CHANGE) {
            return self.off.load(Ordering::Relaxed) != 0;
        }
        conditions.has(Conditions::OFF)
    }

    /// Requests that recording be off or on. It is off immediately; the next hook records that, or turns it on.
    pub fn ask(&self, off: bool) {
        self.off.store(off.into(), Ordering::SeqCst);
        self.set(if off { Conditions(Conditions::OFF.0 | Conditions::CHANGE.0) } else { Conditions::CHANGE });
    }
}
