//! Calls functions in a thread of another process, on a separate stack.
//!
//! If this process ends while a function is running, the function returns to a signal handler frame, through which the
//! thread resumes its previous work: see `frame.rs`.
//!
//! A function that takes a lock is never interrupted while it may hold the lock, because the process would then wait
//! for that lock forever. Such a function may take any amount of time. If the user does not want to wait, the thread
//! stays in the call and resumes by itself, as described above. Before such a function is called,
//! [`RemoteCalls::begin`] tests whether the thread can obtain the required locks. The functions for this test may be
//! interrupted while they wait, because they hold no lock then.

use std::ffi::CStr;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use super::frame;
use super::ptrace::{ptrace, wait};
use super::stopped_thread::{RED_ZONE, StoppedThread};
use super::target::Target;
use hatf_trace::{Error, Result};

/// The time limit for a trial call that may wait for a lock. The limit matters if the thread itself holds the lock: the
/// call would then wait forever, and the process cannot proceed in the meantime.
const TRIAL: Duration = Duration::from_secs(2);
/// The interval at which the time limit is checked.
const LOOK: Duration = Duration::from_millis(10);
/// A block size that no thread has cached, so that allocating it takes the allocator's locks. It is below the C
/// library's threshold for mapping blocks, because unmapping such a block would change that threshold.
const LARGE: u64 = 64 << 10;
/// The size in bytes of the stack on which functions run.
const STACK: u64 = 256 << 10;
/// Size in bytes of the area after the stack, for the code to which functions return.
const CODE: u64 = 4096;
/// Size in bytes of the area at the low end of the stack, for strings.
const TEXTS: usize = 4096;
/// Offset on the stack at which the code stores the result of a function.
const RESULT: u64 = 8192;
/// The system call by which a thread returns from a signal handler.
const SIGRETURN: u64 = libc::SYS_rt_sigreturn.unsigned_abs();
/// The signal of a stop at the entry or exit of a system call.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
/// The signal by which the C library makes all threads change their user. While it is not delivered, its sender waits
/// and holds a lock.
const SET_USER: i32 = 33;

/// A function that returns whether the user no longer wants to wait.
pub(super) type GiveUp<'t> = &'t (dyn Fn() -> bool + Sync);

/// The reaction to a function that does not return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Wait for the function.
    None,
    /// Interrupt the function after this time.
    Cut(Duration),
    /// Interrupt the function after this time if it is waiting for a lock.
    CutWaiting(Duration),
}

/// A thread in which functions are called. When this is dropped, the thread continues as if nothing had happened.
pub(super) struct RemoteCalls<'t> {
    stopped: StoppedThread<'t>,
    give_up: GiveUp<'t>,
    /// The start of the stack for functions, or 0 if there is none.
    stack: u64,
    /// The address of the thread's `errno`, and its original value.
    errno: Option<(u64, [u8; 4])>,
    /// Whether the thread is about to make a system call.
    at_entrance: bool,
}

impl<'t> RemoteCalls<'t> {
    /// Creates the stack for functions, which also contains strings, and saves the state that functions may change.
    /// Tests that the thread can obtain the locks of the dynamic linker and of the allocator.
    ///
    /// # Errors
    /// Returns an error if the stack cannot be created, or the thread itself holds one of these locks.
    pub(super) fn begin(stopped: StoppedThread<'t>, give_up: GiveUp<'t>) -> Result<Self> {
        let mut calls = Self { stopped, give_up, stack: 0, errno: None, at_entrance: false };
        calls.prepare()?;
        calls.try_locks()?;
        Ok(calls)
    }

    /// Tests that the locks can be obtained: looks up `malloc` and `free` through the dynamic linker, and uses them to
    /// allocate and free a small and a large block.
    fn try_locks(&mut self) -> Result<()> {
        let find = self.stopped.target.function(c"dlsym")?;
        let mut functions = [NULL; 2];
        for (place, name) in functions.iter_mut().zip([c"malloc", c"free"]) {
            let text = self.text(name)?;
            *place = self.call_within(find, &[NULL, text], "dlsym", Limit::CutWaiting(TRIAL))?;
        }
        let [malloc, free] = functions;
        if malloc == NULL || free == NULL {
            return Err(self
                .stopped
                .target
                .refused("does not export a `malloc` and `free` that the dynamic linker can find"));
        }
        for bytes in [1, LARGE] {
            let block = self.call_within(malloc, &[bytes], "malloc", Limit::Cut(TRIAL))?;
            self.call_within(free, &[block], "free", Limit::Cut(TRIAL))?;
        }
        Ok(())
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
        // Save `errno`, because called functions may set it before the thread has read its current value.
        let errno = self.call(c"__errno_location", &[])?;
        let mut value = [0; 4];
        if self.stopped.memory.read_exact_at(&mut value, errno).is_ok() {
            self.errno = Some((errno, value));
        }
        Ok(())
    }

