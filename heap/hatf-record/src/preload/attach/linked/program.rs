//! The loaded program, and changes to its code.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;

use super::entry::{Site, entry};
use crate::linked::{Fix, JUMP_BYTES, MOVED_MAX, PATCH_BYTES, Patch};
use crate::preload::elf::segments;
use crate::preload::platform::memory;

const PAGE: usize = 4096;

/// The loaded program.
pub(super) struct Program {
    base: usize,
    segments: &'static [libc::Elf64_Phdr],
}

impl Program {
    /// Finds the program, through the `PT_PHDR` entry of its program header table.
    pub(super) fn find() -> Option<Self> {
        let segments = segments::of_program()?;
        let own = segments.iter().find(|segment| segment.p_type == libc::PT_PHDR)?;
        Some(Self { base: segments.as_ptr().addr().wrapping_sub(usize::try_from(own.p_vaddr).ok()?), segments })
    }

    fn address(&self, of_file: u64) -> Option<usize> {
        Some(self.base.wrapping_add(usize::try_from(of_file).ok()?))
    }

    fn loaded(&self) -> impl Iterator<Item = (&libc::Elf64_Phdr, Range<usize>)> {
        let loaded = self.segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
        loaded.map(|segment| (segment, segments::place(self.base, segment)))
    }

    /// Returns whether a function begins with the bytes in its patch, in code that is not writable.
    pub(super) fn has(&self, patch: &Patch) -> bool {
        let Some(original) = patch.original.get(..usize::from(patch.taken)) else { return false };
        let Some(start) = self.address(patch.address) else { return false };
        let end = start.saturating_add(original.len());
        let is_code = |(segment, place): (&libc::Elf64_Phdr, Range<usize>)| {
            segment.p_flags == libc::PF_R | libc::PF_X && place.start <= start && end <= place.end
        };
        // SAFETY: inside of a readable segment of the program, which stays mapped.
        self.loaded().any(is_code)
            && unsafe { core::slice::from_raw_parts(start as *const u8, original.len()) } == original
    }

    /// Maps fresh pages below the program, where its heap does not grow, as close to the program as there is room.
    pub(super) fn near(&self, bytes: usize) -> Option<usize> {
        const STEP: usize = 1 << 16;
        const STEPS: usize = 256;
        /// The address below which nothing may be mapped.
        const LOWEST: usize = 1 << 16;
        let lowest = self.loaded().map(|(_, place)| place.start).min()? & !(PAGE - 1);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let mut at = (lowest & !(STEP - 1)).checked_sub(bytes.checked_next_multiple_of(STEP)?)?;
        for step in 0..STEPS {
            if at < LOWEST {
                return None;
            }
            // SAFETY: fresh pages: if others are there, the call fails or returns a different address.
            let found = unsafe { memory::map(at as *mut c_void, bytes, access, flags, -1, 0) };
            if found as usize == at {
                return Some(at);
            }
            if found != libc::MAP_FAILED {
                // SAFETY: the pages created just now.
                unsafe { memory::unmap(found, bytes) };
            }
            // Increase the distance, up to 1 GiB.
            at = at.checked_sub(STEP * (1 + step / 2))?;
        }
        None
    }

    /// Builds the code for a function, to be placed at this address.
    pub(super) fn site(&self, patch: &Patch, at: usize) -> Option<Site> {
        let moved_at = at + offset_of!(Site, moved);
        let mut site = Site {
            code: [0xcc; 16],
            this: at,
            original: moved_at,
            entry: entry as *const () as usize,
            behind: self.address(patch.address)?.wrapping_add(usize::from(patch.taken)),
            moved: [0xcc; MOVED_MAX + JUMP_BYTES],
            role: patch.role as u8,
            skipped: patch.skipped,
            _end: [0],
        };
        let push = distance(at + 6, at + offset_of!(Site, this))?;
        let jump = distance(at + 12, at + offset_of!(Site, entry))?;
        site.code.get_mut(..2)?.copy_from_slice(&[0xff, 0x35]);
        site.code.get_mut(2..6)?.copy_from_slice(&push);
        site.code.get_mut(6..8)?.copy_from_slice(&[0xff, 0x25]);
        site.code.get_mut(8..12)?.copy_from_slice(&jump);
        let length = usize::from(patch.moved);
        site.moved.get_mut(..length)?.copy_from_slice(patch.code.get(..length)?);
        for fix in patch.fix.get(..usize::from(patch.fixes))? {
            let (place, end) = (usize::from(fix.at), usize::from(fix.end));
            let target = match fix.target {
                Fix::BEHIND => at + offset_of!(Site, behind),
                target => self.address(target)?,
            };
            let to = distance(moved_at + end, target)?;
            site.moved.get_mut(place..place + 4)?.copy_from_slice(&to);
        }
        *site.moved.get_mut(length)? = 0xe9;
        let to = distance(moved_at + length + JUMP_BYTES, site.behind)?;
        site.moved.get_mut(length + 1..length + JUMP_BYTES)?.copy_from_slice(&to);
        Some(site)
    }

    /// Patches the function entries with jumps to the code at these addresses. Returns `None` if the system refuses
    /// this, in which case nothing is changed.
    pub(super) fn redirect(&self, patches: &[[u8; PATCH_BYTES]], sites: usize) -> Option<()> {
        // Determine the target of each jump, and check the distance, before writing the first one.
        let jumps = || {
            patches.iter().enumerate().map(|(number, bytes)| {
                let start = self.address(Patch::from_bytes(bytes)?.address)?;
                let to = distance(start + JUMP_BYTES, sites + number * size_of::<Site>())?;
                Some((start, to))
            })
        };
        if jumps().any(|jump| jump.is_none()) {
            return None;
        }
        let open = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let all = |access: c_int| {
            let mut pages = jumps().flatten().map(|(start, _)| pages_of(start..start + JUMP_BYTES));
            pages.all(|pages| protect(&pages, access).is_some())
        };
        let opened = all(open);
        if opened {
            for (start, [a, b, c, d]) in jumps().flatten() {
                // SAFETY: the start of a function, in pages that are writable now. Nobody executes this code: there is
                // one thread, which runs this.
                unsafe { with_exposed_provenance_mut::<[u8; JUMP_BYTES]>(start).write([0xe9, a, b, c, d]) };
            }
        }
        all(libc::PROT_READ | libc::PROT_EXEC);
        opened.then_some(())
    }
}

/// Returns the distance from the end of an instruction in its encoded form, if it fits.
fn distance(end: usize, to: usize) -> Option<[u8; 4]> {
    let distance = i32::try_from(to.wrapping_sub(end).cast_signed()).ok()?;
    Some(distance.to_le_bytes())
}

pub(super) fn pages_of(bytes: Range<usize>) -> Range<usize> {
    bytes.start & !(PAGE - 1)..bytes.end.next_multiple_of(PAGE)
}

/// Changes the protection of pages. Uses the system call directly because the program may define a function of that
/// name.
pub(super) fn protect(pages: &Range<usize>, access: c_int) -> Option<()> {
    // SAFETY: complete pages of the program's code, which stay readable and executable; or of our own.
    let result = unsafe { libc::syscall(libc::SYS_mprotect, pages.start, pages.end - pages.start, access) };
    (result == 0).then_some(())
}
