//! Actions for a full spool and reasons for ending the recording, as numbers in the spool.

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
            /// Returns the variant with this number, if there is one.
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
    /// The action of a thread that has an event while the spool is full.
    WhenFull {
        /// Waits for a limited time: see [`crate::Header::patience`]. After that, drops events until there is room.
        Wait = 1,
        /// Drops events until there is room.
        Drop = 2,
        /// Ends the recording.
        Stop = 3,
    }
}

numbers! {
    /// The response of a running process to a request to record it.
    Answer {
        /// The process is now being recorded, or is no longer being recorded.
        Done = 1,
        /// Another recorder is already recording the process.
        Recorded = 2,
        /// The process could not open the spool, or has no memory for the spool.
        NoSpool = 3,
        /// None of the process's modules calls a recorded function.
        NoCalls = 4,
        /// The process does not support the request.
        Failed = 5,
    }
}

numbers! {
    /// The reason why recording ended before the program.
    Stop {
        /// The spool was full.
        Full = 1,
        /// The program gave up system calls or the clock, which are needed for recording.
        Confined = 2,
    }
}

numbers! {
    /// The reason why a child process was not recorded.
    NotFollowed {
        /// The maximum number of processes was already being recorded.
        Most = 1,
        /// The process runs as a different user from the one that started the program.
        User = 2,
        /// The process has a different root directory or mount namespace.
        Root = 3,
        /// The process had no free file descriptor.
        Files = 4,
        /// The program may have a system call filter.
        Filter = 5,
        /// There was no room for the spool.
        Room = 6,
    }
}

impl NotFollowed {
    /// All reasons.
    pub const ALL: [Self; 6] = [Self::Most, Self::User, Self::Root, Self::Files, Self::Filter, Self::Room];

    /// Returns the reason for a system error from opening or creating a spool.
    #[cfg(feature = "hooks")]
    pub(crate) fn of_error(error: core::ffi::c_int) -> Self {
        match error {
            libc::EACCES | libc::EPERM => Self::User,
            libc::ENOENT | libc::ENOTDIR | libc::ELOOP => Self::Root,
            libc::EMFILE | libc::ENFILE => Self::Files,
            _ => Self::Room,
        }
    }

    /// Returns the bit of the reason in [`crate::Header::not_followed_why`].
    #[must_use]
    pub fn bit(self) -> u32 {
        1 << self as u32
    }
}
