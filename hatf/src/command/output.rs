//! What commands print: reports, and what is no report of `metatf_page` yet, that of `hatf paper`.

use std::io::{self, Write};

use hatf::{Error, Result};
use metatf_cli::{JSON_VERSION, OutputArgs, Style, stdout};
use metatf_page::Report;
use serde::Serialize;

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
