//! `hatf report`

use std::io;
use std::path::Path;

use hatf::analysis::{Analysis, Report};
use hatf::pipeline::read_beside;
use hatf::record::Spooled;
use hatf::trace::TraceReader;
use hatf::{Error, Result};
use metatf_cli::OutputFile;
use metatf_page::{Form, Report as _, render};

use super::output::show;
use super::{Report as Options, about, print_message};

pub(crate) fn run(options: &Options) -> Result<u8> {
    let report = analyse(&options.trace, options.threads)?;
    if let Some(path) = &options.svg {
        draw(&report, path).map_err(Error::system(path.display().to_string()))?;
    }
    show(&report, &options.output)?;
    Ok(0)
}

/// Analyses a trace, which is read in a thread of its own if there may be two.
pub(crate) fn analyse(path: &Path, threads: Option<usize>) -> Result<Report> {
    let mut analysis = Analysis::new();
    let cores = super::cores();
    let read = match threads.unwrap_or(cores) {
        1 => open(path).and_then(|mut trace| trace.give(&mut analysis)),
        _ => read_beside(|feed| open(path)?.feed(feed), &mut analysis),
    };
    warn_of_spool(path);
    read.map_err(|error| about(path, error))?;
    Ok(analysis.finish())
}

/// Says where the rest of a trace is whose recording has not ended, or was cut off.
fn warn_of_spool(path: &Path) {
    if path == Path::new("-") || !path.is_file() {
        return;
    }
    if let Some(spool) = Spooled::of_trace(path) {
        let (path, spool) = (path.display(), spool.display());
        print_message(&format!(
            "{path}: unfinished: the rest of it is in {spool}, of which `hatf recover {path}` makes the whole trace"
        ));
    }
}

/// Opens a trace, and warns of what it and this version of its DTD do not share.
pub(crate) fn open(path: &Path) -> Result<TraceReader<'static>> {
    let trace = TraceReader::open(path)?;
    trace.warnings(&path.display().to_string()).iter().for_each(|warning| print_message(warning));
    Ok(trace)
}

fn draw(report: &Report, path: &Path) -> io::Result<()> {
    let (file, mut out) = OutputFile::create(path)?;
    render(&report.page(), Form::Svg, &mut out)?;
    file.keep(out)
}
