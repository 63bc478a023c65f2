//! Events, and their encoding in the slots of a chunk.
//!
//! A slot consists of two words. The first word contains the kind in its lowest byte, the flags in the next byte, and
//! an address in the bits above. The second word contains the low half of the stamp and, above it, the size. Nearly all
//! events fit into one slot; events with large values or additional numbers continue in [`Kind::More`] slots. A slot of
//! zeros has not been written yet.

/// The two words of a slot.
pub type Slot = [u64; 2];

/// Bytes per slot.
pub const SLOT_BYTES: usize = size_of::<Slot>();

/// The number of string bytes in one [`Kind::More`] slot: all of its bytes except the kind.
pub const TEXT_BYTES: usize = SLOT_BYTES - 1;

/// The maximum length of a recorded name or path in bytes. Longer names and paths are truncated.
pub const TEXT_MAX: usize = 1000;

/// The lowest number of a Python frame. Stack frames from this number up to twice this number are not return addresses:
/// each represents a location in Python code, described by a [`Kind::PythonFrame`]. No program code has such addresses.
pub const PYTHON_FRAMES: u64 = 1 << 47;

/// The maximum number of slots for a string.
pub(crate) const TEXT_SLOTS: usize = TEXT_MAX.div_ceil(TEXT_BYTES);

/// The maximum number of slots of an event without its string.
pub const NUMBERS_MAX: usize = 5;

/// The maximum number of slots of an event.
pub const SLOTS_MAX: usize = NUMBERS_MAX + TEXT_SLOTS;

/// Declares the kinds and the numbers that represent them in slots.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)+) => {
        /// The kind of an event: the called function, or another occurrence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the kind with this number, if there is one.
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
    /// `realloc(old, size)` returned `address`. [`SpoolEvent::old_is_gone`] determines the effect on `old`.
    Realloc = 4,
    /// `reallocarray(old, extra, size / extra)` returned `address`.
    Reallocarray = 5,
    /// `memalign(extra, size)` returned `address`.
    Memalign = 6,
    /// `posix_memalign(.., extra, size)` stored `address`.
    PosixMemalign = 7,
    /// `aligned_alloc(extra, size)` returned `address`.
    AlignedAlloc = 8,
    /// `valloc(size)` returned `address`.
    Valloc = 9,
    /// `pvalloc(size)` returned `address`.
    Pvalloc = 10,
    /// `realloc(old, size)` is about to run in a multi-threaded program. Another thread may receive the address `old`
    /// before the [`Kind::Realloc`] of this thread; `old` was then freed before that allocation. A single-threaded
    /// program does not record such events.
    ReallocBegin = 11,
    /// A thread started. `extra` is the thread that created it, or 0 if unknown; `address` is its thread ID in the
    /// system.
    ThreadStart = 12,
    /// A thread ended.
    ThreadEnd = 13,
    /// A program image was loaded. `extra` is the process ID, and the string is the path of the program.
    Image = 14,
    /// The program passed a mark. The string is the name of the mark.
    Mark = 15,
    /// A phase of the program begins. The string is the name of the phase.
    PhaseBegin = 16,
    /// A phase of the program ends. The string is the name of the phase.
    PhaseEnd = 17,
    /// `size` events of this thread are missing here.
    Lost = 18,
    /// A slot that belongs to the preceding event.
    More = 19,
    /// An update of the thread's stamp, which consists of `size` (high half) and the low half in the slot.
    Stamp = 20,
    /// A slot that was reserved but not used.
    Nothing = 21,
    /// The thread continues in another chunk.
    End = 22,
    /// Additional data about the following call, written together with it. `address` is the number of the call's stack
    /// in the [`crate::StackTable`]. `size` is 1 plus the number of bytes by which the usable size of the block exceeds
    /// the requested size, or 0 if unknown.
    About = 23,
    /// A module was loaded: `address` is its start, `extra` is its end, and `old` is the offset added to the addresses
    /// in its file. The string consists of its build ID in hexadecimal digits or `-`, a space, and its path.
    ModuleLoad = 24,
    /// The module that started at `address` was unloaded.
    ModuleUnload = 25,
    /// Recording continues. Events since [`Kind::Stop`], or since the start of the process, were not recorded.
    Start = 26,
    /// Recording stops.
    Stop = 27,
    /// The thread received a name, which is the string.
    ThreadName = 28,
    /// `mmap` returned `size` bytes at `address`. The low half of `extra` contains the protection, and the high half
    /// contains the flags.
    Map = 29,
    /// `munmap` of `size` bytes at `address` is about to run.
    Unmap = 30,
    /// `mremap` of `extra` bytes at `old` returned `size` bytes at `address`.
    Remap = 31,
    /// The program break has moved to `address`.
    Break = 32,
    /// `madvise` of `size` bytes at `address` is about to run; `extra` is the advice.
    Advise = 33,
    /// The block at `address` has had `size` loads and `old` stores so far; `extra` is an [`accesses_word`].
    Accesses = 34,
    /// The thread entered the function that contains `address`.
    Enter = 35,
    /// The thread left the function that it entered most recently and has not left yet.
    Leave = 36,
    /// In stacks, the number `address` represents a location in Python code: line `extra` of a function. The string
    /// consists of the path of the source file, a zero byte, and the name of the function.
    PythonFrame = 37,
    /// The thread runs on CPU `size`, which differs from the CPU at its previous event.
    Processor = 38,
    /// `extra` is the approximate time of the last access to the block at `address`: the `CLOCK_MONOTONIC` time in
    /// nanoseconds of the last recorded call before that access, or 0 if the block was not accessed.
    LastAccess = 39,
    /// Whole pages of `size` bytes in the block at `address` have not been touched so far.
    Untouched = 40,
}

