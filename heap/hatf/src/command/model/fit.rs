//! `hatf model fit`: fits a model to a trace.

use std::io;
use std::path::{Path, PathBuf};

use hatf_lab::{HeapTracker, Totals};
use hatf_research::model::{Fitter, Kind, Model, Row, Running, Words, describe};
use hatf_trace::{Error, Result};
use metatf_cli::{FormatArgs, OutputFile};
use metatf_page::{Note, Page, Value};
use serde::Serialize;

use super::{Measure, file_bytes};
use crate::command::lab::Source;
use crate::command::output::show;

/// Fit a model to a trace.
///
/// Prints the trace's row in Table 4 of the paper, the model's size as counted in Table 8, and the size of the model
/// file. A trace is read once, or twice for models of time; memory use is bounded by the live objects and the number of
/// distinct values.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf model fit perl.mtf -m mean -o perl.json
  hatf model fit perl.mtf -m time --clock bytes --buckets 1000 -o perl.json
  hatf model fit perl.mtf -m mix:size=cdf,iat=time,ht=size -o perl.json")]
pub(crate) struct Fit {
    #[command(flatten)]
    source: Source,

    /// Model to fit; `hatf model --help` lists the models.
    #[arg(short, long, value_name = "MODEL", value_parser = kind)]
    model: Kind,

    #[command(flatten)]
    measure: Measure,

    /// File to write the model to; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "model.json")]
    output: PathBuf,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Serialize)]
struct Report {
    model: Kind,
    trace: Row,
    #[serde(flatten)]
    words: Words,
    file_bytes: u64,
    #[serde(skip)]
    of: Fitted,
}

/// The trace and the model file to report on.
struct Fitted {
    name: String,
    file: String,
    totals: Totals,
    model: Model,
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let Fitted { name, file, totals, model } = &self.of;
        let mut page = Page::new(name.clone());
        totals.note(&mut page);
        describe(model, self.file_bytes, &mut page);
        page.heading(Note::new("{}: {} bytes").with([Value::text(file.clone()), Value::Count(self.file_bytes)]));
        page
    }
}

fn kind(text: &str) -> std::result::Result<Kind, String> {
    text.parse().map_err(|error: hatf_lab::Error| error.to_string())
}

pub(crate) fn run(options: &Fit) -> Result<u8> {
    let settings = options.measure.settings(vec![options.model]);
    let path = &options.source.trace;
    let mut end = None;
    if settings.needs_end() {
        options.source.reread()?;
        let mut calls = HeapTracker::new(Running::new(settings.clock));
        options.source.observe(&mut calls)?;
        end = Some(calls.observer().end()?);
    }
    let mut calls = HeapTracker::new(Fitter::new(settings, end)?);
    options.source.observe(&mut calls)?;
    let (heap, fitter) = calls.into_parts();
    let totals = heap.totals();
    let fitted = fitter.finish(&totals, file_bytes(path))?;
    let model = fitted.model(options.model);

    let name = options.output.display().to_string();
    let written = || {
        let (file, mut out) = OutputFile::create(&options.output)?;
        let bytes = model.write(&mut out).map_err(io::Error::other)?;
        file.keep(out).map(|()| bytes)
    };
    let file_bytes = written().map_err(Error::system(name.clone()))?;
    if options.output == Path::new("-") {
        return Ok(0);
    }
    let (trace, words) = (*model.row(), Words::of(&model));
    let of = Fitted { name: path.display().to_string(), file: name, totals, model };
    show(&Report { model: options.model, trace, words, file_bytes, of }, &(&options.format).into())?;
    Ok(0)
}
