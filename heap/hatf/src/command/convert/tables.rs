//! Writes tables of heap traces to files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use clap::builder::PossibleValuesParser;
use hatf_arrow::{Names, Tables, open, origin};
use hatf_trace::stacks::Stacks;
use hatf_trace::{Error, Result};
use metatf::container::Sink;
use metatf_arrow::Together;
use metatf_arrow::files::{Database, Form, TableWriter, WriteError, bound_memory};
use metatf_cli::{OutputFile, OutputFolder, Style, stdout};
use metatf_page::units::count;

use super::{Convert, DATABASE};
use crate::command::symbols::{Symbols, print_problems};
use crate::command::{cores, open_options, print_message};

/// Options for tables.
#[derive(clap::Args)]
#[command(next_help_heading = "Tables")]
pub(super) struct TableArgs {
    /// Write only these tables.
    #[arg(long, value_name = "TABLE,..", value_delimiter = ',', value_parser = names())]
    pub(super) tables: Vec<String>,

    /// Write a separate file for each trace and table, by the build ID of the program and the day of the recording.
    #[arg(long)]
    pub(super) partition: bool,

    /// Look up functions that the trace does not name, using debug information on this machine.
    #[arg(long)]
    pub(super) resolve: bool,
}

/// Returns a parser for the name of a table.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Tables::names())
}

/// Returns whether this build can write a format of tables.
pub(super) fn is_built(form: &str) -> bool {
    form == DATABASE || Form::named(form).is_some()
}

/// A resolver that looks up function names in the same way as `hatf sites`.
struct Resolved(Symbols);

impl Names for Resolved {
    fn name(&self, stacks: &mut Stacks) {
        match self.0.problems(stacks, 0, None) {
            Ok(problems) => print_problems(&problems),
            Err(error) => print_message(&error.to_string()),
        }
    }
}

pub(super) fn run(options: &Convert, form: &str, traces: &[PathBuf], root: &Path) -> Result<u8> {
    let TableArgs { tables: wanted, partition, resolve } = &options.tables;
    if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        let text = format!("{}: the directory is not empty: choose an empty or a new directory", root.display());
        return Err(Error::Trace(text.into()));
    }
    let names: Arc<dyn Names> =
        if *resolve { Arc::new(Resolved(options.profiles.symbols.clone())) } else { Arc::new(()) };
    let is_wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == *name);
    let wanted: Vec<&str> = Tables::names().filter(is_wanted).collect();
    let opened = |traces: &[PathBuf]| {
        let tables = open(traces).map_err(failed)?.with_names(Arc::clone(&names));
        Ok::<_, Error>(tables.with_options(open_options(None, |_| ())))
    };
    let Some(form) = Form::named(form) else {
        return print_rows(&wanted, database(&opened(traces)?, &wanted, root)?);
    };
    let partitions = if *partition { partitions(traces)? } else { vec![(traces.to_vec(), PathBuf::new())] };
    let mut rows = vec![0; wanted.len()];
    for (traces, place) in &partitions {
        let tables = opened(traces)?;
        let folder = OutputFolder::create(root).map_err(Error::system(root.display().to_string()))?;
        let create = |name: &str, schema: &SchemaRef| {
            let path = if *partition { Path::new(name).join(place) } else { PathBuf::from(name) };
            OpenFile::create(&folder, &path, form, schema)
        };
        let files = wanted.iter().filter_map(|name| Some((name, tables.get(name)?.schema())));
        let files = files.map(|(name, schema)| create(name, &schema)).collect::<Result<Vec<_>>>()?;
        let written = write(tables.scan_together(&wanted, cores()).map_err(failed)?, files)?;
        rows.iter_mut().zip(written).for_each(|(rows, written)| *rows += written);
    }
    print_rows(&wanted, rows)
}

fn print_rows(tables: &[&str], rows: Vec<u64>) -> Result<u8> {
    let mut out = stdout(Style::Text);
    for (name, rows) in tables.iter().zip(rows) {
        writeln!(out, "{name}: {} rows", count(rows))?;
    }
    out.flush()?;
    Ok(0)
}

