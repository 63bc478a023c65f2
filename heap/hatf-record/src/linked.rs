//! Plans for the recorder: the functions of a statically linked allocator. `hatf record` generates a plan from the
//! program's symbol table and writes it to a file next to the first process's spool.
//!
//! The file contains a [`Source`] followed by a [`Patch`] per function, or by nothing if no function can be recorded.
//! All numbers are little-endian. The recorder only changes code that matches the file; everything else stays unchanged.
//!
//! If there is no file for its program yet, a starting process asks `hatf` for a plan by [a number](Header::ask_plan) in
//! its spool, and waits for a limited time. All later processes that execute the same program find the file.
//!
//! # Examples
//!
//! ```
//! use hatf_record::linked::{Fix, FIXES_MAX, MOVED_MAX, Patch, Role, Source, TAKEN_MAX};
//!
//! let source = Source { device: 1, inode: 2, bytes: 4096, changed: (5, 0) };
//! let patch = Patch {
//!     address: 0x1000,
//!     role: Role::Malloc,
//!     skipped: 0,
//!     taken: 5,
//!     moved: 5,
//!     fixes: 0,
//!     original: [0x90; TAKEN_MAX],
//!     code: [0x90; MOVED_MAX],
//!     fix: [Fix::default(); FIXES_MAX],
//! };
//! let file = [&source.to_bytes()[..], &patch.to_bytes()].concat();
//!
//! let (read, rest) = Source::split(&file).ok_or("no source")?;
//! assert_eq!((read, Patch::from_bytes(rest.try_into()?)), (source, Some(patch)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::bell::{Work, wake};
use crate::layout::Header;
use crate::sync::Ordering;

/// The value of [`Header::plans`] if no plans are written. This is the initial value.
pub const NO_PLANS: u32 = 0;
/// The value of [`Header::plans`] if a process waits for the plan for its program.
pub const PLANS: u32 = 1;
/// The value of [`Header::plans`] after a process has waited in vain. Until `hatf` writes the next plan, processes ask,
/// but do not wait.
pub const PLANS_LATE: u32 = 2;

/// The number of bytes replaced at the start of a function: a jump with a four-byte displacement.
pub const JUMP_BYTES: usize = 5;
/// The maximum number of bytes moved from the start of a function: the bytes of the jump and the rest of a 15-byte
/// instruction.
pub const TAKEN_MAX: usize = 24;
/// The maximum number of bytes of the moved instructions.
pub const MOVED_MAX: usize = 48;
/// The maximum number of position-dependent displacements in the moved instructions.
pub const FIXES_MAX: usize = 4;
/// The maximum number of recorded functions.
pub const PATCHES_MAX: usize = 128;

/// The meaning of a function's arguments. [`Role::ALL`] defines the numbers used in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// The arguments are `(size)`.
    Malloc,
    /// The arguments are `(size)`, and the block is zeroed.
    Zalloc,
    /// The arguments are `(count, size)`.
    Calloc,
    /// The arguments are `(block, size)`.
    Realloc,
    /// The arguments are `(block, count, size)`.
    Reallocarray,
    /// The first argument is the block. The remaining arguments describe its size.
    Free,
    /// The arguments are `(alignment, size)`.
    AlignedAlloc,
    /// The arguments are `(alignment, size)`.
    Memalign,
    /// The arguments are `(size, alignment)`.
    Aligned,
    /// The arguments are `(place, alignment, size)`. The address of the block is stored at `place`.
    PosixMemalign,
    /// The arguments are `(size, flags)`. The low six bits of jemalloc's flags are the logarithm of the alignment.
    Mallocx,
    /// The arguments are `(size)`.
    Valloc,
    /// The arguments are `(size)`. The size is rounded up to full pages.
    Pvalloc,
}

