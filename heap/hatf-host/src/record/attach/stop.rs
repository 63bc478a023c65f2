//! Stopping all threads of a process for a moment.
//!
//! The threads are traced only while they are stopped. If `hatf` is killed, the kernel lets them continue.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::ptrace::{ptrace, registers, wait};
use super::stopped_thread::{EVENT_STOP, in_a_thread};
use super::target::{field, refused, threads};
use crate::record::registers::ThreadRegisters;
use hatf_trace::{Error, Result};

/// The time limit for a thread to stop.
const STOP: Duration = Duration::from_secs(2);

/// Stops all threads of a process, calls `read` with their registers and lets them continue. Returns the result and
/// the time for which the process was stopped. Threads whose registers cannot be read are in the kernel; they stop
/// before they return from it.
///
/// # Errors
/// Returns an error if there is no such process, or if the system forbids tracing it.
///
/// # Examples
///
/// ```
/// let mut process = std::process::Command::new("sleep").arg("60").spawn()?;
/// let stopped = hatf_host::record::while_stopped(process.id(), |threads| threads.len());
/// process.kill()?;
/// process.wait()?;
/// assert_eq!(stopped?.0, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn while_stopped<T: Send>(
    process: u32,
    read: impl FnOnce(&[ThreadRegisters]) -> T + Send,
) -> Result<(T, Duration)> {
    check(process)?;
    in_a_thread(|| {
        let begun = Instant::now();
        let mut stopped = BTreeMap::new();
        // A thread may have started another before it stopped.
        loop {
            let new: Vec<i32> = threads(process).into_iter().filter(|thread| !stopped.contains_key(thread)).collect();
            if new.is_empty() {
                break;
            }
            for thread in &new {
                if let Err(error) = seize(*thread) {
                    explain(process, *thread, &error)?;
                }
            }
            for thread in new {
                stopped.insert(thread, stop(process, thread)?);
            }
        }
        if stopped.values().all(Option::is_none) {
            return Err(refused(process, "has ended"));
        }
        let registers: Vec<_> = stopped.values().flatten().copied().collect();
        let result = read(&registers);
        for thread in stopped.keys() {
            // A thread that has ended, or that is in the kernel, is released when this thread ends.
            let _ = ptrace(libc::PTRACE_DETACH, *thread, 0, 0);
        }
        Ok((result, begun.elapsed()))
    })?
}

/// Checks that a process can be stopped, as far as this can be determined before.
fn check(process: u32) -> Result<()> {
    let refuse = |why: &str| Err(refused(process, why));
    if process == std::process::id() {
        return refuse("is hatf itself");
    }
    let Ok(status) = fs::read(format!("/proc/{process}/status")) else {
        return Err(Error::Trace(format!("there is no process {process}").into()));
    };
    let status = String::from_utf8_lossy(&status);
    if let Some(leader) = field(&status, "Tgid").filter(|leader| *leader != process.to_string()) {
        return refuse(&format!("is a thread of process {leader}: specify that process"));
    }
    if field(&status, "State").is_some_and(|state| state.starts_with(['Z', 'X'])) && threads(process).len() < 2 {
        return refuse("has ended");
    }
    match field(&status, "TracerPid") {
        None | Some("0") => Ok(()),
        Some(tracer) => refuse(&format!("is traced by process {tracer}, such as a debugger: detach that first")),
    }
}

/// Returns the state letter of a thread, or `X` if it has ended.
fn state(process: u32, thread: i32) -> char {
    let status = fs::read(format!("/proc/{process}/task/{thread}/status")).unwrap_or_default();
    field(&String::from_utf8_lossy(&status), "State").and_then(|state| state.chars().next()).unwrap_or('X')
}

fn seize(thread: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, thread, 0, 0)?;
    ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0)
}

/// Returns an error if a thread cannot be traced although it has not ended.
fn explain(process: u32, thread: i32, error: &io::Error) -> Result<()> {
    if error.raw_os_error() == Some(libc::ESRCH) || matches!(state(process, thread), 'Z' | 'X') {
        return Ok(());
    }
    check(process)?;
    Err(refused(
        process,
        "cannot be traced: run hatf as the user of the process; if that fails, too, this requires CAP_SYS_PTRACE, or 0 in \
         /proc/sys/kernel/yama/ptrace_scope",
    ))
}

/// Waits until a thread has stopped. Returns its registers, or `None` if it has ended or is in the kernel and stops
/// when it leaves the kernel.
fn stop(process: u32, thread: i32) -> Result<Option<ThreadRegisters>> {
    let begun = Instant::now();
    loop {
        match wait(thread, Duration::from_millis(1)) {
            Err(_) => return Ok(None),
            Ok(None) => match state(process, thread) {
                // The thread does not run, and it stops at the end of its uninterruptible wait.
                'D' => return Ok(Some(ThreadRegisters { is_in_kernel: true, ..ThreadRegisters::default() })),
                'Z' | 'X' => return Ok(None),
                _ if begun.elapsed() > STOP => return Err(refused(process, "did not stop: try again")),
                _ => {}
            },
            Ok(Some(status)) if !libc::WIFSTOPPED(status) => return Ok(None),
            Ok(Some(status)) if status >> 16 == EVENT_STOP => {
                return Ok(registers(thread).ok().map(|registers| ThreadRegisters {
                    instruction_pointer: registers.rip,
                    stack_pointer: registers.rsp,
                    thread_pointer: registers.fs_base,
                    is_in_kernel: registers.orig_rax.cast_signed() >= 0,
                }));
            }
            // The thread stopped because of a signal first. Deliver the signal and let the thread continue.
            Ok(Some(status)) => {
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                let _ = ptrace(libc::PTRACE_CONT, thread, 0, usize::try_from(signal).unwrap_or_default());
            }
        }
    }
}
