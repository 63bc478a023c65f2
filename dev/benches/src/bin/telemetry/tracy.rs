//! Benchmark rows of Tracy. They run the program in `dev/benches/tracy`, with or without a program that writes a file.

use crate::Result;
use crate::built::run;
use crate::row::Row;
use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures zones that stay in memory.
pub(crate) fn alone(program: &Path) -> Result<String> {
    run(Command::new(program).arg("alone"))
}

/// Measures zones that are written to a file.
pub(crate) fn to_file(program: &Path, capture: &Path, folder: &Path) -> Result<String> {
    let (file, said) = (folder.join("zones.tracy"), folder.join("capture"));
    // Let the system choose a free port. The port is very likely still free when the emitter opens it.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let before = children();
    let mut emitter = Command::new(program);
    // With TRACY_NO_EXIT, the emitter does not exit before it has sent all data.
    emitter.arg("connected").env("TRACY_PORT", &port).env("TRACY_NO_EXIT", "1").stdout(Stdio::piped());
    let mut emitter = emitter.spawn()?;
    let mut writer = Command::new(capture);
    writer.args(["-f", "-a", "127.0.0.1", "-p", &port, "-o"]).arg(&file).stdout(File::create(&said)?);
    // The capture program exits when the emitter exits, or immediately if it does not support the emitter's protocol.
    if !writer.status().is_ok_and(|status| status.success()) {
        emitter.kill()?;
        emitter.wait()?;
        return Err(format!("{} does not accept the data sent by Tracy 0.11.0", capture.display()).into());
    }
    let printed = String::from_utf8(emitter.wait_with_output()?.stdout)?;
    let numbers = printed.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    let [thread, started, events] = numbers[..] else { return Err("Tracy's program printed no row".into()) };
    let said = String::from_utf8_lossy(&std::fs::read(said)?).replace(',', "");
    let zones = said.lines().find_map(|line| line.split_once("Zones: ")?.1.trim().parse::<f64>().ok());
    let row = Row {
        all: Some((children() - before - started) / events),
        bytes: Some(std::fs::metadata(&file)?.len() as f64 / events),
        lost: zones.map(|zones| (events - zones) * 100.0 / events),
        ..Row::new("Tracy, a zone with three values, to a file", thread)
    };
    Ok(format!("{row}\n"))
}

/// Returns the CPU time of all finished child processes in nanoseconds.
fn children() -> f64 {
    // SAFETY: the structure consists of numbers, for which zeros are valid values.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid memory for the result.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
}
