//! `hatf report`

use std::io;
use std::path::Path;

use hatf::analysis::{Analysis, Report};
use hatf::record::Spooled;
use hatf::{Error, Result};
use metatf_cli::OutputFile;
use metatf_page::{Form, Report as _, render};

use super::lab::Source;
use super::output::show;
use super::{Report as Options, print_message};

pub(crate) fn run(options: &Options) -> Result<u8> {
    let report = analyse(&options.source)?;
    if let Some(path) = &options.svg {
        draw(&report, path).map_err(Error::system(path.display().to_string()))?;
    }
    show(&report, &options.output)?;
    Ok(0)
}

/// Analyses a trace.
pub(crate) fn analyse(source: &Source) -> Result<Report> {
    let mut analysis = Analysis::new();
    let read = source.give(&mut analysis);
    warn_of_spool(&source.trace);
    read?;
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

fn draw(report: &Report, path: &Path) -> io::Result<()> {
    let (file, mut out) = OutputFile::create(path)?;
    render(&report.page(), Form::Svg, &mut out)?;
    file.keep(out)
}
