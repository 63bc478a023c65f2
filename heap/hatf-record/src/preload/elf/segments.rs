//! The segments of a module, from its program table.
//!
//! The kernel maps a program segment by segment, and a program linked for 2 MiB pages has gaps between its segments.
//! For such a program, the loader returns only the segment that contains the queried address, which does not contain
//! the unwind tables. A module mapped by the loader itself is contiguous.

use core::ffi::c_ulong;
use core::ops::Range;

use super::found::Found;

/// Bytes per page.
const PAGE: usize = 4096;

/// Returns the program table of a module, or `None` if it is unknown.
pub(crate) fn of(found: &Found) -> Option<&'static [libc::Elf64_Phdr]> {
    if is_program(found) { of_program() } else { of_header(found.start..found.end) }
}

/// Extends the loader's result to all segments of the program. For other modules, the result already covers all
/// segments.
pub(crate) fn whole(found: Found) -> Found {
    let Some(segments) = is_program(&found).then(of_program).flatten() else { return found };
    let ranges = || loaded(&found, segments);
    // If the loader was run as a program, the table belongs to a different program.
    if !ranges().any(|range| range.start & !(PAGE - 1) == found.start & !(PAGE - 1)) {
        return found;
    }
    ranges().fold(found, |all, range| Found { start: all.start.min(range.start), end: all.end.max(range.end), ..all })
}

/// Returns the end of the module's segment that contains an address, or `None` if no segment does.
pub(crate) fn end_of(found: &Found, address: usize) -> Option<usize> {
    if !is_program(found) {
        return (found.start..found.end).contains(&address).then_some(found.end);
    }
    loaded(found, of_program()?).find(|range| range.contains(&address)).map(|range| range.end)
}

/// Returns the address range of a segment.
pub(crate) fn place(base: usize, segment: &libc::Elf64_Phdr) -> Range<usize> {
    let number = |number: u64| usize::try_from(number).unwrap_or_default();
    let start = base.wrapping_add(number(segment.p_vaddr));
    start..start.saturating_add(number(segment.p_memsz))
}

/// Returns the address ranges of loaded segments.
fn loaded(found: &Found, segments: &'static [libc::Elf64_Phdr]) -> impl Iterator<Item = Range<usize>> {
    // SAFETY: the loader's description of the module, whose beginning is public.
    let base = unsafe { found.link.as_ref() }.map_or(0, |link| link.bias);
    segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD).map(move |segment| place(base, segment))
}

/// Returns whether a module is the program itself, which is the only one without a name.
fn is_program(found: &Found) -> bool {
    // SAFETY: the loader's description of the module, whose beginning is public; its name is a C string.
    unsafe { found.link.as_ref() }.is_some_and(|link| link.name.is_null() || unsafe { *link.name } == 0)
}

/// Returns the program's table as passed to the process by the kernel.
pub(crate) fn of_program() -> Option<&'static [libc::Elf64_Phdr]> {
    let get = |what: c_ulong| {
        // SAFETY: reads the data with which the process began; no entry is missing.
        usize::try_from(unsafe { libc::getauxval(what) }).unwrap_or_default()
    };
    let (table, count) = (get(libc::AT_PHDR), get(libc::AT_PHNUM));
    let is_one = table != 0 && table.is_multiple_of(8) && get(libc::AT_PHENT) == size_of::<libc::Elf64_Phdr>();
    // SAFETY: as the kernel reports, a table of this many entries, which is a part of the program and stays.
    is_one.then(|| unsafe { core::slice::from_raw_parts(table as *const libc::Elf64_Phdr, count) })
}

/// Returns the table referenced by the ELF header at the start of a module.
fn of_header(range: Range<usize>) -> Option<&'static [libc::Elf64_Phdr]> {
    let inside =
        |bytes: usize, at: usize| at >= range.start && at.checked_add(bytes).is_some_and(|end| end <= range.end);
    let header =
        inside(size_of::<libc::Elf64_Ehdr>(), range.start).then_some(range.start as *const libc::Elf64_Ehdr)?;
    // SAFETY: a module is loaded there, from its header on; the table is inside of it.
    unsafe {
        let header = header.as_ref().filter(|header| header.e_ident.starts_with(b"\x7fELF"))?;
        let table = range.start.checked_add(usize::try_from(header.e_phoff).ok()?)?;
        let count = usize::from(header.e_phnum);
        let is_there = inside(count * size_of::<libc::Elf64_Phdr>(), table) && table.is_multiple_of(8);
        is_there.then(|| core::slice::from_raw_parts(table as *const libc::Elf64_Phdr, count))
    }
}
