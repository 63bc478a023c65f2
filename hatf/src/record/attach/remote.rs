//! Calls of functions in another process: one of its threads is stopped, runs the function on a stack of its own, and goes on as if nothing had been.
//!
//! All is done by the system call `ptrace`, from one thread of this process. If that ends, the kernel lets all go that it holds. A function that
//! is running then returns to a frame as that of a signal handler, by which the thread finds back to what it did: see `frame.rs`.
//!
//! The thread must not be in the middle of an allocation, or of the dynamic linker's work: the function would wait for a lock that the thread itself has. A thread is safe that waits
//! in a system call which neither makes (`epoll_wait`, `read` of a pipe). Another is safe if neither its instruction pointer nor any word on top of its stack
//! points into such code. Words may be left there from earlier calls, so it is asked again, and other threads are.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::time::{Duration, Instant};

use super::frame;
use super::target::Target;
use crate::{Error, Result};

/// How long a safe thread is looked for.
const SEARCH: Duration = Duration::from_secs(5);
/// How long a thread may take to stop.
const STOP: Duration = Duration::from_millis(200);
/// How long a function may take.
const CALL: Duration = Duration::from_secs(10);
/// Bytes of the stack that the functions get.
const STACK: u64 = 256 << 10;
/// Bytes behind it, for the code to which functions return.
const CODE: u64 = 4096;
/// Bytes of it, at its low end, for texts.
const TEXTS: usize = 4096;
/// Where on it the code puts what a function returned.
const RESULT: u64 = 8192;
/// The system call by which a thread returns from a signal handler.
const SIGRETURN: u64 = libc::SYS_rt_sigreturn.unsigned_abs();
/// The signal of a stop at the entrance or the exit of a system call.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// Words on top of a thread's stack that are looked at.
const WORDS: usize = 1024;
/// Bytes below the stack pointer that belong to the function that was interrupted.
const RED_ZONE: u64 = 128;
/// Bytes of all registers of vectors, at most.
const VECTORS: usize = 16 << 10;
/// `NT_X86_XSTATE`
const XSTATE: usize = 0x202;

/// A thread of another process that is stopped. It goes on when this is dropped.
#[derive(Debug)]
pub(super) struct Stopped<'t> {
    target: &'t Target,
    thread: i32,
    memory: File,
    registers: libc::user_regs_struct,
    vectors: Vec<u8>,
    signals: u64,
    /// The stack for functions: where it begins; 0: there is none.
    stack: u64,
    errno: Option<(u64, [u8; 4])>,
    /// Its registers are not its own.
    changed: bool,
    /// It is about to make a system call.
    at_entrance: bool,
}

