//! System calls that neither allocate nor lock, so that signal handlers and forked children may use them.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Release};
use core::ffi::{CStr, c_int};
use core::ptr;

/// A string in a fixed-size buffer, for system paths.
pub(crate) struct PathText {
    bytes: [u8; 512],
    length: usize,
}

impl PathText {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }

    /// Appends bytes, truncating the text if it becomes too long.
    pub(crate) fn push(mut self, text: &[u8]) -> Self {
        for byte in text {
            // The last byte remains zero.
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

    /// Returns the text as a C string.
    pub(crate) fn c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Creates a new file and maps it. The first `head` bytes are allocated on disk, and the remaining bytes are a hole.
/// Returns the system's error number on failure. The file remains locked as long as it is mapped.
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
    // SAFETY: this function owns the descriptor.
    let sized = without_limit_signal(|| unsafe {
        // The lock belongs to the open file, which the mapping keeps open. On a file system without locks, nobody will
        // assume that the process is dead.
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
        // SAFETY: this is a new mapping of a file with this length.
        0 => unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0)
        },
        _ => libc::MAP_FAILED,
    };
    let error = if sized == 0 { errno() } else { sized };
    // SAFETY: this function owns the descriptor and does not use it again.
    unsafe { libc::close(file) };
    if mapped == libc::MAP_FAILED {
        // SAFETY: the path ends with a zero. It is the file created above.
        unsafe { libc::unlink(path.as_ptr()) };
        return Err(error);
    }
    Ok(mapped.cast())
}

/// Maps private memory of this process, which is part of its core dumps.
pub(crate) fn private(bytes: usize) -> Result<*mut u8, c_int> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: this is a new mapping.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(errno()) } else { Ok(mapped.cast()) }
}

/// Allocates memory for a part of a mapping. Returns false if no memory is left. On a kernel without
/// `MADV_POPULATE_WRITE`, allocates nothing and returns true.
///
/// # Safety
/// The range must be mapped and writable, and start at a page boundary.
pub(crate) unsafe fn populate(at: *mut u8, bytes: usize) -> bool {
    const MADV_POPULATE_WRITE: c_int = 23;
    // SAFETY: guaranteed by the caller. The content does not change.
    let done = unsafe { libc::madvise(at.cast(), bytes, MADV_POPULATE_WRITE) };
    done == 0 || errno() == libc::EINVAL
}

/// Replaces a mapping with private, zero-filled memory.
///
/// # Safety
/// The range must be a complete mapping whose content is no longer in use.
pub(crate) unsafe fn blank(at: *mut u8, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: guaranteed by the caller.
    unsafe { libc::mmap(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
}

/// Replaces the page that contains this address with zeros.
///
/// # Safety
/// The address must be in a mapping of a file that no longer contains the page.
pub(crate) unsafe fn blank_page(address: usize) -> bool {
    // SAFETY: this only queries a number.
    let Ok(bytes) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return false };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let page = ptr::without_provenance_mut(address & !(bytes - 1));
    // SAFETY: guaranteed by the caller.
    let mapped = unsafe { libc::mmap(page, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Removes a file.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path ends with a zero.
    unsafe { libc::unlink(path.as_ptr()) };
}

pub(crate) fn errno() -> c_int {
    // SAFETY: this is the address of the thread's own error number.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(number: c_int) {
    // SAFETY: this is the address of the thread's own error number.
    unsafe { *libc::__errno_location() = number };
}

/// Locks or unlocks an open file without waiting. Returns false on failure.
pub(crate) fn lock(file: &impl std::os::fd::AsRawFd, how: c_int) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) == 0 }
}

/// Returns the effective user ID.
pub(crate) fn user() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}

/// Returns an environment variable, or `None` if the program runs with the privileges of a user other than its caller.
/// The caller could otherwise choose the files that are written with these privileges.
pub(crate) fn environment(name: &str) -> Option<std::ffi::OsString> {
    // SAFETY: this only queries a number in the kernel's auxiliary vector.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_secure { None } else { std::env::var_os(name) }
}

/// Calls `f`. If it exceeds `RLIMIT_FSIZE`, the system call returns an error, and no signal kills the process.
pub(crate) fn without_limit_signal<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the signal sets are local and are applied to the calling thread; the call does not wait for a signal.
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

/// Returns the process ID.
pub(crate) fn process() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }.cast_unsigned()
}

/// Returns the thread ID. Uses the system call, because the C library provides `gettid` only since glibc 2.30.
pub(crate) fn thread() -> u32 {
    #[cfg(all(loom, test))]
    if crate::sync::model::is_running() {
        return crate::sync::model::number();
    }
    // SAFETY: always succeeds.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(number).unwrap_or_default()
}

/// Returns the name of the thread in 16 bytes, padded with zeros.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0_u8; 16];
    // SAFETY: the buffer has the 16 bytes that the call requires.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Returns whether a thread of this process exists.
pub(crate) fn is_thread(thread: u32) -> bool {
    // SAFETY: signal 0 is not delivered.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) };
    sent == 0 || errno() != libc::ESRCH
}

/// Keeps the library that contains this address loaded until the process ends, even if the program closes the library,
/// because ending threads, signals and forks call its functions. The program itself is never unloaded.
#[cfg(not(target_feature = "crt-static"))]
pub(crate) fn stay_loaded(address: *const core::ffi::c_void) {
    // SAFETY: the results are valid when zeroed. The name belongs to the C library and is valid as long as the library
    // is loaded. No file is loaded; the call refers to the library that already has this name.
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

/// The key of the function to call when a thread ends, plus 1; 0 if no function is registered.
static AT_THREAD_END: AtomicU32 = AtomicU32::new(0);

/// Registers a function to be called at the end of each thread that requests it.
pub(crate) fn at_thread_end(call: unsafe extern "C" fn(*mut core::ffi::c_void)) {
    let mut key = 0;
    // SAFETY: the key is a valid pointer.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(call)) } == 0 {
        AT_THREAD_END.store(key.wrapping_add(1), Release);
    }
}

/// Requests a call of the registered function at the end of this thread, by storing a non-null value.
pub(crate) fn call_at_thread_end() {
    if let Some(key) = AT_THREAD_END.load(Acquire).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, ptr::without_provenance(1)) };
    }
}

/// Waits until the word is woken or the timeout expires. Returns immediately if the word does not have this value.
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
    // SAFETY: the word and the time live as long as the call. Other processes may share the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time, none, 0) };
}

/// Wakes all threads that wait for the word.
pub(crate) fn wake(word: &AtomicU32) {
    let none = ptr::null::<u32>();
    // SAFETY: the word lives as long as the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, none, none, 0) };
}

/// Blocks signals in this thread, so that other threads handle them, except for signals that the thread itself causes.
pub(crate) fn block_signals() {
    // SAFETY: the set is filled and then applied to the calling thread.
    unsafe {
        let mut all = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for own in [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
            libc::sigdelset(&raw mut all, own);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
}

/// Sleeps for a short time.
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
