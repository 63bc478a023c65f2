//! Standard output and standard error. Nothing else in the commands names them to print: what is printed is shown as its [`Style`] says.

use std::io::{self, BufWriter, IsTerminal as _, StderrLock, StdoutLock, Write};

use metatf::container::TRUNCATED;

use crate::{Shown, Style};

/// Standard output, buffered. What is in the buffer goes out when it is flushed, or dropped.
pub type Stdout = Shown<BufWriter<StdoutLock<'static>>>;

/// The version of every report in JSON, its member `report_version`: it grows when a member goes, or comes to mean something else. Members are added without that.
pub const JSON_VERSION: u32 = 1;

/// Bytes of the buffer of standard output.
const BUFFER: usize = 1 << 16;

/// Opens standard output. What is for programs is shown as text is if a terminal reads it.
#[must_use]
pub fn stdout(style: Style) -> Stdout {
    let out = io::stdout().lock();
    let style = if style == Style::Data && out.is_terminal() { Style::Text } else { style };
    Shown::new(BufWriter::with_capacity(BUFFER, out), style)
}

/// Returns whether a terminal shows standard output.
#[must_use]
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether a terminal shows standard error.
#[must_use]
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Opens standard error, for text.
#[must_use]
pub fn stderr(style: Style) -> Shown<StderrLock<'static>> {
    Shown::new(io::stderr().lock(), style)
}

/// Prints a message of a command to standard error. A message that cannot be printed is not a reason to fail.
pub fn print_message(command: &str, message: &str) {
    let _ = stderr(Style::Text).write_all(format!("{command}: {message}\n").as_bytes());
}

/// Prints why a command failed, and a way on for a truncated trace.
pub fn print_failure(command: &str, message: &str) {
    print_message(command, message);
    if message.contains(TRUNCATED) {
        print_message(
            command,
            "help: `metatfc verify --salvage WHOLE.mtf TRACE` writes the records before the end to a new trace",
        );
    }
}