impl Kind {
    /// Returns whether `old` and `extra` are stored.
    #[must_use]
    pub fn has_numbers(self) -> bool {
        !matches!(
            self,
            Self::Malloc
                | Self::Free
                | Self::Valloc
                | Self::Pvalloc
                | Self::ThreadEnd
                | Self::Lost
                | Self::About
                | Self::ModuleUnload
                | Self::Enter
                | Self::Leave
                | Self::Processor
                | Self::Start
                | Self::Stop
                | Self::Unmap
                | Self::Break
                | Self::Untouched
        )
    }

    /// Returns whether the event contains a string of `size` bytes.
    #[must_use]
    pub fn has_text(self) -> bool {
        matches!(
            self,
            Self::Image
                | Self::Mark
                | Self::PhaseBegin
                | Self::PhaseEnd
                | Self::ModuleLoad
                | Self::ThreadName
                | Self::PythonFrame
        )
    }

    /// Returns whether this is an event, as opposed to an internal entry of the chunk.
    #[must_use]
    pub fn is_event(self) -> bool {
        !matches!(self, Self::More | Self::Stamp | Self::Nothing | Self::End | Self::About)
    }
}

/// The flags of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// This is the first allocation of a thread whose start was not observed.
    pub const FIRST_SEEN: Self = Self(1);
    /// The size, address or old address does not fit in the first slot, so these values follow in separate slots.
    pub const WIDE: Self = Self(2);
    /// The call allocated a block whose address is not recorded.
    pub const NO_ADDRESS: Self = Self(4);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An event in a spool. Fields unused by its kind are 0.
///
/// # Examples
///
/// ```
/// use hatf_record::{Head, Kind, SpoolEvent};
///
/// let event = SpoolEvent { size: 100, address: 0x7000, old: 0x6000, ..SpoolEvent::new(Kind::Realloc, 1, 5) };
/// let (slots, used) = event.to_slots();
/// // The second slot contains the old address.
/// assert_eq!(used, 2);
///
/// let head = Head::decode(slots[0]).ok_or("unknown kind")?;
/// assert_eq!(head.more(), 1);
/// assert_eq!(head.finish(1, 5, &slots[1..used], &mut Vec::new()), Some(event));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolEvent {
    /// The kind of the event.
    pub kind: Kind,
    /// The flags of the event.
    pub flags: Flags,
    /// The number of the thread, in order of creation, starting with 1 for the main thread.
    pub thread: u32,
    /// The time of the event. Events in a chunk use the recorder's clock; `hatf` converts this to nanoseconds since the
    /// start of recording.
    pub time: u64,
    /// The requested size in bytes.
    pub size: u64,
    /// The returned or freed address, or 0 if the call failed.
    pub address: u64,
    /// The first argument of a realloc.
    pub old: u64,
    /// The alignment, element count, creator or process; see [`Kind`].
    pub extra: u64,
    /// The additional data that precedes the event in the chunk.
    pub about: About,
}