impl Role {
    /// All roles in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Malloc,
        Self::Zalloc,
        Self::Calloc,
        Self::Realloc,
        Self::Reallocarray,
        Self::Free,
        Self::AlignedAlloc,
        Self::Memalign,
        Self::Aligned,
        Self::PosixMemalign,
        Self::Mallocx,
        Self::Valloc,
        Self::Pvalloc,
    ];
}

/// The file that contains the functions, identified by its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The device of the file.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The time of the last change, in seconds and nanoseconds.
    pub changed: (u64, u64),
}

/// A four-byte displacement in moved instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fix {
    /// The offset of the displacement.
    pub at: u8,
    /// The offset of the end of the instruction, to which the displacement is relative.
    pub end: u8,
    /// The target address as given in the file, or [`Fix::BEHIND`].
    pub target: u64,
}

impl Fix {
    /// A special target: a word that contains the address after the moved instructions. A call is moved as a jump that
    /// is preceded by pushing this address.
    pub const BEHIND: u64 = u64::MAX;
}

/// A function whose calls should be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The address as given in the file.
    pub address: u64,
    /// The meaning of the arguments.
    pub role: Role,
    /// The number of arguments that precede the arguments of the role.
    pub skipped: u8,
    /// The number of bytes of complete instructions that are moved from the start of the function.
    pub taken: u8,
    /// The number of bytes of the moved instructions.
    pub moved: u8,
    /// The number of displacements to be filled in.
    pub fixes: u8,
    /// The original bytes at the start of the function.
    pub original: [u8; TAKEN_MAX],
    /// The moved instructions.
    pub code: [u8; MOVED_MAX],
    /// The displacements to be filled in.
    pub fix: [Fix; FIXES_MAX],
}

const MAGIC: u64 = u64::from_le_bytes(*b"HATFLINK");
/// Bytes of a [`Source`] in a file.
pub const SOURCE_BYTES: usize = 48;
/// Bytes of a [`Patch`] in a file.
pub const PATCH_BYTES: usize = 16 + TAKEN_MAX + MOVED_MAX + 16 * FIXES_MAX;

impl Source {
    /// Returns the numbers in the order in which they occur in a file and in its name.
    #[must_use]
    pub const fn numbers(&self) -> [u64; 5] {
        [self.device, self.inode, self.bytes, self.changed.0, self.changed.1]
    }

    /// Encodes the source for the start of the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SOURCE_BYTES] {
        let mut bytes = [0; SOURCE_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip([MAGIC].into_iter().chain(self.numbers())) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the source. Returns it and the remaining bytes.
    #[must_use]
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_at_checked(SOURCE_BYTES)?;
        let word = |number: usize| word(head, number * 8);
        let changed = (word(4)?, word(5)?);
        let source = Self { device: word(1)?, inode: word(2)?, bytes: word(3)?, changed };
        (word(0)? == MAGIC).then_some((source, rest))
    }
}

impl Patch {
    /// Encodes the patch.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PATCH_BYTES] {
        let mut bytes = [0; PATCH_BYTES];
        let numbers = [self.role as u8, self.skipped, self.taken, self.moved, self.fixes, 0, 0, 0];
        let mut rest = &mut bytes[..];
        let mut put = |part: &[u8]| {
            let (place, behind) = core::mem::take(&mut rest).split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        };
        put(&self.address.to_le_bytes());
        put(&numbers);
        put(&self.original);
        put(&self.code);
        for Fix { at, end, target } in self.fix {
            put(&[at, end, 0, 0, 0, 0, 0, 0]);
            put(&target.to_le_bytes());
        }
        bytes
    }

    /// Decodes a patch. Returns `None` if the bytes are not a patch.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PATCH_BYTES]) -> Option<Self> {
        let (head, rest) = bytes.split_at(16);
        let (original, rest) = rest.split_first_chunk::<TAKEN_MAX>()?;
        let (code, rest) = rest.split_first_chunk::<MOVED_MAX>()?;
        let &[role, skipped, taken, moved, fixes, ..] = head.get(8..)? else { return None };
        let mut fix = [Fix::default(); FIXES_MAX];
        for (fix, bytes) in fix.iter_mut().zip(rest.chunks_exact(16)) {
            *fix = Fix { at: *bytes.first()?, end: *bytes.get(1)?, target: word(bytes, 8)? };
        }
        let role = *Role::ALL.get(usize::from(role))?;
        let patch =
            Self { address: word(head, 0)?, role, skipped, taken, moved, fixes, original: *original, code: *code, fix };
        patch.is_sound().then_some(patch)
    }

    /// Returns whether the lengths, counts and offsets in the patch are consistent.
    fn is_sound(&self) -> bool {
        let moved = usize::from(self.moved);
        let fixes = self.fix.get(..usize::from(self.fixes));
        (JUMP_BYTES..=TAKEN_MAX).contains(&usize::from(self.taken))
            && moved <= MOVED_MAX
            && self.skipped <= 1
            && fixes.is_some_and(|fixes| {
                fixes.iter().all(|fix| usize::from(fix.at) + 4 <= moved && usize::from(fix.end) <= moved)
            })
    }
}

