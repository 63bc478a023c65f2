//! Calls of the system that neither allocate nor lock: a signal handler, or a forked child, may make them.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Release};
use core::ffi::{CStr, c_int};
use core::ptr;

/// Text that is put together in place, for paths of the system.
pub(crate) struct PathText {
    bytes: [u8; 512],
    length: usize,
}

impl PathText {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }

    /// Appends; what is too long is cut.
    pub(crate) fn push(mut self, text: &[u8]) -> Self {
        for byte in text {
            // The last byte stays zero.
            if self.length + 1 < self.bytes.len() && *byte != 0 {
                self.bytes[self.length] = *byte;
                self.length += 1;
            }
        }
        self
    }

    /// Appends a number in decimal.
    pub(crate) fn number(self, mut number: u64) -> Self {
        let mut digits = [0_u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                return self.push(&digits[at..]);
            }
        }
    }

    /// Returns it for the system.
    pub(crate) fn c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Makes a file that was not there and maps it: the bytes of its head are reserved on the disk, the others are holes. On an error
/// returns the system's number of it. The file is locked as long as it is mapped.
pub(crate) fn make(path: &CStr, bytes: usize, head: usize) -> Result<*mut u8, c_int> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600 as libc::c_uint) };
    if file < 0 {
        return Err(errno());
    }
    let (Ok(long), Ok(long_head)) = (libc::off_t::try_from(bytes), libc::off_t::try_from(head)) else {
        return Err(libc::EFBIG);
    };
    // SAFETY: the descriptor is ours.
    let sized = without_limit_signal(|| unsafe {
        // Its lock is of the open file, which the mapping keeps. Where there are none, nobody takes it for that of a dead process.
        libc::flock(file, libc::LOCK_EX | libc::LOCK_NB);
        match libc::ftruncate(file, long) {
            0 => match libc::posix_fallocate(file, 0, long_head) {
                libc::EOPNOTSUPP | libc::EINVAL => 0,
                error => error,
            },
            _ => errno(),
        }
    });
    let mapped = match sized {
        // SAFETY: a new mapping of a file of this length.
        0 => unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
        },
        _ => libc::MAP_FAILED,
    };
    let error = if sized == 0 { errno() } else { sized };
    // SAFETY: the descriptor is ours, and is not used again.
    unsafe { libc::close(file) };
    if mapped == libc::MAP_FAILED {
        // SAFETY: the path ends with a zero. The file is the one that was made above.
        unsafe { libc::unlink(path.as_ptr()) };
        return Err(error);
    }
    Ok(mapped.cast())
}

/// Maps memory of this process alone, which a core dump has.
pub(crate) fn private(bytes: usize) -> Result<*mut u8, c_int> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(errno()) } else { Ok(mapped.cast()) }
}

/// Gives memory to a part of a mapping; false if there is none left. Old kernels cannot say, and get the benefit of the doubt.
///
/// # Safety
/// The range is mapped, writable, and begins at a page.
pub(crate) unsafe fn populate(at: *mut u8, bytes: usize) -> bool {
    const MADV_POPULATE_WRITE: c_int = 23;
    // SAFETY: as the caller promises. The content stays as it is.
    let done = unsafe { libc::madvise(at.cast(), bytes, MADV_POPULATE_WRITE) };
    done == 0 || errno() == libc::EINVAL
}

/// Puts private zeros in place of a mapping.
///
/// # Safety
/// It is a whole mapping, and what it holds is of no use to anybody.
pub(crate) unsafe fn blank(at: *mut u8, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: as the caller promises.
    unsafe { libc::mmap(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
}

/// Puts zeros in place of the page that has this address.
///
/// # Safety
/// It is in a mapping of a file that has this page no more.
pub(crate) unsafe fn blank_page(address: usize) -> bool {
    // SAFETY: the system is asked for the number.
    let Ok(bytes) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return false };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let page = ptr::without_provenance_mut(address & !(bytes - 1));
    // SAFETY: as the caller promises.
    let mapped = unsafe { libc::mmap(page, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Removes a file.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path ends with a zero.
    unsafe { libc::unlink(path.as_ptr()) };
}

pub(crate) fn errno() -> c_int {
    // SAFETY: the address of the thread's own number.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the address of the thread's own number.
    unsafe { *libc::__errno_location() = number };
}

/// Locks an open file, or opens its lock, without waiting; false if that cannot be.
pub(crate) fn lock(file: &impl std::os::fd::AsRawFd, how: c_int) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) == 0 }
}

/// Returns the number of the user with whose rights the process runs.
pub(crate) fn user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}

/// Returns a variable of the environment. A program that runs with the rights of another user than its caller has none: the caller would
/// choose what is written with them.
pub(crate) fn environment(name: &str) -> Option<std::ffi::OsString> {
    // SAFETY: the kernel's vector is asked for a number.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_secure { None } else { std::env::var_os(name) }
}

