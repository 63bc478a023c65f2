//! Events, and how slots of a chunk hold one.
//!
//! A slot is two words. The first has the kind in its lowest byte, flags in the next, and an address above; the second has the
//! low half of the stamp, and the size above. Nearly all events fit: those that do not, and those with more numbers, go on in
//! [`Kind::More`] slots. A slot of zeros is not written yet.

/// The two words of a slot.
pub type Slot = [u64; 2];

/// Bytes of a slot.
pub const SLOT_BYTES: usize = size_of::<Slot>();

/// Bytes of text that one [`Kind::More`] slot carries: all but its kind.
pub const TEXT_BYTES: usize = SLOT_BYTES - 1;

/// Bytes of a name or a path that are recorded: of a longer one the first count.
pub const TEXT_MAX: usize = 1000;

/// Frames of stacks from here on, up to twice this number, are not return addresses: each stands for a place in Python's code, by a [`Kind::PythonFrame`].
/// No program's code lies there.
pub const PYTHON_FRAMES: u64 = 1 << 47;

/// Slots that a text takes at most.
pub(crate) const TEXT_SLOTS: usize = TEXT_MAX.div_ceil(TEXT_BYTES);

/// Slots that an event has at most, its text not counted.
pub const NUMBERS_MAX: usize = 5;

/// Slots that an event has at most.
pub const SLOTS_MAX: usize = NUMBERS_MAX + TEXT_SLOTS;

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
    /// `realloc(old, size)` returned `address`. [`SpoolEvent::old_is_gone`] says what it means for `old`.
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
    /// A thread began. `extra` is the thread that made it, 0 where that is not known; `address` is the system's number of it.
    ThreadStart = 12,
    /// A thread ended.
    ThreadEnd = 13,
    /// A program image was loaded: `extra` is the process, and its path is the text.
    Image = 14,
    /// The program passed a mark, whose name is the text.
    Mark = 15,
    /// A phase of the program begins; its name as for [`Kind::Mark`].
    PhaseBegin = 16,
    /// A phase of the program ends; its name as for [`Kind::Mark`].
    PhaseEnd = 17,
    /// Events of this thread are missing here: `size` is how many.
    Lost = 18,
    /// A slot that belongs to the event before.
    More = 19,
    /// The stamp of the thread has gone on: `size` and the low half are its whole.
    Stamp = 20,
    /// Nothing: the slot was taken, and not used.
    Nothing = 21,
    /// The thread goes on in another chunk.
    End = 22,
    /// More about the call behind this, which is written with it: `address` is the number of its stack in the
    /// [`crate::StackTable`], `size` 1 and the bytes that its block has beyond those that were asked for, or 0 where that is not known.
    About = 23,
    /// A module was loaded: `address` is where it begins, `extra` where it ends, `old` what is added to the addresses of its file. The text is
    /// its build id in hexadecimal digits, or `-`; a space; its path.
    ModuleLoad = 24,
    /// The module was unloaded that began at `address`.
    ModuleUnload = 25,
    /// Recording goes on: what happened since [`Kind::Stop`], or since the process began, was not recorded.
    Start = 26,
    /// Recording stops.
    Stop = 27,
    /// The thread has a name, which is the text.
    ThreadName = 28,
    /// `mmap` returned `size` bytes at `address`. The low half of `extra` is what may be done with them, the high half the flags.
    Map = 29,
    /// `munmap` of `size` bytes at `address` is about to run.
    Unmap = 30,
    /// `mremap` of `extra` bytes at `old` returned `size` bytes at `address`.
    Remap = 31,
    /// The program break has moved to `address`.
    Break = 32,
    /// `madvise` of `size` bytes at `address` is about to run; `extra` is the advice.
    Advise = 33,
    /// So far the block at `address` had `size` loads and `old` stores; `extra` is an [`accesses_word`].
    Accesses = 34,
    /// The thread entered the function that `address` is in.
    Enter = 35,
    /// It left the function that it entered last.
    Leave = 36,
    /// `address` stands in stacks for a place in Python's code: the line `extra` of a function. The text is the path of its file, a zero, and its name.
    PythonFrame = 37,
    /// The thread runs on the processor `size`, where it did not at its event before.
    Processor = 38,
    /// The block at `address` was last accessed when it was `extra`: nanoseconds of `CLOCK_MONOTONIC` at the call that was recorded last before that;
    /// 0: it was not accessed.
    LastAccess = 39,
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
        )
    }

    /// Returns whether it has a text, of `size` bytes.
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

    /// Returns whether it is an event, and not only a mark of the chunk's own.
    #[must_use]
    pub fn is_event(self) -> bool {
        !matches!(self, Self::More | Self::Stamp | Self::Nothing | Self::End | Self::About)
    }
}

/// Flags of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The thread was not seen to start: this is where it first allocated.
    pub const FIRST_SEEN: Self = Self(1);
    /// Size, address and old address do not fit the first slot: they follow, in slots of their own.
    pub const WIDE: Self = Self(2);
    /// The call allocated a block, whose address is not recorded.
    pub const NO_ADDRESS: Self = Self(4);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One event, as a spool holds it. Fields that a kind does not name are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolEvent {
    /// Its kind.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// The thread, from 1 (the main thread) in the order in which they were made.
    pub thread: u32,
    /// When it happened: in a chunk by the recorder's clock, in `hatf` in nanoseconds since recording began.
    pub time: u64,
    /// Bytes asked for.
    pub size: u64,
    /// The address returned or freed; 0 where the call failed.
    pub address: u64,
    /// The first argument of a realloc.
    pub old: u64,
    /// Alignment, element count, creator or process; see [`Kind`].
    pub extra: u64,
    /// What stands before it in its chunk.
    pub about: About,
}

