//! Prints reports: the one place where a command's `--format` is looked at.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use metatf_page::{Form, Report, TextStyle, render};
use serde::Serialize;

use crate::{JSON_VERSION, OutputFile, Style, stdout, stdout_is_terminal};

/// How a report is printed, as every command that prints one takes it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// How to print it.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,

    /// Write it to this file, and not to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// As [`OutputArgs`], for commands whose `-o` is what they make: the report goes to standard output.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FormatArgs {
    /// How to print the outcome.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// As [`OutputArgs`], for commands that also print what is not a report: `O` names these forms.
#[derive(Clone, Debug, clap::Args)]
pub struct OutputOrArgs<O: ValueEnum + Send + Sync + 'static> {
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = format_or::<O>())]
    pub format: FormatOr<O>,

    /// Write it to this file, and not to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A form of a report, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatOr<O> {
    /// A form of a report.
    Report(Format),
    /// Another form.
    Other(O),
}

impl<O: ValueEnum + Send + Sync + 'static> OutputOrArgs<O> {
    /// Returns the options of a report in this form.
    #[must_use]
    pub fn with(&self, format: Format) -> OutputArgs {
        OutputArgs { format, output: self.output.clone() }
    }
}

/// Parses a form of a report, or another one.
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
    /// Returns where a report goes, as errors name it.
    #[must_use]
    pub fn place(&self) -> String {
        self.output.as_ref().map_or_else(|| "standard output".to_owned(), |path| path.display().to_string())
    }
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: as wide as the terminal, or as wide as it needs to be.
    #[default]
    Text,
    /// For issues and pull requests.
    Markdown,
    /// For programs: one object with all that is known.
    Json,
    /// For a browser: one file without scripts.
    Html,
    /// Its picture alone, where it has one.
    Svg,
}

/// A report in JSON.
#[derive(Serialize)]
struct Versioned<'r, R> {
    report_version: u32,
    #[serde(flatten)]
    report: &'r R,
}

/// Prints a report.
///
/// # Errors
/// The output's, which is [`OutputArgs::place`]; and that of a report without a picture that shall be one.
pub fn print<R: Report>(report: &R, options: &OutputArgs) -> io::Result<()> {
    match &options.output {
        None => {
            let terminal = (options.format == Format::Text && stdout_is_terminal()).then(width);
            let colour = terminal.is_some() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let mut out = stdout(if colour { Style::Coloured } else { options.format.style() });
            form(report, options.format, TextStyle { width: terminal.flatten(), colour }, &mut out)?;
            out.flush()
        }
        Some(path) => to_file(report, options.format, path),
    }
}

/// Prints a report as text among other text.
///
/// # Errors
/// The output's.
pub fn print_into(report: &impl Report, out: &mut dyn Write) -> io::Result<()> {
    render(&report.page(), Form::text(None), out)
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
    /// Returns what may stand in its output.
    fn style(self) -> Style {
        match self {
            Self::Json => Style::Json,
            _ => Style::Text,
        }
    }
}

/// Returns the letters of a line of the terminal: what COLUMNS says, else what the terminal says.
fn width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or_else(terminal_width).filter(|width| *width > 0)
}

#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    None
}
