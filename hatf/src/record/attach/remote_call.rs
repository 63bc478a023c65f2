//! Calls of functions in a thread of another process, on a stack of their own.
//!
//! If this process ends while a function is running, that returns to a frame as that of a signal handler, by which the thread finds back to what it did: see
//! `frame.rs`.

use std::ffi::CStr;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use super::frame;
use super::ptrace::{ptrace, wait};
use super::stopped_thread::{STOP, StoppedThread};
use super::target::Target;
use crate::{Error, Result};

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
/// Bytes below the stack pointer that belong to the function that was interrupted.
const RED_ZONE: u64 = 128;

/// A thread in which functions are called. When this is dropped, it goes on as if nothing had been.
#[derive(Debug)]
pub(super) struct RemoteCalls<'t> {
    stopped: StoppedThread<'t>,
    /// The stack for functions: where it begins; 0: there is none.
    stack: u64,
    /// Where its `errno` is, and what it was.
    errno: Option<(u64, [u8; 4])>,
    /// It is about to make a system call.
    at_entrance: bool,
}

impl<'t> RemoteCalls<'t> {
    /// Makes the stack for functions in a thread, on which texts are as well; keeps what they may change.
    ///
    /// # Errors
    /// The thread cannot be given one.
    pub(super) fn begin(stopped: StoppedThread<'t>) -> Result<Self> {
        let mut calls = Self { stopped, stack: 0, errno: None, at_entrance: false };
        calls.prepare()?;
        Ok(calls)
    }

    fn prepare(&mut self) -> Result<()> {
        let number = |number: libc::c_int| u64::from(number.unsigned_abs());
        let access = number(libc::PROT_READ | libc::PROT_WRITE);
        let kind = number(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = self.system_call(c"mmap", libc::SYS_mmap, [0, STACK + CODE, access, kind, u64::MAX, 0])?;
        self.stopped
            .memory
            .write_all_at(&frame::code(memory + RESULT), memory + STACK)
            .map_err(about_memory(self.stopped.target))?;
        self.stack = memory;
        let code = number(libc::PROT_READ | libc::PROT_EXEC);
        self.system_call(c"mprotect", libc::SYS_mprotect, [memory + STACK, CODE, code, 0, 0, 0])?;
        // The function may set it, and the thread may not have looked at it yet.
        let errno = self.call(c"__errno_location", &[])?;
        let mut value = [0; 4];
        if self.stopped.memory.read_exact_at(&mut value, errno).is_ok() {
            self.errno = Some((errno, value));
        }
        Ok(())
    }

    /// Puts a text where a function can find it. There is one at a time.
    pub(super) fn text(&self, text: &CStr) -> Result<u64> {
        let bytes = text.to_bytes_with_nul();
        if bytes.len() > TEXTS || self.stack == 0 {
            return Err(self.stopped.target.refused("cannot be given a path as long as this"));
        }
        self.stopped.memory.write_all_at(bytes, self.stack).map_err(about_memory(self.stopped.target))?;
        Ok(self.stack)
    }

    /// Reads a text there.
    pub(super) fn read_text(&self, at: u64) -> String {
        let mut bytes = vec![0; 1024];
        let read = self.stopped.memory.read_at(&mut bytes, at).unwrap_or(0);
        let text = bytes.get(..read).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Calls a function of the C library.
    pub(super) fn call(&mut self, name: &CStr, arguments: &[u64]) -> Result<u64> {
        let function = self.stopped.target.function(name)?;
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
        self.stopped.memory.read_exact_at(&mut result, self.stack + RESULT).map_err(self.about(name))?;
        Ok(u64::from_ne_bytes(result))
    }

    /// Calls a function of the C library that makes one system call, on the thread's own stack, and stops behind that.
    fn system_call(&mut self, function: &CStr, call: libc::c_long, arguments: [u64; 6]) -> Result<u64> {
        let name = function.to_string_lossy().into_owned();
        let function = self.stopped.target.function(function)?;
        let top = self.stopped.registers.rsp - RED_ZONE;
        let mut registers = self.with_frame(top, self.stopped.target.sigreturn()).map_err(self.about(&name))?;
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
        let (at, bytes) = frame::frame(top, back, &self.stopped.registers, &self.stopped.vectors, self.stopped.signals);
        self.stopped.memory.write_all_at(&bytes, at)?;
        let mut registers = self.stopped.registers;
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
        let failed = |why: &str| Err(self.stopped.target.refused(&format!("could not be recorded: {name} {why}")));
        let system = self.about(name);
        // All other signals wait until it is over.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        let blocked = faults.iter().fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        self.stopped.changed = true;
        ptrace(libc::PTRACE_SETSIGMASK, self.stopped.thread, 8, (&raw const blocked) as usize).map_err(&system)?;
        ptrace(libc::PTRACE_SETREGS, self.stopped.thread, 0, core::ptr::from_ref(registers) as usize)
            .map_err(&system)?;
        let mut now = *registers;
        let begun = Instant::now();
        // In the stop at the entrance of a system call that is not made there is one at its exit yet to come.
        let mut enters = self.at_entrance;
        self.at_entrance = false;
        loop {
            ptrace(libc::PTRACE_SYSCALL, self.stopped.thread, 0, 0).map_err(&system)?;
            let left = CALL.saturating_sub(begun.elapsed());
            let Some(status) = wait(self.stopped.thread, left).map_err(&system)? else {
                // It stops wherever it is, and its registers are put back: what it waited for it does not have.
                let _ = ptrace(libc::PTRACE_INTERRUPT, self.stopped.thread, 0, 0);
                let _ = wait(self.stopped.thread, STOP);
                return failed("did not return");
            };
            if !libc::WIFSTOPPED(status) {
                self.stopped.changed = false;
                self.stack = 0;
                return failed("was its end: the process has ended meanwhile");
            }
            if libc::WSTOPSIG(status) == SYSTEM_CALL {
                enters = !enters;
                ptrace(libc::PTRACE_GETREGS, self.stopped.thread, 0, (&raw mut now) as usize).map_err(&system)?;
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
        let (target, name) = (self.stopped.target, name.to_owned());
        move |error| target.refused(&format!("could not be recorded: {name}: {error}"))
    }
}

impl Drop for RemoteCalls<'_> {
    fn drop(&mut self) {
        if let Some((place, value)) = self.errno.take() {
            let _ = self.stopped.memory.write_all_at(&value, place);
        }
        if self.stack != 0 {
            let _ = self.system_call(c"munmap", libc::SYS_munmap, [self.stack, STACK + CODE, 0, 0, 0, 0]);
        }
    }
}

fn about_memory(target: &Target) -> impl FnOnce(io::Error) -> Error {
    let error = target.refused("cannot be written to");
    move |_| error
}

/// A null pointer there.
pub(super) const NULL: u64 = 0;
