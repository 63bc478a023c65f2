//! What commands print: a report as text, or as one JSON object; lines for programs.

use std::io::{self, Write};

use hatf::{Error, Result};
use metatf_cli::{JSON_VERSION, OutputArgs, Style, stdout};
use metatf_page::Report;
use serde::Serialize;

use super::Format;

/// Prints a report where the options say.
pub(crate) fn show(report: &impl Report, options: &OutputArgs) -> Result<()> {
    metatf_cli::print(report, options).map_err(Error::system(options.place()))
}

/// A report in JSON.
#[derive(Serialize)]
struct Versioned<R> {
    report_version: u32,
    #[serde(flatten)]
    report: R,
}

/// Prints a report to standard output.
pub(crate) fn print<R: Serialize>(
    format: Format,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    report: impl FnOnce() -> R,
) -> Result<()> {
    match format {
        Format::Text => print_text(text),
        Format::Json => print_json(report()),
    }
}

/// Prints text to standard output.
pub(crate) fn print_text(text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = stdout(Style::Text);
    text(&mut out)?;
    Ok(out.flush()?)
}

/// Prints a report, which is an object, as JSON.
pub(crate) fn print_json(report: impl Serialize) -> Result<()> {
    let mut out = stdout(Style::Json);
    serde_json::to_writer_pretty(&mut out, &Versioned { report_version: JSON_VERSION, report })
        .map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
