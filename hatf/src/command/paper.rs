//! `hatf paper`

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use hatf::forms::{First, Input, OpenOptions, first_raw32};
use hatf::paper::{Measured, Options, Step, Style, chart, measure, print};
use hatf::{Error, Result};
use indicatif::{ProgressBar, ProgressStyle};
use metatf_cli::OutputFile;
use serde::Serialize;

use super::output::{print_json, print_text};
use super::{Paper, PaperFormat, about, print_message};

pub(crate) fn run(options: &Paper) -> Result<u8> {
    let settings = Options { only: options.only.clone(), runs: options.times, threads: options.threads };
    let peers = peers(options)?;
    let bar = progress(settings.steps() * options.traces.len() as u64);
    let measured: Result<Vec<Measured>> = options
        .traces
        .iter()
        .zip(peers)
        .map(|(path, peers)| Ok(Measured { peers, ..one(path, options.records, &settings, &bar)? }))
        .collect();
    bar.finish_and_clear();
    let measured = measured?;
    if let Some(path) = &options.svg {
        let draw = || -> io::Result<()> {
            let (file, mut out) = OutputFile::create(path)?;
            chart(&measured, &mut out)?;
            file.keep(out)
        };
        draw().map_err(Error::system(path.display().to_string()))?;
    }
    match options.format {
        PaperFormat::Text => print_text(|out| print(&measured, Style::Text, out))?,
        PaperFormat::Markdown => print_text(|out| print(&measured, Style::Markdown, out))?,
        PaperFormat::Json => print_json(Report { traces: &measured })?,
    }
    Ok(0)
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'m> {
    traces: &'m [Measured],
}

/// Other tools' files, by trace and name: of each name the first is of the first trace, and so on.
fn peers(options: &Paper) -> Result<Vec<BTreeMap<String, u64>>> {
    let mut peers = vec![BTreeMap::new(); options.traces.len()];
    for (name, path) in &options.peers {
        let Some(of) = peers.iter_mut().find(|of| !of.contains_key(name)) else {
            return Err(Error::Usage(format!("--peer {name} is there more often than there are traces")));
        };
        let length = std::fs::metadata(path).map_err(Error::system(path.display().to_string()))?.len();
        of.insert(name.clone(), length);
    }
    Ok(peers)
}

/// Measures the first records of one trace; prints what raw records cannot hold of it.
fn one(path: &Path, records: u64, settings: &Options, bar: &ProgressBar) -> Result<Measured> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("-").to_owned();
    let open = OpenOptions { form: None, note: print_message };
    let First { raw, losses, is_all } =
        first_raw32(Input::open(path)?, &open, records).map_err(|error| about(path, error))?;
    for (loss, count) in losses.iter() {
        bar.suspend(|| print_message(&format!("{}: left out: {}: {count}", path.display(), loss.text())));
    }
    let measured = measure(&name, &raw, settings, &|step| match step {
        Step::Begins(step) => bar.set_message(step.to_owned()),
        Step::Done => bar.inc(1),
    })?;
    Ok(Measured { is_all, ..measured })
}

/// Makes a bar on a terminal that shows what is being measured.
fn progress(steps: u64) -> ProgressBar {
    if !metatf_cli::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
