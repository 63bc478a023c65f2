//! Writes tables to files.

use super::Args;
use crate::dtd;
use crate::failure::{Failure, Result, failed, usage};
use crate::target::Target;
use crate::{input, output};
use metatf::container::Sink;
use metatf_arrow::files::{Form, TableWriter, WriteError};
use metatf_arrow::{OpenOptions, Scan, Table, open};
use metatf_page::units::count;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Tables = Vec<Arc<dyn Table>>;

/// A file that is being written.
struct OpenFile {
    target: Target,
    writer: TableWriter<Box<dyn Sink + Send>>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let form = form(args)?;
    let traces = args.traces.iter().map(|path| Ok((path.as_str(), tables(path, args)?))).collect::<Result<Vec<_>>>()?;
    check_names(&traces, args)?;
    let mut said = String::new();
    if Form::named(&extension(&args.output)).is_some() {
        one_file(&traces, form, args, &mut said)?;
    } else {
        folder(&traces, form, args, &mut said)?;
    }
    output::print(&said)
}

/// Returns what tables are written as.
fn form(args: &Args) -> Result<Form> {
    let named = args.to.as_deref().map_or_else(|| Form::named(&extension(&args.output)), Form::named);
    let Some(form) = named else {
        return usage("say what tables are written as: --to parquet, --to arrow or --to csv");
    };
    Ok(form)
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the tables of a trace that were asked for.
fn tables(path: &str, args: &Args) -> Result<Tables> {
    if path == "-" {
        return usage("tables are made of files, which are read once for each of them: standard input cannot be");
    }
    let named = args.dtd.force_dtd.as_ref().or(args.dtd.dtd.as_ref());
    let unmapped = !metatf_cli::is_mapped(Path::new(path));
    let mut options = OpenOptions { stored: args.stored, unmapped, ..OpenOptions::default() };
    if dtd::is_trace(path) {
        let reader = input::trace(path, false)?;
        options.dtd = Some(dtd::find(&reader, path, &args.dtd, false)?);
        options.force_dtd = true;
    } else if let Some(named) = named {
        options.dtd = Some(metatf::dynamic::Schema::new(dtd::load(named)?));
    }
    let tables = open(path, &options).map_err(|error| Failure::Failed(error.to_string()))?;
    let wanted = |table: &Arc<dyn Table>| args.record.is_empty() || args.record.iter().any(|name| name == table.name());
    Ok(tables.into_iter().filter(wanted).collect())
}

/// Fails for a table or a column that no trace has.
fn check_names(traces: &[(&str, Tables)], args: &Args) -> Result<()> {
    let tables = || traces.iter().flat_map(|(_, tables)| tables);
    for name in &args.record {
        if !tables().any(|table| table.name() == name) {
            return usage(format!(
                "--record {name}: no trace has such a table; `metatfc show` tells the records of one"
            ));
        }
    }
    for name in &args.columns {
        if !tables().any(|table| table.schema().index_of(name).is_ok()) {
            return usage(format!("--columns {name}: no table that is written has such a column"));
        }
    }
    Ok(())
}

/// Returns what is read of a table.
fn scan(table: &dyn Table, args: &Args) -> Scan {
    let schema = table.schema();
    let columns = args.columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    let columns = (!args.columns.is_empty()).then_some(columns);
    Scan { columns, threads: args.threads.number(), ..Scan::default() }
}

/// Writes one table, of several traces perhaps.
fn one_file(traces: &[(&str, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let mut file: Option<OpenFile> = None;
    for (path, tables) in traces {
        let [table] = tables.as_slice() else {
            return usage(format!(
                "{path}: {} tables do not go into one file: name one (--record), or a folder (-o)",
                tables.len()
            ));
        };
        let batches = table.scan(&scan(&**table, args)).map_err(|error| Failure::Failed(error.to_string()))?;
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(OpenFile::create(&args.output, form, &batches.schema())?),
        };
        file.write(batches)?;
    }
    file.map_or(Ok(()), |file| file.keep(&args.output, said))
}

/// Writes all tables to a folder.
fn folder(traces: &[(&str, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let problem = |path: &Path, e: &std::io::Error| Failure::io(&path.display().to_string(), e);
    let root = &args.output;
    if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        return failed(format!(
            "{}: there are files in it: name a new folder, so that tables do not mix",
            root.display()
        ));
    }
    for (path, tables) in traces {
        for table in tables {
            let mut batches = table.scan(&scan(&**table, args)).map_err(|error| Failure::Failed(error.to_string()))?;
            let schema = batches.schema();
            if schema.fields().is_empty() {
                continue;
            }
            // A table without rows has no file.
            let Some(first) = batches.next() else { continue };
            let first = first.map_err(|error| Failure::Failed(metatf_arrow::message(&error)))?;
            let file = place(root, path, traces.len() > 1, table.name(), form);
            let parent = file.parent().unwrap_or(root);
            fs::create_dir_all(parent).map_err(|e| problem(parent, &e))?;
            let mut writing = OpenFile::create(&file, form, &schema)?;
            writing.writer.batch(&first).map_err(|error| writing.target.cause(failure(&error)))?;
            writing.write(batches)?;
            writing.keep(&file, said)?;
        }
    }
    Ok(())
}

/// Returns where a table goes.
fn place(root: &Path, trace: &str, several: bool, table: &str, form: Form) -> PathBuf {
    let file = format!("{table}.{}", form.name());
    if !several {
        return root.join(file);
    }
    let stem = Path::new(trace).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    root.join(table).join(format!("trace={stem}")).join(file)
}

impl OpenFile {
    fn create(path: &Path, form: Form, schema: &arrow_schema::SchemaRef) -> Result<Self> {
        let (target, sink) = Target::create(path)?;
        let writer = TableWriter::new(form, schema, sink).map_err(|error| target.cause(failure(&error)))?;
        Ok(Self { target, writer })
    }

    fn write(&mut self, batches: metatf_arrow::Batches) -> Result<()> {
        self.writer.write(batches).map_err(|error| self.target.cause(failure(&error)))
    }

    fn keep(self, path: &Path, said: &mut String) -> Result<()> {
        let Self { target, writer } = self;
        let (sink, rows) = writer.finish().map_err(|error| target.cause(failure(&error)))?;
        target.keep(sink)?;
        // Writing to a string does not fail.
        let _ = writeln!(said, "{}: {} rows", path.display(), count(rows));
        Ok(())
    }
}

fn failure(error: &WriteError) -> Failure {
    Failure::Failed(error.to_string())
}
