//! `hatf paper`

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use hatf::convert::{Input, raw32};
use hatf::paper::{Measured, Options, Style, chart, measure, print};
use hatf::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Paper, PaperFormat};

pub(crate) fn run(options: &Paper) -> Result<u8> {
    let bar = progress();
    let measured: Result<Vec<Measured>> = options.traces.iter().map(|path| one(path, options, bar.as_ref())).collect();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let measured = measured?;
    if let Some(path) = &options.svg {
        let draw = || -> io::Result<()> {
            let mut out = BufWriter::new(File::create(path)?);
            chart(&measured, &mut out)?;
            out.flush()
        };
        draw().map_err(Error::system(path.display().to_string()))?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match options.format {
        PaperFormat::Text => print(&measured, Style::Text, &mut out)?,
        PaperFormat::Markdown => print(&measured, Style::Markdown, &mut out)?,
        PaperFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &measured).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(0)
}

/// Measures one trace; what raw records cannot hold of it is told.
fn one(path: &Path, options: &Paper, bar: Option<&ProgressBar>) -> Result<Measured> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("-").to_owned();
    let (raw, losses) = raw32(Input::open(path)?)?;
    let say = |line: String| match bar {
        Some(bar) => bar.println(line),
        None => eprintln!("{line}"),
    };
    for (loss, count) in losses.iter() {
        say(format!("hatf: {}: left out: {}: {count}", path.display(), loss.text()));
    }
    let what = Options { only: options.only.clone(), runs: options.times };
    measure(&name, &raw, &what, &mut |step| {
        if let Some(bar) = bar {
            bar.set_message(step.to_owned());
        }
    })
}

/// A line on a terminal that says what is being measured.
fn progress() -> Option<ProgressBar> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    Some(bar)
}
