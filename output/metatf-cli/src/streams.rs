//! Standard output and standard error. No other code of the commands prints to them directly, so all output is escaped
//! according to its [`Style`].

use std::io::{self, BufWriter, IsTerminal as _, StderrLock, StdoutLock, Write};

use metatf::container::TRUNCATED;

use crate::{Shown, Style};

/// Buffered standard output. The buffer is written when it is flushed or dropped.
pub type Stdout = Shown<BufWriter<StdoutLock<'static>>>;

/// The version of all JSON reports, stored in the member `report_version`. It is incremented when a member is removed
/// or changes its meaning, but not when members are added.
pub const JSON_VERSION: u32 = 1;

/// The size of the standard output buffer in bytes.
const BUFFER: usize = 1 << 16;

/// Opens standard output. Data for programs is escaped like text if standard output is a terminal.
#[must_use]
pub fn stdout(style: Style) -> Stdout {
    let out = io::stdout().lock();
    let style = if style == Style::Data && out.is_terminal() { Style::Text } else { style };
    Shown::new(BufWriter::with_capacity(BUFFER, out), style)
}

/// Returns whether standard output is a terminal.
#[must_use]
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether standard error is a terminal.
#[must_use]
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Opens standard error for text.
#[must_use]
pub fn stderr(style: Style) -> Shown<StderrLock<'static>> {
    Shown::new(io::stderr().lock(), style)
}

/// Prints a message of a command to standard error. Ignores errors in printing the message.
pub fn print_message(command: &str, message: &str) {
    let _ = stderr(Style::Text).write_all(format!("{command}: {message}\n").as_bytes());
}

/// Prints the error of a command, and a hint if a trace is truncated.
pub fn print_failure(command: &str, message: &str) {
    print_message(command, message);
    if message.contains(TRUNCATED) {
        print_message(
            command,
            "help: `metatfc verify --salvage WHOLE.mtf TRACE` writes the records before the end to a new trace",
        );
    }
}
