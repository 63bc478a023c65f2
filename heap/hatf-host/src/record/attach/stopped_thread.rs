//! A stopped thread of another process, which later continues as if nothing had happened.
//!
//! All ptrace calls come from one thread of this process. When that thread ends, the kernel releases all threads that
//! it traces.
//!
//! The stopped thread must not be in the middle of an allocation or of an operation of the dynamic linker, because a
//! function called in it would wait for a lock that the thread itself holds. A thread is safe if it waits in a system
//! call that neither the allocator nor the dynamic linker makes (`epoll_wait`, or `read` on a pipe). Any other thread
//! is safe if neither its instruction pointer nor any word near the top of its stack points into [such
//! code](super::unsafe_code). Stale words from earlier calls may remain on a stack, so threads are examined repeatedly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::time::{Duration, Instant};

use super::frame;
use super::ptrace::{ptrace, registers, wait};
use super::target::Target;
use hatf_trace::{Error, Result};

/// The time limit for finding a safe thread.
const SEARCH: Duration = Duration::from_secs(5);
/// The time limit for a thread to stop.
const STOP: Duration = Duration::from_millis(200);
/// The number of words at the top of a thread's stack that are examined.
const WORDS: usize = 1024;
/// Maximum size of the vector state in bytes.
const VECTORS: usize = 16 << 10;
/// Bytes below the stack pointer that belong to the interrupted function.
pub(super) const RED_ZONE: u64 = 128;
/// An upper bound for the number of stack bytes that a C library function with one system call needs.
const CALLEES: usize = 512;
/// `NT_X86_XSTATE`
const XSTATE: usize = 0x202;

/// A stopped thread of another process. The thread continues when this is dropped.
#[derive(Debug)]
pub(super) struct StoppedThread<'t> {
    pub(super) target: &'t Target,
    pub(super) thread: i32,
    pub(super) memory: File,
    /// The registers, vector state and blocked signals of the thread when it was stopped.
    pub(super) registers: libc::user_regs_struct,
    pub(super) vectors: Vec<u8>,
    pub(super) signals: u64,
    /// Whether the thread's registers were changed.
    pub(super) changed: bool,
    /// Other threads that were told to stop and have not stopped yet.
    seized: BTreeSet<i32>,
}

/// The ptrace event of a thread that this process stopped, whatever signal the thread received.
pub(super) const EVENT_STOP: i32 = 128;