fn ptrace(request: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: requests that read or write memory here are given the address of enough of it.
    match unsafe { libc::ptrace(request, thread, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the next change of a thread; `None` if there is none in time.
fn wait(thread: i32, time: Duration) -> io::Result<Option<i32>> {
    let begun = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: a place for the answer.
        match unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            -1 => return Err(io::Error::last_os_error()),
            0 if begun.elapsed() >= time => return Ok(None),
            0 => std::thread::sleep(Duration::from_micros(100)),
            _ => return Ok(Some(status)),
        }
    }
}

/// What a thread that is stopped for us says, whatever signal it was on.
const EVENT_STOP: i32 = 128;

impl<'t> Stopped<'t> {
    /// Stops a thread in which functions can be called.
    ///
    /// # Errors
    /// There is none, or the system forbids it.
    pub(super) fn find(target: &'t Target) -> Result<Self> {
        let begun = Instant::now();
        let mut forbidden = None;
        while begun.elapsed() < SEARCH {
            for thread in target.threads() {
                match Self::stop(target, thread) {
                    Ok(Some(stopped)) if stopped.is_safe() => return Ok(stopped),
                    Ok(_) => {}
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) => forbidden = Some(error),
                    Err(_) => {}
                }
            }
            if forbidden.is_some() {
                return Err(target.refused(
                    "may not be traced: that needs CAP_SYS_PTRACE, or 0 in /proc/sys/kernel/yama/ptrace_scope",
                ));
            }
            if target.threads().is_empty() {
                return Err(target.refused("has ended"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(target.refused("was in its allocator or its dynamic linker each time: try again"))
    }

    /// Stops a thread; `None` if it does not stop in time.
    fn stop(target: &'t Target, thread: i32) -> io::Result<Option<Self>> {
        ptrace(libc::PTRACE_SEIZE, thread, 0, libc::PTRACE_O_TRACESYSGOOD.unsigned_abs() as usize)?;
        ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0)?;
        let begun = Instant::now();
        loop {
            let Some(status) = wait(thread, STOP.saturating_sub(begun.elapsed()))? else { return Ok(None) };
            if !libc::WIFSTOPPED(status) {
                return Ok(None);
            }
            if status >> 16 == EVENT_STOP && libc::WSTOPSIG(status) == libc::SIGTRAP {
                break;
            }
            // A signal of its own comes first.
            let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
            ptrace(libc::PTRACE_CONT, thread, 0, usize::try_from(signal).unwrap_or_default())?;
        }
        // SAFETY: zero is a value of this structure of numbers.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, thread, 0, (&raw mut registers) as usize)?;
        let mut vectors = vec![0; VECTORS];
        let mut place = libc::iovec { iov_base: vectors.as_mut_ptr().cast(), iov_len: vectors.len() };
        ptrace(libc::PTRACE_GETREGSET, thread, XSTATE, (&raw mut place) as usize)?;
        vectors.truncate(place.iov_len);
        let mut signals = 0_u64;
        ptrace(libc::PTRACE_GETSIGMASK, thread, 8, (&raw mut signals) as usize)?;
        let memory = File::options().read(true).write(true).open(format!("/proc/{}/mem", target.process))?;
        Ok(Some(Self {
            target,
            thread,
            memory,
            registers,
            vectors,
            signals,
            stack: 0,
            errno: None,
            changed: false,
            at_entrance: false,
        }))
    }

    /// Returns whether functions can be called in it.
    fn is_safe(&self) -> bool {
        if self.target.is_unsafe(self.registers.rip) {
            return false;
        }
        if self.waits_elsewhere() {
            return true;
        }
        let mut bytes = vec![0; WORDS * 8];
        let read = self.memory.read_at(&mut bytes, self.registers.rsp).unwrap_or(0);
        let words = bytes.get(..read).unwrap_or_default().as_chunks::<8>().0;
        !words.iter().any(|word| self.target.is_unsafe(u64::from_ne_bytes(*word)))
    }

    /// Returns whether it waits in a system call that no allocator and no dynamic linker makes.
    fn waits_elsewhere(&self) -> bool {
        let call = self.registers.orig_rax.cast_signed();
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
            // The linker reads files.
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

    /// Makes the stack for functions, on which texts are as well; keeps what they may change.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let number = |number: libc::c_int| u64::from(number.unsigned_abs());
        let access = number(libc::PROT_READ | libc::PROT_WRITE);
        let kind = number(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = self.system_call(c"mmap", libc::SYS_mmap, [0, STACK + CODE, access, kind, u64::MAX, 0])?;
        self.memory.write_all_at(&frame::code(memory + RESULT), memory + STACK).map_err(about_memory(self.target))?;
        self.stack = memory;
        let code = number(libc::PROT_READ | libc::PROT_EXEC);
        self.system_call(c"mprotect", libc::SYS_mprotect, [memory + STACK, CODE, code, 0, 0, 0])?;
        // The function may set it, and the thread may not have looked at it yet.
        let errno = self.call(c"__errno_location", &[])?;
        let mut value = [0; 4];
        if self.memory.read_exact_at(&mut value, errno).is_ok() {
            self.errno = Some((errno, value));
        }
        Ok(())
    }

    /// Puts a text where a function can find it. There is one at a time.
    pub(super) fn text(&self, text: &CStr) -> Result<u64> {
        let bytes = text.to_bytes_with_nul();
        if bytes.len() > TEXTS || self.stack == 0 {
            return Err(self.target.refused("cannot be given a path as long as this"));
        }
        self.memory.write_all_at(bytes, self.stack).map_err(about_memory(self.target))?;
        Ok(self.stack)
    }

    /// Reads a text there.
    pub(super) fn read_text(&self, at: u64) -> String {
        let mut bytes = vec![0; 1024];
        let read = self.memory.read_at(&mut bytes, at).unwrap_or(0);
        let text = bytes.get(..read).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Calls a function of the C library.
    pub(super) fn call(&mut self, name: &CStr, arguments: &[u64]) -> Result<u64> {
        let function = self.target.function(name)?;
        self.call_at(function, arguments, &name.to_string_lossy())
    }

    /// Calls a function by its address, which has two arguments at most.
    pub(super) fn call_at(&mut self, function: u64, arguments: &[u64], name: &str) -> Result<u64> {
        let top = self.stack + STACK;
        let mut registers = self.with_frame(top, top).map_err(self.about(name))?;
        registers.rip = function;
        for (place, argument) in [&mut registers.rdi, &mut registers.rsi].into_iter().zip(arguments) {
            *place = *argument;
        }
        self.run(&registers, name, |registers, enters| enters && registers.orig_rax == SIGRETURN)?;
        let mut result = [0; 8];
        self.memory.read_exact_at(&mut result, self.stack + RESULT).map_err(self.about(name))?;
        Ok(u64::from_ne_bytes(result))
    }

    /// Calls a function of the C library that makes one system call, on the thread's own stack, and stops behind that.
    fn system_call(&mut self, function: &CStr, call: libc::c_long, arguments: [u64; 6]) -> Result<u64> {
        let name = function.to_string_lossy().into_owned();
        let function = self.target.function(function)?;
        let top = self.registers.rsp - RED_ZONE;
        let mut registers = self.with_frame(top, self.target.sigreturn()).map_err(self.about(&name))?;
        registers.rip = function;
        [registers.rdi, registers.rsi, registers.rdx, registers.rcx, registers.r8, registers.r9] = arguments;
        let ended =
            self.run(&registers, &name, |registers, enters| !enters && registers.orig_rax == call.unsigned_abs())?;
        // The last page of addresses are the numbers of errors.
        match ended.rax.cast_signed() {
            error @ -4095..0 => {
                let error = io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or_default());
                Err(self.about(&name)(error))
            }
            _ => Ok(ended.rax),
        }
    }

    /// Writes a frame below an address, from which the thread finds back by itself if this process dies, and returns registers with which it goes to `back` when a function
    /// returns.
    fn with_frame(&self, top: u64, back: u64) -> io::Result<libc::user_regs_struct> {
        let (at, bytes) = frame::frame(top, back, &self.registers, &self.vectors, self.signals);
        self.memory.write_all_at(&bytes, at)?;
        let mut registers = self.registers;
        registers.rsp = at;
        registers.rax = 0;
        // Not in a system call: it would be made again.
        registers.orig_rax = u64::MAX;
        // The direction in which strings are copied.
        registers.eflags &= !0x400;
        Ok(registers)
    }

    /// Has the thread run until it enters, or has made, the system call that is asked for.
    fn run(
        &mut self,
        registers: &libc::user_regs_struct,
        name: &str,
        is_end: impl Fn(&libc::user_regs_struct, bool) -> bool,
    ) -> Result<libc::user_regs_struct> {
        let failed = |why: &str| Err(self.target.refused(&format!("could not be recorded: {name} {why}")));
        let system = self.about(name);
        // All other signals wait until it is over.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        let blocked = faults.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        self.changed = true;
        ptrace(libc::PTRACE_SETSIGMASK, self.thread, 8, (&raw const blocked) as usize).map_err(&system)?;
        ptrace(libc::PTRACE_SETREGS, self.thread, 0, core::ptr::from_ref(registers) as usize).map_err(&system)?;
        let mut now = *registers;
        let begun = Instant::now();
        // In the stop at the entrance of a system call that is not made there is one at its exit yet to come.
        let mut enters = self.at_entrance;
        self.at_entrance = false;
        loop {
            ptrace(libc::PTRACE_SYSCALL, self.thread, 0, 0).map_err(&system)?;
            let left = CALL.saturating_sub(begun.elapsed());
            let Some(status) = wait(self.thread, left).map_err(&system)? else {
                // It stops wherever it is, and its registers are put back: what it waited for it does not have.
                let _ = ptrace(libc::PTRACE_INTERRUPT, self.thread, 0, 0);
                let _ = wait(self.thread, STOP);
                return failed("did not return");
            };
            if !libc::WIFSTOPPED(status) {
                self.changed = false;
                self.stack = 0;
                return failed("was its end: the process has ended meanwhile");
            }
            if libc::WSTOPSIG(status) == SYSTEM_CALL {
                enters = !enters;
                ptrace(libc::PTRACE_GETREGS, self.thread, 0, (&raw mut now) as usize).map_err(&system)?;
                if is_end(&now, enters) {
                    self.at_entrance = enters;
                    return Ok(now);
                }
            } else if faults.contains(&libc::WSTOPSIG(status)) && status >> 16 == 0 {
                return failed(&format!("was ended by signal {}", libc::WSTOPSIG(status)));
            }
        }
    }

    fn about(&self, name: &str) -> impl Fn(io::Error) -> Error + use<'t> {
        let (target, name) = (self.target, name.to_owned());
        move |error| target.refused(&format!("could not be recorded: {name}: {error}"))
    }

    /// Has all be as it was.
    fn put_back(&mut self) {
        if let Some((place, value)) = self.errno.take() {
            let _ = self.memory.write_all_at(&value, place);
        }
        if self.stack != 0 {
            let _ = self.system_call(c"munmap", libc::SYS_munmap, [self.stack, STACK + CODE, 0, 0, 0, 0]);
        }
        if !self.changed {
            return;
        }
        // A system call that was interrupted is made again by itself if its thread goes on from a stop between two instructions.
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

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.put_back();
        let _ = ptrace(libc::PTRACE_DETACH, self.thread, 0, 0);
    }
}

fn about_memory(target: &Target) -> impl FnOnce(io::Error) -> Error {
    let error = target.refused("cannot be written to");
    move |_| error
}

/// Runs `f` in a thread of its own, whose end lets go whatever it has stopped.
pub(super) fn in_a_thread<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T> {
    let ended = std::thread::scope(|scope| scope.spawn(f).join());
    ended.map_err(|_| Error::Trace("a thread of hatf has ended".into()))
}

/// A null pointer there.
pub(super) const NULL: u64 = 0;
