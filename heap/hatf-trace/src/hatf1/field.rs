//! The six fields that records share (spec 6).

/// A field; the discriminant is its number in metadata records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Field {
    /// Requested bytes.
    Size = 0,
    /// Addresses, old and new.
    Address = 1,
    /// Times.
    Time = 2,
    /// Threads.
    Thread = 3,
    /// Heaps.
    Heap = 4,
    /// Bytes after the numbers.
    Attributes = 5,
}

impl Field {
    /// All fields, by number.
    pub const ALL: [Self; 6] = [Self::Size, Self::Address, Self::Time, Self::Thread, Self::Heap, Self::Attributes];

    /// Returns the name of the field in the specification.
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