    /// Copies a string to memory that a function can read. Only one string is stored at a time.
    pub(super) fn text(&self, text: &CStr) -> Result<u64> {
        let bytes = text.to_bytes_with_nul();
        if bytes.len() > TEXTS || self.stack == 0 {
            return Err(self.stopped.target.refused("could not be recorded: a path is too long"));
        }
        self.stopped.memory.write_all_at(bytes, self.stack).map_err(about_memory(self.stopped.target))?;
        Ok(self.stack)
    }

    /// Reads a string of the other process.
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

    /// Calls a function with at most two arguments by its address.
    pub(super) fn call_at(&mut self, function: u64, arguments: &[u64], name: &str) -> Result<u64> {
        self.call_within(function, arguments, name, Limit::None)
    }

    fn call_within(&mut self, function: u64, arguments: &[u64], name: &str, limit: Limit) -> Result<u64> {
        let top = self.stack + STACK;
        let mut registers = self.with_frame(top, top).map_err(self.about(name))?;
        registers.rip = function;
        for (place, argument) in [&mut registers.rdi, &mut registers.rsi].into_iter().zip(arguments) {
            *place = *argument;
        }
        self.run(&registers, name, limit, |registers, enters| enters && registers.orig_rax == SIGRETURN)?;
        let mut result = [0; 8];
        self.stopped.memory.read_exact_at(&mut result, self.stack + RESULT).map_err(self.about(name))?;
        Ok(u64::from_ne_bytes(result))
    }

