//! What to do where there is no room, and why recording ended early, as numbers in the spool.

/// Declares an enum of numbers in shared memory.
macro_rules! numbers {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)+
        }

        impl $name {
            /// Returns the one of that number, if there is one.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// What a thread does with an event where the spool is full.
    WhenFull {
        /// It waits, but not for ever: see [`crate::Header::patience`]. Then it drops events until there is room.
        Wait = 1,
        /// It drops events until there is room.
        Drop = 2,
        /// It ends the recording.
        Stop = 3,
    }
}

numbers! {
    /// What a process that runs already answers when it is to be recorded.
    Answer {
        /// It is recorded, or is not any more.
        Done = 1,
        /// Somebody records it already.
        Recorded = 2,
        /// It could not open the spool, or has no memory for it.
        NoSpool = 3,
        /// None of its modules calls a function that is recorded.
        NoCalls = 4,
        /// It was asked for something else.
        Failed = 5,
    }
}

numbers! {
    /// Why recording ended before the program did.
    Stop {
        /// The spool was full.
        Full = 1,
        /// The program gave up the system calls, or the clock, that recording needs.
        Confined = 2,
    }
}

numbers! {
    /// Why a process that the program made was not recorded.
    NotFollowed {
        /// As many processes were recorded as may be at once.
        Most = 1,
        /// It runs as another user than the program was started as.
        User = 2,
        /// It has another root folder, or another mount namespace.
        Root = 3,
        /// It had no file descriptor left.
        Files = 4,
        /// The program may have a filter for system calls.
        Filter = 5,
        /// There was no room for its spool.
        Room = 6,
    }
}

impl NotFollowed {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Most, Self::User, Self::Root, Self::Files, Self::Filter, Self::Room];

    /// Returns the one that an error of the system means where a spool is opened or made.
    #[cfg(feature = "hooks")]
    pub(crate) fn of_error(error: core::ffi::c_int) -> Self {
        match error {
            libc::EACCES | libc::EPERM => Self::User,
            libc::ENOENT | libc::ENOTDIR | libc::ELOOP => Self::Root,
            libc::EMFILE | libc::ENFILE => Self::Files,
            _ => Self::Room,
        }
    }

    /// Returns its bit in [`crate::Header::not_followed_why`].
    #[must_use]
    pub fn bit(self) -> u32 {
        1 << self as u32
    }
}
