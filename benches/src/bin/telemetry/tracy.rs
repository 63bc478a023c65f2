//! Rows of Tracy: the program of `benches/tracy`, with what writes a file beside it or without.

use crate::Result;
use crate::built::run;
use crate::row::Row;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Measures both ways.
pub(crate) fn measure(
    program: &Path,
    capture: Option<&Path>,
    folder: &Path,
    add: &mut dyn FnMut(String) -> Result<()>,
) -> Result<()> {
    add(run(Command::new(program).arg("alone"))?)?;
    let Some(capture) = capture else { return Ok(()) };
    let file = folder.join("zones.tracy");
    // The port that the system would give next is free a moment later, too.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let before = children();
    let mut emitter = Command::new(program);
    // At its end it waits until all is sent.
    emitter.arg("connected").env("TRACY_PORT", &port).env("TRACY_NO_EXIT", "1").stdout(Stdio::piped());
    let emitter = emitter.spawn()?;
    let mut writer = Command::new(capture);
    writer.args(["-f", "-a", "127.0.0.1", "-p", &port, "-o"]).arg(&file).stdout(Stdio::piped());
    let writer = writer.spawn()?;
    let printed = emitter.wait_with_output()?;
    let written = writer.wait_with_output()?;
    if !printed.status.success() || !written.status.success() {
        return Err("Tracy's client or capture failed".into());
    }
    let numbers = String::from_utf8(printed.stdout)?;
    let numbers = numbers.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    let [thread, started, events] = numbers[..] else { return Err("Tracy's program printed no row".into()) };
    let written = String::from_utf8_lossy(&written.stdout).replace(',', "");
    let zones = written.lines().find_map(|line| line.split_once("Zones: ")?.1.trim().parse::<f64>().ok());
    let row = Row {
        all: Some((children() - before - started) / events),
        bytes: Some(std::fs::metadata(&file)?.len() as f64 / events),
        lost: zones.map(|zones| (events - zones) * 100.0 / events),
        ..Row::new("Tracy, a zone with three values, to a file", thread)
    };
    add(format!("{row}\n"))
}

/// Nanoseconds of processor time of all processes that were started here and have ended.
fn children() -> f64 {
    // SAFETY: numbers, of which none has a value that it must not have.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime)
}
