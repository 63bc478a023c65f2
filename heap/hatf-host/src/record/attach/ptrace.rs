//! System calls that stop and inspect the threads of another process.

use std::io;
use std::time::{Duration, Instant};

/// Performs a ptrace request for a thread.
pub(super) fn ptrace(request: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: requests that access memory in this process are given the address of a large enough buffer.
    match unsafe { libc::ptrace(request, thread, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the registers of a stopped thread.
pub(super) fn registers(thread: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all zeros is a valid value of this struct of integers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, thread, 0, (&raw mut registers) as usize)?;
    Ok(registers)
}

/// Returns the next status change of a thread, or `None` if the status does not change in time.
pub(super) fn wait(thread: i32, time: Duration) -> io::Result<Option<i32>> {
    let begun = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a valid integer that receives the result.
        match unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            -1 => return Err(io::Error::last_os_error()),
            0 if begun.elapsed() >= time => return Ok(None),
            0 => std::thread::sleep(Duration::from_micros(100)),
            _ => return Ok(Some(status)),
        }
    }
}