/// What is known of a call beside its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The number of its stack in the [`crate::StackTable`]; 0: not known.
    pub stack: u32,
    /// 1 and the bytes that its block has beyond those that were asked for; 0: not known.
    pub spare: u32,
}

impl About {
    /// Returns what is known of a block of this many bytes that really has `usable`.
    #[must_use]
    pub fn new(stack: u32, size: u64, usable: u64) -> Self {
        let spare = usable.checked_sub(size).and_then(|spare| u32::try_from(spare.checked_add(1)?).ok());
        Self { stack, spare: spare.unwrap_or_default() }
    }

    /// Returns how many bytes a block really has of which this many were asked for; 0: not known.
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

    /// Encodes it, for the slot before those of the call.
    #[inline]
    #[must_use]
    pub fn slot(&self, stamp: u64) -> Slot {
        narrow(Kind::About, Flags::default(), stamp, self.spare.into(), self.stack.into())
    }
}

/// Addresses and sizes that fit the first slot.
const ADDRESS_BITS: u32 = 48;
const SIZE_BITS: u32 = 32;

/// Returns whether a size and an address fit the first slot.
#[inline]
#[must_use]
pub fn is_narrow(size: u64, address: u64) -> bool {
    size >> SIZE_BITS == 0 && address >> ADDRESS_BITS == 0
}

/// Encodes a first slot whose size and address [fit](is_narrow).
#[inline]
#[must_use]
pub fn narrow(kind: Kind, flags: Flags, stamp: u64, size: u64, address: u64) -> Slot {
    [kind as u64 | u64::from(flags.0) << 8 | address << 16, stamp & 0xffff_ffff | size << 32]
}

/// Encodes a stamp of which more than the low half has changed.
#[inline]
#[must_use]
pub fn stamp_slot(stamp: u64) -> Slot {
    [Kind::Stamp as u64, stamp]
}

impl SpoolEvent {
    /// Makes an event with every other field zero.
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

    /// Returns whether a finished realloc ended the life of `old`: it returned another block, or the size was 0 and it returned
    /// none. A realloc that failed leaves `old` as it was.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }

    /// Encodes its numbers: returns slots, and how many of them are used. `time` is the stamp.
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

/// Bits of a number of granules.
const GRANULES_BITS: u32 = 31;

/// Packs what a [`Kind::Accesses`] says beside loads and stores: granules of 64 bytes with an access, all of the block's, and whether there may have been
/// accesses that were not counted.
#[must_use]
pub fn accesses_word(touched: u64, granules: u64, reached: bool) -> u64 {
    let most = (1 << GRANULES_BITS) - 1;
    touched.min(most) << (GRANULES_BITS + 1) | granules.min(most) << 1 | u64::from(reached)
}

/// Returns what [`accesses_word`] packed, in its order.
#[must_use]
pub fn accesses_of_word(word: u64) -> (u64, u64, bool) {
    (word >> (GRANULES_BITS + 1), word >> 1 & ((1 << GRANULES_BITS) - 1), word & 1 != 0)
}

/// Encodes a text of at most [`TEXT_MAX`] bytes, which stands behind the numbers of its event: returns slots, and how many of
/// them are used.
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

/// An event as it is put together from its slots.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its kind.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// The low half of its stamp.
    pub stamp: u32,
    size: u64,
    address: u64,
}

impl Head {
    /// Decodes the first slot of an event; `None` if its kind is none that this version knows.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
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

    /// Returns the number of slots that follow: less than [`SLOTS_MAX`], or the slots are not an event.
    #[must_use]
    #[inline]
    pub fn more(&self) -> usize {
        if self.flags.has(Flags::WIDE) {
            return NUMBERS_MAX - 1;
        }
        let text = if self.kind.has_text() { self.size.div_ceil(TEXT_BYTES as u64) } else { 0 };
        usize::from(self.kind.has_numbers()) + usize::try_from(text).unwrap_or(usize::MAX / 2)
    }

    /// Puts the event together from the slots behind the first, and adds its text to `text`. `None` if one is missing.
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
        assert_eq!((Kind::from_number(0), Kind::from_number(40)), (None, None));
    }

    #[test]
    fn what_is_known_of_a_call() {
        for (stack, size, usable) in [(0, 10, 24), (u32::MAX, 10, 10), (5, 1 << 40, (1 << 40) + 4080), (5, 10, 0)] {
            let about = About::new(stack, size, usable);
            assert_eq!((about.stack, about.usable(size)), (stack, usable));
            assert_eq!(About::of(about.slot(77)), about);
        }
        // Less than was asked for, or far more, is not believed.
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
        // A length that no text has.
        let long = SpoolEvent { size: TEXT_MAX as u64 + 1, ..SpoolEvent::new(Kind::Mark, 1, 9) };
        let ([first, second, ..], _) = long.to_slots();
        let more = vec![second; SLOTS_MAX];
        assert_eq!(Head::decode(first).unwrap().finish(1, 9, &more, &mut Vec::new()), None);
    }
}
