//! The segments of a module, by its program table.
//!
//! The kernel maps a program segment by segment, and what was linked for pages of 2 MiB has gaps between them. Of such a program the loader
//! answers with the one segment that it was asked about, in which the unwind tables are not. A module that the loader itself maps has its
//! addresses in one piece.

use core::ffi::c_ulong;
use core::ops::Range;

use super::found::Found;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Returns the program table of a module; `None` if it has none that is known.
pub(crate) fn of(found: &Found) -> Option<&'static [libc::Elf64_Phdr]> {
    if is_program(found) { of_program() } else { of_header(found.start..found.end) }
}

/// Widens what the loader has found to all of the program's segments; of other modules it is all of them.
pub(crate) fn whole(found: Found) -> Found {
    let Some(segments) = is_program(&found).then(of_program).flatten() else { return found };
    let ranges = || loaded(&found, segments);
    // The table is that of another program where the loader was run as one.
    if !ranges().any(|range| range.start & !(PAGE - 1) == found.start & !(PAGE - 1)) {
        return found;
    }
    ranges().fold(found, |all, range| Found { start: all.start.min(range.start), end: all.end.max(range.end), ..all })
}

/// Returns where the segment of a module ends that an address is in; `None` if it is in none.
pub(crate) fn end_of(found: &Found, address: usize) -> Option<usize> {
    if !is_program(found) {
        return (found.start..found.end).contains(&address).then_some(found.end);
    }
    loaded(found, of_program()?).find(|range| range.contains(&address)).map(|range| range.end)
}

/// Returns where a segment lies.
pub(crate) fn place(base: usize, segment: &libc::Elf64_Phdr) -> Range<usize> {
    let number = |number: u64| usize::try_from(number).unwrap_or_default();
    let start = base.wrapping_add(number(segment.p_vaddr));
    start..start.saturating_add(number(segment.p_memsz))
}

/// Returns where the segments lie that are loaded.
fn loaded(found: &Found, segments: &'static [libc::Elf64_Phdr]) -> impl Iterator<Item = Range<usize>> {
    // SAFETY: the loader's description of the module, whose beginning is public.
    let base = unsafe { found.link.as_ref() }.map_or(0, |link| link.bias);
    segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD).map(move |segment| place(base, segment))
}

/// Returns whether a module is the program itself: it alone has no name.
fn is_program(found: &Found) -> bool {
    // SAFETY: the loader's description of the module, whose beginning is public; its name is a C string.
    unsafe { found.link.as_ref() }.is_some_and(|link| link.name.is_null() || unsafe { *link.name } == 0)
}

/// Returns the program's table, as the kernel gave it to the process.
pub(crate) fn of_program() -> Option<&'static [libc::Elf64_Phdr]> {
    let get = |what: c_ulong| {
        // SAFETY: reads what the process began with; no entry is missing.
        usize::try_from(unsafe { libc::getauxval(what) }).unwrap_or_default()
    };
    let (table, count) = (get(libc::AT_PHDR), get(libc::AT_PHNUM));
    let is_one = table != 0 && table.is_multiple_of(8) && get(libc::AT_PHENT) == size_of::<libc::Elf64_Phdr>();
    // SAFETY: the kernel's answer: a table of so many entries, which is a part of the program and stays.
    is_one.then(|| unsafe { core::slice::from_raw_parts(table as *const libc::Elf64_Phdr, count) })
}

/// Returns the table that the ELF header of a module leads to, which lies at its beginning.
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
