//! `mlockall`: locks the program's memory except for the recorder's large mappings, which would otherwise be fully
//! allocated.
//!
//! The kernel call applies to all mappings at once. Therefore each of the program's mappings is locked individually,
//! and the call succeeds whenever it would without the recorder: the limit (`RLIMIT_MEMLOCK`) is compared with the size
//! of all mappings except the large ones. The rest of the recorder, about 2 MB, is locked along with the program.

use core::ffi::{c_int, c_void};
use core::ops::Range;

use crate::preload::elf::real;
use crate::preload::platform::confined::is_confined;
use crate::preload::platform::{files, large, memory};
use crate::preload::spool::session;

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let of_now =
        flags & libc::MCL_CURRENT != 0 && flags & !(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) == 0;
    // Under a system call filter, the additional system calls could kill the program.
    if of_now && session::inherited().is_some() && !is_confined() {
        return lock(flags);
    }
    real_mlockall(flags)
}

fn real_mlockall(flags: c_int) -> c_int {
    match if real::known() { real::mlockall() } else { None } {
        // SAFETY: a number.
        Some(mlockall) => unsafe { mlockall(flags) },
        // SAFETY: as above.
        None => unsafe { c_int::try_from(libc::syscall(libc::SYS_mlockall, flags)).unwrap_or(-1) },
    }
}

/// Locks all current mappings except for the recorder's large ones.
fn lock(flags: c_int) -> c_int {
    let mut mapped = 0;
    let can_list = each_mapping(|range| large::others_in(range, |part| mapped += part.len()));
    if !can_list || mapped > lock_limit() {
        // The kernel decides whether this is permitted before it allocates pages.
        let result = real_mlockall(flags | libc::MCL_ONFAULT);
        // SAFETY: mappings of ours.
        large::each(|range| unsafe { memory::unlock(range.start as *mut c_void, range.len()) });
        if result != 0 {
            return result;
        }
    } else if flags & libc::MCL_FUTURE == 0 {
        // Like `mlockall`, this ends the `MCL_FUTURE` of an earlier call.
        // SAFETY: a call without arguments.
        unsafe { libc::munlockall() };
    }
    if flags & libc::MCL_FUTURE != 0 {
        // This must be first, so that mappings made by other threads from now on are locked.
        let result = real_mlockall(flags & !libc::MCL_CURRENT);
        if result != 0 {
            return result;
        }
    }
    // SAFETY: `errno` of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let on_fault = if flags & libc::MCL_ONFAULT != 0 { libc::MLOCK_ONFAULT } else { 0 };
    each_mapping(|range| large::others_in(range, |part| lock_part(&part, on_fault)));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    0
}

/// Locks a part of a mapping. Like `mlockall`, ignores failures for memory that cannot be accessed or is gone.
fn lock_part(part: &Range<usize>, on_fault: libc::c_uint) {
    // SAFETY: locking changes no byte.
    unsafe { libc::syscall(libc::SYS_mlock2, part.start, part.len(), on_fault) };
}

/// Returns the number of bytes that this process may lock.
fn lock_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    if known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}

/// Calls a function with the range of each mapping in this process. Returns `false` if the kernel does not list them.
fn each_mapping(mut use_range: impl FnMut(Range<usize>)) -> bool {
    let mut line = Line::default();
    files::read_all(c"/proc/self/maps", |bytes| {
        bytes.iter().filter_map(|byte| line.byte(*byte)).for_each(&mut use_range)
    })
}

/// A partially read line of `/proc/self/maps`: two numbers, and the rest, which begins with a space.
#[derive(Default)]
struct Line {
    numbers: [usize; 2],
    /// The index of the number being read, or 2 for the rest.
    at: usize,
}

impl Line {
    /// Processes a byte. Returns both numbers at the end of the second number.
    fn byte(&mut self, byte: u8) -> Option<Range<usize>> {
        let digit = char::from(byte).to_digit(16).and_then(|digit| usize::try_from(digit).ok());
        match (byte, digit, self.numbers.get_mut(self.at)) {
            (b'\n', ..) => *self = Self::default(),
            (_, Some(digit), Some(number)) => *number = *number << 4 | digit,
            (_, None, Some(_)) => {
                self.at += 1;
                let [start, end] = self.numbers;
                return (self.at == 2).then_some(start..end);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mappings() {
        let text = b"7f00-7fff r--p 00000000 fe:01 123 /lib/a b\nffffff00-ffffffff ---p 0 0:0 0\n";
        let mut line = Line::default();
        let ranges: Vec<_> = text.iter().filter_map(|byte| line.byte(*byte)).collect();
        assert_eq!(ranges, [0x7f00..0x7fff, 0xffff_ff00..0xffff_ffff]);
        // Search for the mapping that contains a local variable.
        let (own, mut found) = (0_u8, 0);
        let own = core::ptr::from_ref(&own) as usize;
        assert!(each_mapping(|range| found += u32::from(range.contains(&own))));
        assert_eq!(found, 1);
    }
}