/// Calls `f`. A file that would get longer than `RLIMIT_FSIZE` allows is an error of it then, and no signal that ends the process.
pub(crate) fn without_limit_signal<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals in place, given to the calling thread; none is waited for.
    unsafe {
        let (mut one, mut before, mut pending) = (
            core::mem::zeroed::<libc::sigset_t>(),
            core::mem::zeroed::<libc::sigset_t>(),
            core::mem::zeroed::<libc::sigset_t>(),
        );
        libc::sigemptyset(&raw mut one);
        libc::sigaddset(&raw mut one, libc::SIGXFSZ);
        libc::sigpending(&raw mut pending);
        let waits_already = libc::sigismember(&raw const pending, libc::SIGXFSZ) == 1;
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const one, &raw mut before);
        let result = f();
        let errno = errno();
        if !waits_already && libc::sigismember(&raw const before, libc::SIGXFSZ) == 0 {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const one, ptr::null_mut(), &raw const now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        set_errno(errno);
        result
    }
}

/// Returns the number of the process.
pub(crate) fn process() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }.cast_unsigned()
}

/// Returns the number of the thread: by the system call, as the C library has `gettid` from glibc 2.30 on.
pub(crate) fn thread() -> u32 {
    #[cfg(all(loom, test))]
    if crate::sync::model::is_running() {
        return crate::sync::model::number();
    }
    // SAFETY: always succeeds.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(number).unwrap_or_default()
}

/// Returns the name of the thread, 16 bytes with zeros at the end.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: a place for 16 bytes, as the call asks for.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Whether a thread of this process is there.
pub(crate) fn is_thread(thread: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) };
    sent == 0 || errno() != libc::ESRCH
}

/// Keeps the library with this address loaded until the process ends, even if it is closed: threads that end, signals and forks call functions
/// of it. The program itself stays in any case.
#[cfg(not(target_feature = "crt-static"))]
pub(crate) fn stay_loaded(address: *const core::ffi::c_void) {
    // SAFETY: places for the answers, of which zeros are values. The name is the C library's own, and stays as long as the library does.
    // No file is loaded: what has this name is.
    unsafe {
        let mut library = core::mem::zeroed::<libc::Dl_info>();
        let mut program = core::mem::zeroed::<libc::Dl_info>();
        let headers = ptr::without_provenance(usize::try_from(libc::getauxval(libc::AT_PHDR)).unwrap_or(0));
        let is_program = libc::dladdr(headers, &raw mut program) != 0
            && libc::dladdr(address, &raw mut library) != 0
            && program.dli_fbase == library.dli_fbase;
        if !is_program && !library.dli_fname.is_null() {
            libc::dlopen(library.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// The key of what is called when a thread ends, and 1 more; 0: there is none.
static AT_THREAD_END: AtomicU32 = AtomicU32::new(0);

/// Has a function called in each thread that ends and has asked for it.
pub(crate) fn at_thread_end(call: unsafe extern "C" fn(*mut core::ffi::c_void)) {
    let mut key = 0;
    // SAFETY: a place for the key.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(call)) } == 0 {
        AT_THREAD_END.store(key.wrapping_add(1), Release);
    }
}

/// Has that function called when this thread ends: anything but null is noted for it.
pub(crate) fn call_at_thread_end() {
    if let Some(key) = AT_THREAD_END.load(Acquire).checked_sub(1) {
        // SAFETY: a key that was made.
        unsafe { libc::pthread_setspecific(key, ptr::without_provenance(1)) };
    }
}

/// Waits until somebody wakes the word, if it has this value, or so long.
pub(crate) fn wait(word: &AtomicU32, value: u32, milliseconds: u32) {
    #[cfg(all(loom, test))]
    if crate::sync::model::is_running() {
        return crate::sync::model::pause();
    }
    let time = libc::timespec {
        tv_sec: libc::time_t::from(milliseconds / 1000),
        tv_nsec: libc::c_long::from(milliseconds % 1000) * 1_000_000,
    };
    let none = ptr::null::<u32>();
    // SAFETY: the word and the time live as long as the call. The word may be one of other processes, too.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time, none, 0) };
}

/// Wakes all that wait for the word.
pub(crate) fn wake(word: &AtomicU32) {
    let none = ptr::null::<u32>();
    // SAFETY: the word lives as long as the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, none, none, 0) };
}

/// Has the other threads get all signals, but those that a thread causes itself.
pub(crate) fn block_signals() {
    // SAFETY: a set is filled, and given to the calling thread.
    unsafe {
        let mut all = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for own in [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
            libc::sigdelset(&raw mut all, own);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
}

/// Sleeps a little.
pub(crate) fn pause() {
    #[cfg(all(loom, test))]
    if crate::sync::model::is_running() {
        return crate::sync::model::pause();
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
    // SAFETY: the time lives as long as the call.
    unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_together_and_cut() {
        let path = PathText::new().push(b"/dev/shm/a.").number(0).push(b".").number(u64::MAX);
        assert_eq!(path.c_str(), c"/dev/shm/a.0.18446744073709551615");
        let long = path.push(&[b'x'; 1000]);
        assert_eq!((long.bytes().len(), long.c_str().to_bytes().len()), (511, 511));
    }

    #[test]
    fn this_thread_is_there() {
        assert!(is_thread(thread()));
        assert!(!is_thread(0x3fff_fff0));
    }
}
