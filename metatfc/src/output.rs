//! Standard output with a large buffer, and whether it is a terminal with colours.

use crate::failure::Result;
use std::io::{self, IsTerminal as _, StdoutLock, Write as _};

/// Bytes after which the buffer goes out.
const FULL: usize = 1 << 16;

/// Standard output. What was put in the buffer goes out when it is full, and when the output is dropped: on an error,
/// too, what came before it is delivered.
pub(crate) struct Output {
    out: StdoutLock<'static>,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout().lock(), buffer: Vec::with_capacity(FULL + FULL / 4) }
    }

    /// Returns the buffer to print to; call [`spill`](Self::spill) now and then.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer out if it is full.
    pub(crate) fn spill(&mut self) -> Result<()> {
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Writes everything out.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer).and_then(|()| self.out.flush());
        self.buffer.clear();
        Ok(written?)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Callers that report errors have flushed.
        let _ = self.flush();
    }
}

/// Prints a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = Output::new();
    output.buffer().extend_from_slice(text.as_bytes());
    output.flush()
}

/// Returns whether to use colours on standard output: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn colours_out() -> bool {
    io::stdout().is_terminal() && colours_allowed()
}

/// Returns whether to use colours on standard error, by the same rule.
pub(crate) fn colours_err() -> bool {
    io::stderr().is_terminal() && colours_allowed()
}

fn colours_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Formats a count with its noun: `1 record`, `2 records`.
pub(crate) fn count(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
