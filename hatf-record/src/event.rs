//! Events, and how a slot of the ring holds one.

/// The seven words of a slot that carry an event.
pub type Words = [u64; 7];

/// Bytes of text that one [`Kind::Text`] slot carries.
pub const TEXT_BYTES: usize = 40;

/// Bytes of a name or a path that are recorded: of a longer one the first count.
pub const TEXT_MAX: usize = 25 * TEXT_BYTES;

/// Declares the kinds and the numbers that slots hold for them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)+) => {
        /// The kind of an event: which function was called, or what else happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the kind of that number, if there is one.
            #[must_use]
            pub fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// `malloc(size)` returned `address`.
    Malloc = 1,
    /// `free(address)` is about to run.
    Free = 2,
    /// `calloc(extra, size / extra)` returned `address`; `size` is the product.
    Calloc = 3,
    /// `realloc(old, size)` returned `address`. [`Event::old_is_gone`] says what it means for `old`.
    Realloc = 4,
    /// `reallocarray(old, extra, size / extra)` returned `address`.
    Reallocarray = 5,
    /// `memalign(extra, size)` returned `address`.
    Memalign = 6,
    /// `posix_memalign(.., extra, size)` gave `address`.
    PosixMemalign = 7,
    /// `aligned_alloc(extra, size)` returned `address`.
    AlignedAlloc = 8,
    /// `valloc(size)` returned `address`.
    Valloc = 9,
    /// `pvalloc(size)` returned `address`.
    Pvalloc = 10,
    /// `realloc(old, size)` is about to run in a program with several threads. Until the same
    /// thread's [`Kind::Realloc`], another thread may be given the address `old`: it is then known
    /// that `old` was freed before that. In a program with one thread there is no such event.
    ReallocBegin = 11,
    /// A thread began. `extra` is the thread that made it, 0 where that is not known.
    ThreadStart = 12,
    /// A thread ended.
    ThreadEnd = 13,
    /// A program image was loaded: `extra` is the process, `size` the length of its path, which the
    /// following [`Kind::Text`] slots carry.
    Image = 14,
    /// Text that belongs to the slot before.
    Text = 15,
    /// The program passed a mark: `size` is the length of the name, which the following
    /// [`Kind::Text`] slots carry.
    Mark = 16,
    /// A phase of the program begins; its name as for [`Kind::Mark`].
    PhaseBegin = 17,
    /// A phase of the program ends; its name as for [`Kind::Mark`].
    PhaseEnd = 18,
}

/// Flags of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The thread was not seen to start: this is where it first allocated.
    pub const FIRST_SEEN: Self = Self(1);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One event. Fields that a kind does not name are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// The thread, from 1 (the main thread) in the order in which they were made.
    pub thread: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC` since recording began.
    pub time: u64,
    /// Bytes asked for.
    pub size: u64,
    /// The address returned or freed; 0 where the call failed.
    pub address: u64,
    /// The first argument of a realloc.
    pub old: u64,
    /// Alignment, element count, creator or process; see [`Kind`].
    pub extra: u64,
    /// Reserved: 0.
    pub reserved: u64,
}

impl Event {
    /// Makes an event with every other field zero.
    #[must_use]
    pub fn new(kind: Kind, thread: u32, time: u64) -> Self {
        Self { kind, flags: Flags::default(), thread, time, size: 0, address: 0, old: 0, extra: 0, reserved: 0 }
    }

    /// Returns whether a finished realloc ended the life of `old`: it returned another block, or the size was 0 and it returned
    /// none. A realloc that failed leaves `old` as it was.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }

    /// Encodes it as the words of a slot.
    #[inline]
    #[must_use]
    pub fn to_words(&self) -> Words {
        let head = u64::from(self.kind as u8) | u64::from(self.flags.0) << 8 | u64::from(self.thread) << 32;
        [head, self.time, self.size, self.address, self.old, self.extra, self.reserved]
    }

    /// Decodes the words of a slot; `None` if they are no event that this version knows.
    #[must_use]
    pub fn from_words(words: &Words) -> Option<Self> {
        let [head, time, size, address, old, extra, reserved] = *words;
        let [kind, flags, ..] = head.to_le_bytes();
        let thread = u32::try_from(head >> 32).unwrap_or_default();
        let kind = Kind::from_number(kind)?;
        Some(Self { kind, flags: Flags(flags), thread, time, size, address, old, extra, reserved })
    }

    /// Encodes a [`Kind::Text`] slot with at most [`TEXT_BYTES`] bytes of text.
    #[must_use]
    pub fn text(thread: u32, text: &[u8]) -> Words {
        let mut bytes = [0u8; TEXT_BYTES];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        let mut words = Event::new(Kind::Text, thread, 0).to_words();
        for (word, piece) in words[2..].iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*piece);
        }
        words
    }

    /// Returns the bytes that [`Event::text`] put into a slot, zero-filled.
    #[must_use]
    pub fn text_bytes(&self) -> [u8; TEXT_BYTES] {
        let mut bytes = [0u8; TEXT_BYTES];
        let words = [self.size, self.address, self.old, self.extra, self.reserved];
        for (piece, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *piece = word.to_le_bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        let event = Event {
            kind: Kind::Memalign,
            flags: Flags::FIRST_SEEN,
            thread: u32::MAX,
            time: 1,
            size: u64::MAX,
            address: 3,
            old: 4,
            extra: 5,
            reserved: 6,
        };
        assert_eq!(Event::from_words(&event.to_words()), Some(event));
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(*kind as u8), Some(*kind));
        }
        assert_eq!((Kind::from_number(0), Kind::from_number(19)), (None, None));
    }

    #[test]
    fn text_in_a_slot() {
        let text = b"/usr/bin/a-program-of-forty-bytes-exactly";
        let words = Event::text(1, &text[..TEXT_BYTES]);
        let event = Event::from_words(&words).unwrap();
        assert_eq!(&event.text_bytes()[..], &text[..TEXT_BYTES]);
        let short = Event::from_words(&Event::text(1, b"ls")).unwrap();
        assert_eq!(&short.text_bytes()[..3], b"ls\0");
    }
}
