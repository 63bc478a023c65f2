//! Finds buffers in a core dump. Buffers start at a page boundary within a segment. The kernel aligns segments to pages
//! of the file, but gdb and gcore do not.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::error::Error;
use crate::layout::MAGIC;

/// The minimum page size in bytes. Buffers start at a page boundary.
const PAGE: u64 = 4096;
/// Number of bytes to read at a time, a multiple of the page size.
const PIECE: usize = 1 << 20;
/// The type of a segment with memory (`PT_LOAD`).
const LOAD: u64 = 1;
/// The segment count that means "too many for this field" (`PN_XNUM`).
const MANY: u64 = 0xffff;

/// Finds the offset of buffers in a core dump from this machine.
pub(crate) fn find(file: &File) -> Result<u64, Error> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    // Scan at most as many bytes as the file contains. In a forged file, every segment may span the entire file, but
    // the segments of a real core dump do not overlap.
    let mut left = length;
    for (from, bytes) in segments(file) {
        let bytes = bytes.min(length.saturating_sub(from)).min(left);
        left -= bytes;
        if let Some(found) = scan(file, from, bytes) {
            return Ok(found);
        }
    }
    Err(Error::Trace(
        "the core dump contains no telemetry buffers: set METATF_TELEMETRY_MEMORY=core to include them".to_owned(),
    ))
}

/// Finds the page at which buffers start.
fn scan(file: &File, from: u64, bytes: u64) -> Option<u64> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < bytes {
        let wanted = usize::try_from(bytes - at).unwrap_or(PIECE).min(PIECE);
        let read = file.read_at(piece.get_mut(..wanted)?, from.checked_add(at)?).ok()?;
        let mut pages = piece.get(..read)?.chunks(4096);
        if let Some(page) = pages.position(|page| page.starts_with(&MAGIC.to_ne_bytes())) {
            return Some(from + at + PAGE * page as u64);
        }
        // A partial page is read again. A partial page at the end cannot be buffers.
        let whole = read as u64 / PAGE * PAGE;
        if whole == 0 {
            return None;
        }
        at += whole;
    }
    None
}

/// Returns the offsets and sizes of the memory segments in a 64-bit ELF file, or the entire file if it has no such
/// segments.
fn segments(file: &File) -> impl Iterator<Item = (u64, u64)> {
    let mut header = [0; 64];
    let is_read = file.read_exact_at(&mut header, 0).is_ok() && header.get(4) == Some(&2);
    let field = |at: usize, bytes: usize| if is_read { number(&header, at, bytes) } else { 0 };
    let (table, entry) = (field(32, 8), field(54, 2));
    let count = match field(56, 2) {
        MANY => count_in_section(file, field(40, 8)),
        count => count,
    };
    let all = (count == 0 || entry < 56).then_some((0, u64::MAX));
    let segment = move |index: u64| {
        let mut segment = [0; 56];
        file.read_exact_at(&mut segment, table.checked_add(index * entry)?).ok()?;
        Some(segment)
    };
    let entries = (0..if all.is_some() { 0 } else { count }).map_while(segment);
    let loads = entries.filter(|segment| number(segment, 0, 4) == LOAD);
    all.into_iter().chain(loads.map(|segment| (number(&segment, 8, 8), number(&segment, 32, 8))))
}

/// Returns the number of segments from the first section, which contains it if it does not fit in the header.
fn count_in_section(file: &File, at: u64) -> u64 {
    let mut section = [0; 64];
    file.read_exact_at(&mut section, at).map_or(0, |()| number(&section, 44, 4))
}

/// Returns a number in the byte order of this machine, which its own core dumps use.
fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    let mut word = [0; 8];
    let place = if cfg!(target_endian = "little") { 0..count } else { 8 - count..8 };
    if let (Some(to), Some(from)) = (word.get_mut(place), bytes.get(at..at + count)) {
        to.copy_from_slice(from);
    }
    u64::from_ne_bytes(word)
}
