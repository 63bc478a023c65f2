//! Prints reports. Only this module evaluates `--format`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use metatf_page::{Form, Report, TextStyle, render};
use serde::Serialize;

use crate::{JSON_VERSION, OutputFile, Style, stdout, stdout_is_terminal};

/// Output options of commands that print a report.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,

    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Like [`OutputArgs`], for commands whose `-o` names their product; the report is printed to standard output.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FormatArgs {
    /// Output format of the report.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// Like [`OutputArgs`], for commands with additional output formats that are not reports, which are named by `O`.
#[derive(Clone, Debug, clap::Args)]
pub struct OutputOrArgs<O: ValueEnum + Send + Sync + 'static> {
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = format_or::<O>())]
    pub format: FormatOr<O>,

    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A report format or another format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatOr<O> {
    /// A report format.
    Report(Format),
    /// Another format.
    Other(O),
}

impl<O: ValueEnum + Send + Sync + 'static> OutputOrArgs<O> {
    /// Returns the output options of a report in this format.
    #[must_use]
    pub fn with(&self, format: Format) -> OutputArgs {
        OutputArgs { format, output: self.output.clone() }
    }
}

/// Parses a report format or another format.
fn format_or<O: ValueEnum + Send + Sync + 'static>() -> impl TypedValueParser<Value = FormatOr<O>> {
    let reports = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let others = O::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(reports.chain(others)).try_map(|name| {
        let report = Format::from_str(&name, false).map(FormatOr::Report);
        report.or_else(|_| O::from_str(&name, false).map(FormatOr::Other))
    })
}

impl From<&FormatArgs> for OutputArgs {
    fn from(of: &FormatArgs) -> Self {
        Self { format: of.format, output: None }
    }
}

impl OutputArgs {
    /// Returns the destination of a report, for error messages.
    #[must_use]
    pub fn place(&self) -> String {
        self.output.as_ref().map_or_else(|| "standard output".to_owned(), |path| path.display().to_string())
    }
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text, wrapped to the width of the terminal, if any.
    #[default]
    Text,
    /// Markdown, for issues and pull requests.
    Markdown,
    /// JSON: one object with all details, for programs.
    Json,
    /// HTML: one file without scripts, for browsers.
    Html,
    /// SVG: only the picture, if the report has one.
    Svg,
}

/// A report in JSON, with its version.
#[derive(Serialize)]
struct Versioned<'r, R> {
    report_version: u32,
    #[serde(flatten)]
    report: &'r R,
}

/// Prints a report.
///
/// # Errors
/// Fails with the error of the output, whose name is [`OutputArgs::place`], or if the report has no picture to print as
/// SVG.
pub fn print<R: Report>(report: &R, options: &OutputArgs) -> io::Result<()> {
    match &options.output {
        None => {
            let is_terminal = options.format == Format::Text && stdout_is_terminal();
            let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let mut out = stdout(if colour { Style::Coloured } else { options.format.style() });
            form(report, options.format, TextStyle { width: stdout_width(), colour }, &mut out)?;
            out.flush()
        }
        Some(path) => to_file(report, options.format, path),
    }
}

/// Prints a report as text within other output, whose lines have at most `width` characters.
///
/// # Errors
/// Returns the error of the output.
pub fn print_into(report: &impl Report, width: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    render(&report.page(), Form::text(width), out)
}

fn to_file<R: Report>(report: &R, format: Format, path: &Path) -> io::Result<()> {
    let (file, mut out) = OutputFile::create(path)?;
    form(report, format, TextStyle::default(), &mut out)?;
    file.keep(out)
}

fn form<R: Report>(report: &R, format: Format, text: TextStyle, out: &mut dyn Write) -> io::Result<()> {
    let form = match format {
        Format::Text => Form::Text(text),
        Format::Markdown => Form::Markdown,
        Format::Html => Form::Html,
        Format::Svg => Form::Svg,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &Versioned { report_version: JSON_VERSION, report })?;
            return writeln!(out);
        }
    };
    render(&report.page(), form, out)
}

impl Format {
    /// Returns the style that the output may contain.
    fn style(self) -> Style {
        match self {
            Self::Json => Style::Json,
            _ => Style::Text,
        }
    }
}

/// Returns the maximum length of lines on standard output in characters: the value of COLUMNS or, if it is not set, the
/// width of the terminal. Returns `None` if lines may have any length, because standard output is not a terminal.
#[must_use]
pub fn stdout_width() -> Option<usize> {
    width(terminal_width(io::stdout()))
}

/// Returns the maximum length of lines on standard error. See [`stdout_width`].
#[must_use]
pub fn stderr_width() -> Option<usize> {
    width(terminal_width(io::stderr()))
}

fn width(terminal: Option<usize>) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.filter(|width| *width > 0).or(terminal).filter(|width| *width > 0)
}

#[cfg(unix)]
fn terminal_width(stream: impl std::os::fd::AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width<S>(_: S) -> Option<usize> {
    None
}