impl Header {
    /// Asks `hatf` for the plan for the program of this process. Returns the number of the plan. Called by the recorder.
    pub fn ask_plan(&self) -> u32 {
        let number = self.plans_asked.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        self.ring(Work::Events);
        number
    }

    /// Returns the number of the last written plan.
    #[must_use]
    pub fn given_plan(&self) -> u32 {
        self.plans_given.load(Ordering::Acquire)
    }

    /// Returns the number of the plan for which the process has asked, unless that plan has been written.
    #[inline]
    #[must_use]
    pub fn asked_plan(&self) -> Option<u32> {
        let asked = self.plans_asked.load(Ordering::Acquire);
        (asked != self.plans_given.load(Ordering::Relaxed)).then_some(asked)
    }

    /// Tells the process that the plan with this number has been written, if it can be.
    pub fn give_plan(&self, number: u32) {
        self.plans_given.store(number, Ordering::Release);
        wake(&self.plans_given);
    }

    /// Returns the address of the futex word that changes when a plan has been written.
    #[must_use]
    pub const fn plan_futex(&self) -> *mut u32 {
        self.plans_given.as_ptr()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let source = Source { device: 1, inode: 2, bytes: 3, changed: (4, 5) };
        let fix = Fix { at: 3, end: 7, target: 0x1_2345_6789 };
        let patch = Patch {
            address: 0x4000,
            role: Role::Pvalloc,
            skipped: 1,
            taken: 7,
            moved: 11,
            fixes: 1,
            original: [7; TAKEN_MAX],
            code: [9; MOVED_MAX],
            fix: [fix; FIXES_MAX],
        };
        let file = [&source.to_bytes()[..], &patch.to_bytes()].concat();
        let (read, rest) = Source::split(&file).unwrap();
        assert_eq!(read, source);
        assert_eq!(Patch::from_bytes(rest.try_into().unwrap()), Some(patch));
        assert!(Role::ALL.iter().enumerate().all(|(number, role)| *role as usize == number));
    }

    /// No input causes an access outside of the moved bytes.
    #[test]
    fn any_bytes() {
        assert_eq!(Source::split(&[0; SOURCE_BYTES]), None);
        assert_eq!(Source::split(&[]), None);
        let mut random = 1_u64;
        for _ in 0..100_000 {
            let mut bytes = [0; PATCH_BYTES];
            for byte in &mut bytes {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = random.to_le_bytes()[4] & if random >> 63 == 0 { 15 } else { 255 };
            }
            if let Some(patch) = Patch::from_bytes(&bytes) {
                assert!(usize::from(patch.taken) <= TAKEN_MAX && usize::from(patch.moved) <= MOVED_MAX);
                for fix in &patch.fix[..usize::from(patch.fixes)] {
                    assert!(fix.at + 4 <= patch.moved && fix.end <= patch.moved);
                }
            }
        }
    }
}
