//! The identities of this process and its threads, obtained without a system call, because the program may have a
//! filter that kills it for a system call that the program does not make itself.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::files;

unsafe extern "C" {
    fn pthread_getcpuclockid(thread: libc::pthread_t, clock: *mut libc::clockid_t) -> c_int;
}

/// Returns the thread ID of the calling thread, or 0 if the C library does not know it. It is encoded, inverted and
/// shifted left by three bits, in the ID of the thread's CPU-time clock, which the C library computes from its own
/// data.
pub(crate) fn task() -> u32 {
    let mut clock = 0;
    // SAFETY: the calling thread, and a place for the result.
    let result = unsafe { pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    if result == 0 { (!(clock >> 3)).cast_unsigned() } else { 0 }
}

/// The maximum number of bytes kept of a path.
const BYTES: usize = 4096;

/// The path of the program's file, which is written once, before its length.
struct Program {
    bytes: UnsafeCell<[u8; BYTES]>,
    length: AtomicUsize,
}

// SAFETY: the bytes are written by the one thread that calls `note_program`, before their length is stored, and read
// after it was loaded.
unsafe impl Sync for Program {}

static PROGRAM: Program = Program { bytes: UnsafeCell::new([0; BYTES]), length: AtomicUsize::new(0) };

/// Queries the system for the path of the program's file, for [`program`]. Called when recording begins, by one thread
/// at a time.
pub(crate) fn note_program() {
    if PROGRAM.length.load(Ordering::Acquire) != 0 {
        return;
    }
    // SAFETY: a constant path, and a buffer with its length that nobody reads yet.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), PROGRAM.bytes.get().cast(), BYTES) };
    PROGRAM.length.store(usize::try_from(length).unwrap_or(0), Ordering::Release);
}

/// Returns the path of the program's file, or an empty slice if `/proc` did not provide it.
pub(crate) fn program() -> &'static [u8] {
    let length = PROGRAM.length.load(Ordering::Acquire);
    // SAFETY: written once, before the length was.
    unsafe { &*PROGRAM.bytes.get() }.get(..length).unwrap_or_default()
}

/// Returns the start time of this process in kernel ticks since boot, or 0 if it cannot be determined.
pub(crate) fn began() -> u64 {
    let mut bytes = [0; 1024];
    let text = files::read(c"/proc/self/stat", &mut bytes).unwrap_or_default();
    // The second field is a name in parentheses, which may contain any character.
    let behind = text.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 1);
    let mut fields = text.get(behind..).unwrap_or_default().split(|byte| *byte == b' ');
    let began = fields.nth(20).unwrap_or_default();
    began.iter().fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads() {
        // SAFETY: a call without arguments.
        let asked = || unsafe { libc::syscall(libc::SYS_gettid) };
        let check = move || assert_eq!(i64::from(task()), asked());
        check();
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn the_program_s_file() {
        note_program();
        assert_eq!(program(), std::env::current_exe().unwrap().as_os_str().as_encoded_bytes());
    }
}
