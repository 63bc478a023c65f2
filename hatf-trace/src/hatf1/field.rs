//! The six fields that records share (spec 6).

/// A field; the number is that of metadata records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Field {
    /// Bytes asked for.
    Size = 0,
    /// Addresses, old and new.
    Address = 1,
    /// Times.
    Time = 2,
    /// Threads.
    Thread = 3,
    /// Heaps.
    Heap = 4,
    /// Bytes behind the numbers.
    Attributes = 5,
}

impl Field {
    /// All of them, by number.
    pub const ALL: [Self; 6] = [Self::Size, Self::Address, Self::Time, Self::Thread, Self::Heap, Self::Attributes];

    /// Its name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Address => "address",
            Self::Time => "time",
            Self::Thread => "thread",
            Self::Heap => "heap",
            Self::Attributes => "attributes",
        }
    }
}