impl<'t> StoppedThread<'t> {
    /// Stops a thread in which functions can be called.
    ///
    /// # Errors
    /// Returns an error if there is no such thread, or the system forbids stopping threads of the process.
    pub(super) fn find(target: &'t Target) -> Result<Self> {
        let begun = Instant::now();
        let mut seized = BTreeSet::new();
        // For each thread, the reason why it could not be used when it was last examined.
        let mut reasons = BTreeMap::new();
        while begun.elapsed() < SEARCH {
            let threads = target.threads();
            if threads.is_empty() {
                return Err(target.refused("has ended"));
            }
            reasons.retain(|thread, _| threads.contains(thread));
            for thread in threads {
                match Self::stop(target, thread, &mut seized) {
                    Ok(Ok(mut stopped)) => match stopped.obstacle() {
                        None => {
                            stopped.seized = seized;
                            return Ok(stopped);
                        }
                        Some(reason) => drop(reasons.insert(thread, reason)),
                    },
                    Ok(Err(reason)) => drop(reasons.insert(thread, reason)),
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                        return Err(target.refused(
                            "cannot be traced: this requires CAP_SYS_PTRACE, or 0 in /proc/sys/kernel/yama/ptrace_scope",
                        ));
                    }
                    // The thread has ended.
                    Err(_) => {}
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let reasons: BTreeSet<String> = reasons.into_values().collect();
        let reasons: Vec<String> = reasons.into_iter().take(3).collect();
        Err(target.refused(&format!(
            "had no thread that could load the recorder within {} s. Last seen: {}. Try again later, or start the program with `hatf record`",
            SEARCH.as_secs(),
            reasons.join("; ")
        )))
    }

    /// Stops a thread, or returns the reason why it cannot be stopped now. `seized` contains the threads that were told
    /// to stop and have not stopped yet.
    fn stop(
        target: &'t Target,
        thread: i32,
        seized: &mut BTreeSet<i32>,
    ) -> io::Result<std::result::Result<Self, String>> {
        let mut limit = Duration::ZERO;
        if !seized.contains(&thread) {
            // A thread in an uninterruptible wait would not stop until the wait is over, and would remain traced until
            // then.
            if let Some(reason) = target.obstacle(thread) {
                return Ok(Err(reason));
            }
            ptrace(libc::PTRACE_SEIZE, thread, 0, libc::PTRACE_O_TRACESYSGOOD.unsigned_abs() as usize)?;
            ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0)?;
            seized.insert(thread);
            limit = STOP;
        }
        let begun = Instant::now();
        loop {
            let Some(status) = wait(thread, limit.saturating_sub(begun.elapsed()))? else {
                return Ok(Err(target.obstacle(thread).unwrap_or_else(|| format!("thread {thread} did not stop"))));
            };
            if !libc::WIFSTOPPED(status) {
                seized.remove(&thread);
                return Ok(Err(format!("thread {thread} has ended")));
            }
            if status >> 16 == EVENT_STOP && libc::WSTOPSIG(status) == libc::SIGTRAP {
                break;
            }
            // The thread stopped for another reason first, such as a signal of its own. Deliver the signal and let the
            // thread continue.
            let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
            ptrace(libc::PTRACE_CONT, thread, 0, usize::try_from(signal).unwrap_or_default())?;
        }
        seized.remove(&thread);
        let registers = registers(thread)?;
        let mut vectors = vec![0; VECTORS];
        let mut place = libc::iovec { iov_base: vectors.as_mut_ptr().cast(), iov_len: vectors.len() };
        ptrace(libc::PTRACE_GETREGSET, thread, XSTATE, (&raw mut place) as usize)?;
        vectors.truncate(place.iov_len);
        let mut signals = 0_u64;
        ptrace(libc::PTRACE_GETSIGMASK, thread, 8, (&raw mut signals) as usize)?;
        let memory = File::options().read(true).write(true).open(format!("/proc/{}/mem", target.process))?;
        let seized = BTreeSet::new();
        Ok(Ok(Self { target, thread, memory, registers, vectors, signals, changed: false, seized }))
    }

    /// Releases threads that were told to stop but stopped too late to be of use.
    pub(super) fn let_others_go(&mut self) {
        self.seized.retain(|thread| match wait(*thread, Duration::ZERO) {
            Ok(None) => true,
            Ok(Some(status)) if libc::WIFSTOPPED(status) => {
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                let _ = ptrace(libc::PTRACE_DETACH, *thread, 0, usize::try_from(signal).unwrap_or_default());
                false
            }
            Ok(Some(_)) | Err(_) => false,
        });
    }

    /// Returns the reason why functions cannot be called in the thread, or `None` if they can.
    fn obstacle(&self) -> Option<String> {
        let thread = self.thread;
        if let Some(name) = self.target.unsafe_code().at(self.registers.rip) {
            return Some(format!("thread {thread} was in {name}"));
        }
        if !self.waits_elsewhere() {
            let mut bytes = vec![0; WORDS * 8];
            let read = self.memory.read_at(&mut bytes, self.registers.rsp).unwrap_or(0);
            let words = bytes.get(..read).unwrap_or_default().as_chunks::<8>().0;
            let name = words.iter().find_map(|word| self.target.unsafe_code().calls(u64::from_ne_bytes(*word)));
            if let Some(name) = name {
                return Some(format!("thread {thread} may have been in a call from {name}"));
            }
        }
        (!self.has_room()).then(|| format!("thread {thread} has too little space on its stack"))
    }

    /// Returns the number of bytes below the red zone that a function with one system call may use, including its
    /// frame.
    pub(super) fn below(&self) -> usize {
        frame::most_bytes(self.vectors.len()) + CALLEES
    }

    /// Returns whether the thread's stack has room for the frame of a function. The memory below a stack may belong to
    /// other code.
    fn has_room(&self) -> bool {
        let lowest = self.registers.rsp.checked_sub(RED_ZONE + self.below() as u64);
        lowest.is_some_and(|lowest| self.target.is_stack(lowest, self.registers.rsp))
    }

    /// Returns whether the thread waits in a system call that neither allocators nor the dynamic linker make.
    fn waits_elsewhere(&self) -> bool {
        let call = match self.registers.orig_rax.cast_signed() {
            libc::SYS_restart_syscall => self.restarted_call(),
            call => call,
        };
        match call {
            ..0 => false,
            libc::SYS_brk
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_mremap
            | libc::SYS_madvise
            | libc::SYS_futex
            | libc::SYS_getrandom
            | libc::SYS_open
            | libc::SYS_openat
            | libc::SYS_stat
            | libc::SYS_fstat
            | libc::SYS_newfstatat
            | libc::SYS_access
            | libc::SYS_readlink
            | libc::SYS_lseek
            | libc::SYS_pread64
            | libc::SYS_close
            | libc::SYS_sched_yield => false,
            // The dynamic linker reads regular files.
            libc::SYS_read => {
                let path = format!("/proc/{}/fd/{}", self.target.process, self.registers.rdi);
                fs::metadata(path).is_ok_and(|file| {
                    let kind = file.file_type();
                    kind.is_fifo() || kind.is_socket() || kind.is_char_device()
                })
            }
            _ => true,
        }
    }

    /// Returns the number of the system call that is being restarted, which happens to a wait with a timeout after its
    /// thread was stopped. Returns -1 if the code does not set the number by `mov $number, %eax; syscall`.
    fn restarted_call(&self) -> i64 {
        let mut code = [0; 7];
        let read = self.memory.read_exact_at(&mut code, self.registers.rip.wrapping_sub(7));
        match (read, code) {
            (Ok(()), [0xb8, a, b, c, d, 0x0f, 0x05]) => i32::from_le_bytes([a, b, c, d]).into(),
            _ => -1,
        }
    }

    /// Restores the thread's registers.
    fn put_back(&mut self) {
        if !self.changed {
            return;
        }
        // An interrupted system call is restarted by the kernel if its thread continues from a stop between two
        // instructions.
        let mut now = self.registers;
        let at_entrance = ptrace(libc::PTRACE_GETREGS, self.thread, 0, (&raw mut now) as usize);
        now.orig_rax = u64::MAX;
        let stopped = at_entrance
            .and_then(|()| ptrace(libc::PTRACE_SETREGS, self.thread, 0, (&raw const now) as usize))
            .and_then(|()| ptrace(libc::PTRACE_INTERRUPT, self.thread, 0, 0))
            .and_then(|()| ptrace(libc::PTRACE_CONT, self.thread, 0, 0))
            .and_then(|()| wait(self.thread, STOP));
        if !matches!(stopped, Ok(Some(status)) if libc::WIFSTOPPED(status)) {
            return;
        }
        let vectors = libc::iovec { iov_base: self.vectors.as_mut_ptr().cast(), iov_len: self.vectors.len() };
        let _ = ptrace(libc::PTRACE_SETREGSET, self.thread, XSTATE, (&raw const vectors) as usize);
        let _ = ptrace(libc::PTRACE_SETREGS, self.thread, 0, (&raw const self.registers) as usize);
        let _ = ptrace(libc::PTRACE_SETSIGMASK, self.thread, 8, (&raw const self.signals) as usize);
    }
}

impl Drop for StoppedThread<'_> {
    fn drop(&mut self) {
        self.put_back();
        self.let_others_go();
        let _ = ptrace(libc::PTRACE_DETACH, self.thread, 0, 0);
    }
}

/// Runs `f` in a new thread. When that thread ends, the kernel releases every thread it stopped.
pub(super) fn in_a_thread<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(f).join());
    ended.map_err(|_| Error::Trace("an internal thread of hatf has failed".into()))
}
