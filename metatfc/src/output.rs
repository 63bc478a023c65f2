//! Buffered standard output, and detection of terminals and colors.

use crate::failure::{Failure, Result};
use crate::target::Target;
use metatf::container::Sink;
use metatf_cli::{OutputArgs, Stdout, Style, stderr_is_terminal, stdout, stdout_is_terminal};
use metatf_page::Report;
use std::io::Write as _;
use std::path::Path;

/// Number of buffered bytes at which the buffer is written to the output.
const FULL: usize = 1 << 16;

/// Standard output or a file. The buffer is written when it is full and when the output is dropped, so output before an
/// error is also delivered.
pub(crate) struct Output {
    out: Stdout,
    /// The file to write to instead of standard output.
    file: Option<(Target, Box<dyn Sink + Send>)>,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new(style: Style) -> Self {
        Self { out: stdout(style), file: None, buffer: Vec::with_capacity(FULL + FULL / 4) }
    }

    /// Opens a file, which [`finish`](Self::finish) makes visible under its name. `None` denotes standard output.
    pub(crate) fn create(style: Style, file: Option<&Path>) -> Result<Self> {
        let mut output = Self::new(style);
        output.file = file.map(Target::create).transpose()?;
        Ok(output)
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
        let written = match &mut self.file {
            Some((target, sink)) => sink.write_all(&self.buffer).map_err(|e| Failure::io(target.name(), &e)),
            None => self.out.write_all(&self.buffer).and_then(|()| self.out.flush()).map_err(Failure::from),
        };
        self.buffer.clear();
        written
    }

    /// Writes the buffer and makes the file visible under its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.file.take().map_or(Ok(()), |(target, sink)| target.keep(sink))
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