/// Additional data about a call.
///
/// # Examples
///
/// ```
/// use hatf_record::About;
///
/// let (size, usable) = (10, 24);
/// let about = About::new(5, size, usable);
/// assert_eq!((about.stack, about.usable(size)), (5, usable));
/// assert_eq!(About::of(about.slot(77)), about);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The number of the stack in the [`crate::StackTable`], or 0 if unknown.
    pub stack: u32,
    /// 1 plus the number of bytes by which the usable size of the block exceeds the requested size, or 0 if unknown.
    pub spare: u32,
}

impl About {
    /// Returns the data for a block with this requested and `usable` size.
    #[must_use]
    pub fn new(stack: u32, size: u64, usable: u64) -> Self {
        let spare = usable.checked_sub(size).and_then(|spare| u32::try_from(spare.checked_add(1)?).ok());
        Self { stack, spare: spare.unwrap_or_default() }
    }

    /// Returns the usable size of a block with this requested size, or 0 if unknown.
    #[must_use]
    pub fn usable(&self, size: u64) -> u64 {
        self.spare.checked_sub(1).map_or(0, |spare| size.saturating_add(spare.into()))
    }

    /// Decodes the slot of a [`Kind::About`].
    #[inline]
    #[must_use]
    pub fn of([first, second]: Slot) -> Self {
        Self {
            stack: u32::try_from(first >> 16).unwrap_or_default(),
            spare: u32::try_from(second >> 32).unwrap_or_default(),
        }
    }

    /// Encodes the slot that precedes the slots of the call.
    #[inline]
    #[must_use]
    pub fn slot(&self, stamp: u64) -> Slot {
        narrow(Kind::About, Flags::default(), stamp, self.spare.into(), self.stack.into())
    }
}

/// The maximum numbers of bits for an address and a size in the first slot.
const ADDRESS_BITS: u32 = 48;
const SIZE_BITS: u32 = 32;

/// Returns whether a size and an address fit in the first slot.
#[inline]
#[must_use]
pub fn is_narrow(size: u64, address: u64) -> bool {
    size >> SIZE_BITS == 0 && address >> ADDRESS_BITS == 0
}

/// Encodes a first slot. The size and address must [fit](is_narrow).
#[inline]
#[must_use]
pub fn narrow(kind: Kind, flags: Flags, stamp: u64, size: u64, address: u64) -> Slot {
    [kind as u64 | u64::from(flags.0) << 8 | address << 16, stamp & 0xffff_ffff | size << 32]
}

/// Encodes a stamp whose high half has changed.
#[inline]
#[must_use]
pub fn stamp_slot(stamp: u64) -> Slot {
    [Kind::Stamp as u64, stamp]
}

impl SpoolEvent {
    /// Creates an event with all other fields set to zero.
    #[must_use]
    pub fn new(kind: Kind, thread: u32, time: u64) -> Self {
        Self {
            kind,
            flags: Flags::default(),
            thread,
            time,
            size: 0,
            address: 0,
            old: 0,
            extra: 0,
            about: About { stack: 0, spare: 0 },
        }
    }

    /// Returns whether a finished realloc ended the lifetime of `old`, which is the case if it returned a block or its
    /// size was 0. A failed realloc leaves `old` unchanged.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }

