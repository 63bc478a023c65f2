//! Buffered standard output, and detection of terminals and colors.

use crate::failure::{Failure, Result};
use metatf_cli::{OutputArgs, Stdout, Style, stderr_is_terminal, stdout, stdout_is_terminal};
use metatf_page::Report;
use std::io::Write as _;

/// Number of buffered bytes at which the buffer is written to the output.
const FULL: usize = 1 << 16;

/// Standard output. The buffer is written when it is full and when the output is dropped, so output before an error is
/// also delivered.
pub(crate) struct Output {
    out: Stdout,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new(style: Style) -> Self {
        Self { out: stdout(style), buffer: Vec::with_capacity(FULL + FULL / 4) }
    }

    /// Returns the buffer to print to; call [`spill`](Self::spill) regularly.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer if it is full.
    pub(crate) fn spill(&mut self) -> Result<()> {
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer).and_then(|()| self.out.flush());
        self.buffer.clear();
        Ok(written?)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Callers that report errors have already flushed.
        let _ = self.flush();
    }
}

/// Prints human-readable text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    print_as(Style::Text, text)
}

/// Prints machine-readable text to standard output.
pub(crate) fn print_data(text: &str) -> Result<()> {
    print_as(Style::Data, text)
}

/// Prints a report to the destination set by the options.
pub(crate) fn report(report: &impl Report, options: &OutputArgs) -> Result<()> {
    metatf_cli::print(report, options).map_err(|e| Failure::io(&options.place(), &e))
}

/// Prints lines of JSON to standard output.
pub(crate) fn print_lines(lines: &str) -> Result<()> {
    print_as(Style::Json, lines)
}

fn print_as(style: Style, text: &str) -> Result<()> {
    let mut output = Output::new(style);
    output.buffer().extend_from_slice(text.as_bytes());
    output.flush()
}

/// Returns the style of text on standard output: colored on a terminal, unless `NO_COLOR` is set
/// (<https://no-color.org>).
pub(crate) fn style_out() -> Style {
    if stdout_is_terminal() && colours_allowed() { Style::Coloured } else { Style::Text }
}

/// Returns the style of text on standard error, according to the same rule.
pub(crate) fn style_err() -> Style {
    if stderr_is_terminal() && colours_allowed() { Style::Coloured } else { Style::Text }
}

fn colours_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Formats a count with its noun: `1 record`, `2 records`.
pub(crate) fn count(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