    /// Calls a C library function that makes one system call. The function runs on the thread's own stack and is
    /// stopped after that system call. The memory below the stack is restored, because a stack may be part of a larger
    /// area whose other parts belong to other code.
    fn system_call(&mut self, function: &CStr, call: libc::c_long, arguments: [u64; 6]) -> Result<u64> {
        let name = function.to_string_lossy().into_owned();
        let function = self.stopped.target.function(function)?;
        let top = self.stopped.registers.rsp - RED_ZONE;
        let mut below = vec![0; self.stopped.below()];
        let lowest = top - below.len() as u64;
        self.stopped.memory.read_exact_at(&mut below, lowest).map_err(self.about(&name))?;
        let mut registers = self.with_frame(top, self.stopped.target.sigreturn()).map_err(self.about(&name))?;
        registers.rip = function;
        [registers.rdi, registers.rsi, registers.rdx, registers.rcx, registers.r8, registers.r9] = arguments;
        let is_end = |now: &libc::user_regs_struct, enters: bool| !enters && now.orig_rax == call.unsigned_abs();
        let ended = self.run(&registers, &name, Limit::None, is_end)?;
        self.stopped.memory.write_all_at(&below, lowest).map_err(self.about(&name))?;
        // A result that would be an address in the last page is a negated error number.
        match ended.rax.cast_signed() {
            error @ -4095..0 => {
                let error = io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or_default());
                Err(self.about(&name)(error))
            }
            _ => Ok(ended.rax),
        }
    }

    /// Writes a frame below an address, through which the thread resumes by itself if this process dies. Returns
    /// registers with which the thread continues at `back` when a function returns.
    fn with_frame(&self, top: u64, back: u64) -> io::Result<libc::user_regs_struct> {
        let (at, bytes) = frame::frame(top, back, &self.stopped.registers, &self.stopped.vectors, self.stopped.signals);
        self.stopped.memory.write_all_at(&bytes, at)?;
        let mut registers = self.stopped.registers;
        registers.rsp = at;
        registers.rax = 0;
        // Marks the thread as being outside a system call, because the kernel would otherwise restart that call.
        registers.orig_rax = u64::MAX;
        // Clears the direction flag for string instructions.
        registers.eflags &= !0x400;
        Ok(registers)
    }

    /// Runs the thread until it enters or leaves a system call for which `is_end` returns true.
    fn run(
        &mut self,
        registers: &libc::user_regs_struct,
        name: &str,
        mut limit: Limit,
        is_end: impl Fn(&libc::user_regs_struct, bool) -> bool,
    ) -> Result<libc::user_regs_struct> {
        let (target, thread) = (self.stopped.target, self.stopped.thread);
        let failed = |why: &str| Err(target.refused(&format!("could not be recorded: {name} {why}")));
        let system = self.about(name);
        // All other signals stay blocked until the call is over.
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        let unblocked = faults.iter().chain([&SET_USER]);
        let blocked = unblocked.fold(u64::MAX, |mask, signal| mask & !(1 << (signal - 1)));
        self.stopped.changed = true;
        ptrace(libc::PTRACE_SETSIGMASK, thread, 8, (&raw const blocked) as usize).map_err(&system)?;
        ptrace(libc::PTRACE_SETREGS, thread, 0, core::ptr::from_ref(registers) as usize).map_err(&system)?;
        let mut now = *registers;
        let begun = Instant::now();
        // A thread that was stopped at the entry of a system call also stops at the exit, even though the call is not
        // made.
        let mut enters = self.at_entrance;
        self.at_entrance = false;
        let mut signal = 0;
        loop {
            ptrace(libc::PTRACE_SYSCALL, thread, 0, signal).map_err(&system)?;
            let (status, asked) = self.next_stop(begun, limit).map_err(&system)?;
            if !libc::WIFSTOPPED(status) {
                self.leave();
                return failed("did not return: the process has ended");
            }
            let stopped_by = libc::WSTOPSIG(status);
            ptrace(libc::PTRACE_GETREGS, thread, 0, (&raw mut now) as usize).map_err(&system)?;
            signal = 0;
            if stopped_by == SYSTEM_CALL {
                enters = !enters;
                if is_end(&now, enters) {
                    self.at_entrance = enters;
                    return Ok(now);
                }
            } else if status >> 16 == 0 && faults.contains(&stopped_by) {
                return failed(&format!("was aborted by signal {stopped_by}"));
            } else if status >> 16 == 0 && stopped_by == SET_USER {
                signal = SET_USER.unsigned_abs() as usize;
            }
            if !asked || signal != 0 {
                continue;
            }
            let waited = begun.elapsed().as_secs_f32();
            let may_be_cut = match limit {
                Limit::None => false,
                Limit::Cut(_) => true,
                Limit::CutWaiting(_) => now.orig_rax == libc::SYS_futex.unsigned_abs(),
            };
            if may_be_cut && (self.give_up)() {
                return failed("was aborted because hatf was interrupted");
            }
            if may_be_cut {
                return failed(&format!(
                    "did not return in thread {thread} within {waited:.1} s and was interrupted while it waited for a \
                     lock. The lock may not be released before the thread continues: try again later, or start the \
                     program with `hatf record`"
                ));
            }
            if (self.give_up)() {
                self.leave();
                return failed(&format!(
                    "has not returned in thread {thread} within {waited:.1} s. It was not interrupted, because it may \
                     hold a lock: the thread resumes its own work when the call returns"
                ));
            }
            limit = Limit::None;
        }
    }

    /// Waits for the thread to stop. Stops the thread if the time limit is exceeded or the user gives up. Returns
    /// whether the thread was told to stop.
    fn next_stop(&mut self, begun: Instant, limit: Limit) -> io::Result<(i32, bool)> {
        let mut asked = false;
        loop {
            if let Some(status) = wait(self.stopped.thread, LOOK)? {
                return Ok((status, asked));
            }
            self.stopped.let_others_go();
            let is_late = match limit {
                Limit::None => false,
                Limit::Cut(time) | Limit::CutWaiting(time) => begun.elapsed() >= time,
            };
            if !asked && (is_late || (self.give_up)()) {
                asked = true;
                ptrace(libc::PTRACE_INTERRUPT, self.stopped.thread, 0, 0)?;
            }
        }
    }

    /// Leaves the thread in a call, from which it resumes by itself.
    fn leave(&mut self) {
        self.stopped.changed = false;
        self.stack = 0;
        self.errno = None;
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

/// A null pointer as an argument or result of a function in the other process.
pub(super) const NULL: u64 = 0;