fn failed(error: metatf_arrow::Error) -> Error {
    Error::Trace(error.into())
}

/// Returns the traces of each partition and the path of the partition's file, relative to the table's directory and
/// without an extension.
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

/// The file of a table being written.
struct OpenFile {
    path: PathBuf,
    output: OutputFile,
    writer: TableWriter<Box<dyn Sink + Send>>,
}

impl OpenFile {
    /// Creates a file at a path below a directory, adding the format as the file extension.
    fn create(folder: &OutputFolder, below: &Path, form: Form, schema: &SchemaRef) -> Result<Self> {
        // Append the extension instead of replacing one, because the name of a trace may contain a dot.
        let mut name = below.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(form.name());
        let path = folder.path().join(below).with_file_name(&name);
        let parents = below.parent().into_iter().flat_map(Path::iter);
        let opened = folder.folders(parents).and_then(|folder| folder.file(&name));
        let (output, sink) = opened.map_err(Error::system(path.display().to_string()))?;
        match TableWriter::new(form, schema, sink) {
            Ok(writer) => Ok(Self { path, output, writer }),
            Err(error) => Err(cause(&path, &output, error)),
        }
    }

    /// Keeps the file and returns its number of rows.
    fn keep(self) -> Result<u64> {
        let Self { path, output, writer } = self;
        let (sink, rows) = writer.finish().map_err(|error| cause(&path, &output, error))?;
        output.keep(sink).map_err(Error::system(path.display().to_string()))?;
        Ok(rows)
    }
}

/// Returns the reason why a file was not written: the output's own error if there is one, and otherwise the writer's
/// error.
fn cause(path: &Path, output: &OutputFile, error: WriteError) -> Error {
    match (output.error(), error) {
        (Some(error), _) | (None, WriteError::Output(error)) => Error::system(path.display().to_string())(error),
        (None, error @ WriteError::Table(_)) => Error::Trace(error.into()),
    }
}

/// Writes each table to its file and returns the number of rows per table.
fn write(batches: Together, mut files: Vec<OpenFile>) -> Result<Vec<u64>> {
    for next in batches {
        let (place, batch) = next.map_err(|error| Error::Trace(metatf_arrow::message(&error).into()))?;
        if let Some(OpenFile { path, output, writer }) = files.get_mut(place) {
            writer.batch(&batch).map_err(|error| cause(path, output, error))?;
        }
        if let Err(error) = bound_memory(files.iter_mut().map(|file| &mut file.writer)) {
            return Err(match files.iter().find(|file| file.output.error().is_some()) {
                Some(OpenFile { path, output, .. }) => cause(path, output, error),
                None => Error::Trace(error.into()),
            });
        }
    }
    files.into_iter().map(OpenFile::keep).collect()
}

/// Writes tables to a database and returns the number of rows per table.
fn database(tables: &Tables, wanted: &[&str], path: &Path) -> Result<Vec<u64>> {
    let (output, mut sink) = OutputFile::create(path).map_err(Error::system(path.display().to_string()))?;
    let wrong = |error| cause(path, &output, error);
    let mut database = Database::create_in(&output.folder()).map_err(wrong)?;
    for (name, table) in wanted.iter().filter_map(|name| Some((name, tables.get(name)?))) {
        database.table(name, &table.schema(), None).map_err(wrong)?;
    }
    for next in tables.scan_together(wanted, cores()).map_err(failed)? {
        let (place, batch) = next.map_err(|error| Error::Trace(metatf_arrow::message(&error).into()))?;
        if let Some(name) = wanted.get(place) {
            database.batch(name, None, &batch).map_err(wrong)?;
        }
    }
    let rows = database.finish(&mut sink).map_err(wrong)?;
    output.keep(sink).map_err(Error::system(path.display().to_string()))?;
    Ok(wanted.iter().map(|name| rows.get(*name).copied().unwrap_or(0)).collect())
}