    /// Encodes the event without its string. Returns an array of slots and the number of used slots. `time` is the
    /// stamp.
    #[inline]
    #[must_use]
    pub fn to_slots(&self) -> ([Slot; NUMBERS_MAX], usize) {
        let Self { kind, flags, time, size, address, old, extra, .. } = *self;
        let more = |number| [Kind::More as u64, number];
        if is_narrow(size, address) && old >> ADDRESS_BITS == 0 {
            let used = if kind.has_numbers() { 2 } else { 1 };
            let second = [Kind::More as u64 | old << 16, extra];
            ([narrow(kind, flags, time, size, address), second, [0; 2], [0; 2], [0; 2]], used)
        } else {
            let first = narrow(kind, Flags(flags.0 | Flags::WIDE.0), time, 0, 0);
            ([first, more(extra), more(size), more(address), more(old)], NUMBERS_MAX)
        }
    }
}

/// Number of bits in a granule count.
const GRANULES_BITS: u32 = 31;

/// Packs the data of a [`Kind::Accesses`] in addition to loads and stores: the number of accessed 64-byte granules, the
/// number of all granules in the block, and whether uncounted accesses are possible.
#[must_use]
pub fn accesses_word(touched: u64, granules: u64, reached: bool) -> u64 {
    let most = (1 << GRANULES_BITS) - 1;
    touched.min(most) << (GRANULES_BITS + 1) | granules.min(most) << 1 | u64::from(reached)
}

/// Unpacks the arguments of [`accesses_word`], in their order.
#[must_use]
pub fn accesses_of_word(word: u64) -> (u64, u64, bool) {
    (word >> (GRANULES_BITS + 1), word >> 1 & ((1 << GRANULES_BITS) - 1), word & 1 != 0)
}

/// Encodes a string of at most [`TEXT_MAX`] bytes, which follows the other slots of its event. Returns an array of
/// slots and the number of used slots.
#[must_use]
pub fn text_slots(text: &[u8]) -> ([Slot; TEXT_SLOTS], usize) {
    let mut slots = [[0; 2]; _];
    let mut used = 0;
    for (slot, piece) in slots.iter_mut().zip(text.chunks(TEXT_BYTES)) {
        let mut bytes = [0; SLOT_BYTES];
        for (to, from) in bytes.iter_mut().zip([Kind::More as u8].iter().chain(piece)) {
            *to = *from;
        }
        let (first, second) = bytes.split_at(SLOT_BYTES / 2);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        *slot = [word(first), word(second)];
        used += 1;
    }
    (slots, used)
}

/// An event being assembled from its slots.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The kind of the event.
    pub kind: Kind,
    /// The flags of the event.
    pub flags: Flags,
    /// The low half of the stamp.
    pub stamp: u32,
    size: u64,
    address: u64,
}

impl Head {
    /// Decodes the first slot of an event. Returns `None` if this version does not support its kind.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the values are fields of a word")]
    pub fn decode([first, second]: Slot) -> Option<Self> {
        let kind = Kind::from_number(first as u8)?;
        Some(Self {
            kind,
            flags: Flags((first >> 8) as u8),
            stamp: second as u32,
            size: second >> 32,
            address: first >> 16,
        })
    }

    /// Returns the number of slots that follow. If this number is [`SLOTS_MAX`] or more, the slots do not encode an
    /// event.
    #[must_use]
    #[inline]
    pub fn more(&self) -> usize {
        if self.flags.has(Flags::WIDE) {
            return NUMBERS_MAX - 1;
        }
        let text = if self.kind.has_text() { self.size.div_ceil(TEXT_BYTES as u64) } else { 0 };
        usize::from(self.kind.has_numbers()) + usize::try_from(text).unwrap_or(usize::MAX / 2)
    }

