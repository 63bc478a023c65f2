//! Writes tables to files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hatf::calls::{Folding, Places};
use hatf::stacks::Stacks;
use hatf::{Error, Result};
use hatf_arrow::{Names, Tables, open, origin};
use metatf_arrow::files::{Form, TableWriter};
use metatf_arrow::{Scan, Table};
use metatf_cli::{OutputFile, Style, stdout};
use metatf_page::units::count;

use super::Export;
use crate::command::print_message;
use crate::command::symbols::Symbols;

/// Names functions as `hatf sites` does.
struct Resolved(Symbols);

impl Names for Resolved {
    fn name(&self, stacks: &mut Stacks) {
        match self.0.problems(stacks, 0, None) {
            Ok(problems) => super::super::symbols::print_problems(&problems),
            Err(error) => print_message(&error.to_string()),
        }
    }

    fn own_functions(&self, stacks: &Stacks) -> Vec<String> {
        Places::own_functions(stacks, &Folding::default())
    }
}

pub(super) fn run(options: &Export) -> Result<u8> {
    let form = Form::named(&options.to).ok_or_else(|| Error::Usage(format!("--to {}: no such form", options.to)))?;
    let wrong = options.tables.iter().find(|wanted| !Tables::names().any(|name| name == *wanted));
    if let Some(wrong) = wrong {
        let names: Vec<_> = Tables::names().collect();
        return Err(Error::Usage(format!("--tables {wrong}: no such table; there are {}", names.join(", "))));
    }
    let root = &options.output;
    if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        let text = format!("{}: there are files in it: name a new folder, so that tables do not mix", root.display());
        return Err(Error::Trace(text.into()));
    }
    let traces = traces(&options.traces)?;
    let names: Arc<dyn Names> =
        if options.resolve { Arc::new(Resolved(options.symbols.clone())) } else { Arc::new(()) };
    let all = [(traces.clone(), PathBuf::new())];
    let partitions = if options.partition { partitions(&traces)? } else { all.into() };
    for name in &options.tables {
        let mut rows = 0;
        for (traces, place) in &partitions {
            let tables = open(traces).map_err(failed)?.with_names(Arc::clone(&names));
            let Some(table) = tables.get(name) else { continue };
            let path = if options.partition { root.join(name).join(place) } else { root.join(name) };
            // The name of a trace may have a dot.
            let path = PathBuf::from(format!("{}.{}", path.display(), form.name()));
            rows += write(&*table, &path, form, options.threads.unwrap_or(0))?;
        }
        writeln!(stdout(Style::Text), "{name}: {} rows", count(rows))?;
    }
    Ok(0)
}

fn failed(error: metatf_arrow::Error) -> Error {
    Error::Trace(error.into())
}

/// Returns the traces, those of folders by their names.
fn traces(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut traces = Vec::new();
    for path in paths {
        if !path.is_dir() {
            traces.push(path.clone());
            continue;
        }
        let problem = || Error::system(path.display().to_string());
        let entries = fs::read_dir(path).map_err(problem())?;
        let mut found = entries.map(|entry| Ok(entry.map_err(problem())?.path())).collect::<Result<Vec<_>>>()?;
        found.retain(|path| path.extension().is_some_and(|extension| extension == "mtf"));
        found.sort();
        if found.is_empty() {
            return Err(Error::Trace(format!("{}: no traces (*.mtf) are in it", path.display()).into()));
        }
        traces.extend(found);
    }
    Ok(traces)
}

/// Returns where the tables of each trace go below the folder of a table, without the form.
fn partitions(traces: &[PathBuf]) -> Result<Vec<(Vec<PathBuf>, PathBuf)>> {
    let mut taken = BTreeSet::new();
    let mut place = |trace: &PathBuf| {
        let origin = origin(trace).map_err(failed)?;
        let known = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !text.is_empty();
        let part = |text: &str| if known(text) { text.to_owned() } else { "unknown".to_owned() };
        let build = part(&origin.build_id);
        let day = part(origin.start.get(..10).unwrap_or_default());
        let folder = Path::new(&format!("build={build}")).join(format!("day={day}"));
        let stem = trace.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut name = stem.clone();
        for number in 2_u64.. {
            if taken.insert(folder.join(&name)) {
                break;
            }
            name = format!("{stem}-{number}");
        }
        Ok((vec![trace.clone()], folder.join(name)))
    };
    traces.iter().map(&mut place).collect()
}

/// Writes a table; returns how many rows it has.
fn write(table: &dyn Table, path: &Path, form: Form, threads: usize) -> Result<u64> {
    let name = path.display().to_string();
    let problem = || Error::system(name.clone());
    let batches = table.scan(&Scan { threads, ..Scan::default() }).map_err(failed)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::system(folder.display().to_string()))?;
    }
    let (output, sink) = OutputFile::create(path).map_err(problem())?;
    let written = TableWriter::new(form, &batches.schema(), sink).and_then(|mut writer| {
        writer.write(batches)?;
        writer.finish()
    });
    // Where the output failed, that is the cause, whatever became of it on the way.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let (sink, rows) = written.map_err(|error| Error::Trace(error.into()))?;
    output.keep(sink).map_err(problem())?;
    Ok(rows)
}