    /// Assembles the event from the slots after the first one and appends its string to `text`. Returns `None` if a
    /// slot is missing.
    #[inline]
    pub fn finish(&self, thread: u32, time: u64, more: &[Slot], text: &mut impl Extend<u8>) -> Option<SpoolEvent> {
        let mut event =
            SpoolEvent { size: self.size, address: self.address, ..SpoolEvent::new(self.kind, thread, time) };
        event.flags = self.flags;
        let mut more = more.iter();
        let mut next = || more.next().filter(|slot| slot[0] & 0xff == Kind::More as u64);
        if self.flags.has(Flags::WIDE) {
            event.extra = next()?[1];
            event.size = next()?[1];
            event.address = next()?[1];
            event.old = next()?[1];
            event.flags.0 &= !Flags::WIDE.0;
        } else if self.kind.has_numbers() {
            let slot = next()?;
            (event.old, event.extra) = (slot[0] >> 16, slot[1]);
        }
        if self.kind.has_text() {
            let mut left = usize::try_from(event.size).ok().filter(|length| *length <= TEXT_MAX)?;
            while left > 0 {
                let [first, second] = *next()?;
                let bytes = first.to_le_bytes().into_iter().chain(second.to_le_bytes()).skip(1);
                text.extend(bytes.take(left));
                left = left.saturating_sub(TEXT_BYTES);
            }
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(event: &SpoolEvent, text: &[u8]) {
        let (numbers, used) = event.to_slots();
        let (texts, of_text) = text_slots(text);
        let slots = [&numbers[..used], &texts[..of_text]].concat();
        let (first, more) = slots.split_first().unwrap();
        let head = Head::decode(*first).unwrap();
        assert!(slots.iter().all(|slot| slot[0] != 0));
        assert_eq!(u64::from(head.stamp), event.time & 0xffff_ffff);
        let mut read = Vec::new();
        let decoded = head.finish(event.thread, event.time, more, &mut read).unwrap();
        assert_eq!((decoded, read.as_slice()), (*event, text));
        assert_eq!(head.more(), more.len());
        if let Some((_, less)) = more.split_last() {
            assert_eq!(head.finish(1, 0, less, &mut Vec::new()), None);
        }
    }

    #[test]
    fn slots_and_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(*kind as u8), Some(*kind));
            if !kind.is_event() || kind.has_text() {
                continue;
            }
            let plain = SpoolEvent { size: 100, address: 0x7fff_1234_5670, ..SpoolEvent::new(*kind, 7, 0x1_2345_6789) };
            let numbers = if kind.has_numbers() { (0x55aa_0000_0010, u64::MAX) } else { (0, 0) };
            let plain = SpoolEvent { old: numbers.0, extra: numbers.1, ..plain };
            back(&plain, b"");
            back(&SpoolEvent { flags: Flags::FIRST_SEEN, size: 0, address: 0, ..plain }, b"");
            back(&SpoolEvent { size: u64::MAX, ..plain }, b"");
            back(&SpoolEvent { address: 1 << 63, ..plain }, b"");
            back(&SpoolEvent { old: u64::MAX, ..plain }, b"");
        }
        assert_eq!((Kind::from_number(0), Kind::from_number(41)), (None, None));
    }

    #[test]
    fn what_is_known_of_a_call() {
        for (stack, size, usable) in [(0, 10, 24), (u32::MAX, 10, 10), (5, 1 << 40, (1 << 40) + 4080), (5, 10, 0)] {
            let about = About::new(stack, size, usable);
            assert_eq!((about.stack, about.usable(size)), (stack, usable));
            assert_eq!(About::of(about.slot(77)), about);
        }
        // A usable size below the requested size, or far above it, is ignored.
        for (size, usable) in [(10, 9), (0, 1 << 40), (0, u64::from(u32::MAX))] {
            assert_eq!(About::new(1, size, usable).usable(size), 0);
        }
        assert_eq!(About { stack: 0, spare: u32::MAX }.usable(u64::MAX), u64::MAX);
    }

    #[test]
    fn texts() {
        for kind in Kind::ALL.iter().copied().filter(|kind| kind.has_text()) {
            for length in [0, 1, 14, 15, 16, 30, 31, TEXT_MAX - 1, TEXT_MAX] {
                let text: Vec<u8> = (0..=250).cycle().take(length).collect();
                back(&SpoolEvent { extra: 42, size: length as u64, ..SpoolEvent::new(kind, 1, 9) }, &text);
            }
        }
        // A length greater than the maximum length of a string is rejected.
        let long = SpoolEvent { size: TEXT_MAX as u64 + 1, ..SpoolEvent::new(Kind::Mark, 1, 9) };
        let ([first, second, ..], _) = long.to_slots();
        let more = vec![second; SLOTS_MAX];
        assert_eq!(Head::decode(first).unwrap().finish(1, 9, &more, &mut Vec::new()), None);
    }
}
