//! Writes tables to files.

use super::{Args, extension};
use crate::dtd;
use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::target::Target;
use crate::{input, output};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use metatf::container::Sink;
use metatf_arrow::files::{Database, Form, TableWriter, WriteError, bound_memory};
use metatf_arrow::{Conditions, OpenOptions, Selection, Table, Together, open_tables};
use metatf_cli::OutputFolder;
use metatf_page::units::count;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The tables of a trace.
struct Tables {
    all: metatf_arrow::Tables,
    /// The tables to write, with their indices among all tables.
    wanted: Vec<(usize, Arc<dyn Table>)>,
}

/// A table to write.
struct Part<'t> {
    name: &'t str,
    selection: Selection,
}

/// The name of a format that stores all tables in one file.
const SQLITE: &str = "sqlite";

/// A file being written.
struct OpenFile {
    target: Target,
    writer: TableWriter<Box<dyn Sink + Send>>,
}

/// Returns the names of the formats supported by this build.
pub(super) fn forms() -> impl Iterator<Item = &'static str> {
    Form::ALL.iter().map(|form| form.name()).chain([SQLITE])
}

pub(super) fn run(args: &Args) -> Result<()> {
    let is_database = args.to.as_deref() == Some(SQLITE) || args.to.is_none() && extension(args.output()) == SQLITE;
    let form = if is_database { None } else { Some(form(args)?) };
    if args.no_formulas && form != Some(Form::Csv) {
        return usage("--no-formulas requires CSV output");
    }
    let traces = args.inputs().iter().map(|path| Ok((&**path, tables(path, args)?))).collect::<Result<Vec<_>>>()?;
    check_names(&traces, args)?;
    let mut said = String::new();
    match form {
        None => database(&traces, args, &mut said)?,
        Some(form) if is_one_file(args.output()) => one_file(&traces, form, args, &mut said)?,
        Some(form) => folder(&traces, form, args, &mut said)?,
    }
    for (path, tables) in &traces {
        let dangling = tables.all.dangling();
        if dangling > 0 {
            print_message(&format!(
                "{}: warning: {} to missing elements; the values are null, and `metatfc verify` reports the first one",
                path.display(),
                output::count(dangling, "reference"),
            ));
        }
    }
    if input::is_standard(args.output()) { Ok(()) } else { output::print(&said) }
}

/// Returns whether an output contains one table: standard output, or a file with the extension of a table.
fn is_one_file(output: &Path) -> bool {
    input::is_standard(output) || Form::named(&extension(output)).is_some()
}

/// Returns the format of the tables.
fn form(args: &Args) -> Result<Form> {
    let Some(form) = args.to.as_deref().map_or_else(|| Form::named(&extension(args.output())), Form::named) else {
        return usage("--to: this build does not support the format");
    };
    Ok(form)
}

/// Returns the selected tables of a trace.
fn tables(path: &Path, args: &Args) -> Result<Tables> {
    if input::is_standard(path) {
        return usage("a trace is read twice for tables: save standard input to a file first");
    }
    let named = args.dtd.force_dtd.as_ref().or(args.dtd.dtd.as_ref());
    let mapped = metatf_cli::is_mapped(path);
    let mut options = OpenOptions { stored: args.stored, strict: args.strict, mapped, ..OpenOptions::default() };
    if dtd::is_trace(path) {
        let reader = input::trace(path, false)?;
        options.dtd = Some(dtd::find(&reader, &input::name(path), &args.dtd, false)?);
        options.force_dtd = true;
    } else if let Some(named) = named {
        options.dtd = Some(metatf::dynamic::Schema::new(dtd::load(named)?));
    }
    let all = open_tables(path, &options).map_err(|error| Failure::Failed(error.to_string()))?;
    // Spans and events repeat the content of the records, so they must be requested.
    let is_wanted = |place: usize, name: &str| match args.record.as_slice() {
        [] => place < all.of_records(),
        names => names.iter().any(|wanted| wanted == name),
    };
    let wanted = all.all().into_iter().enumerate().filter(|(place, table)| is_wanted(*place, table.name())).collect();
    Ok(Tables { all, wanted })
}

/// Fails if no trace contains a requested table or column, or if a table lacks a column used in the condition.
fn check_names(traces: &[(&Path, Tables)], args: &Args) -> Result<()> {
    let tables = || traces.iter().flat_map(|(_, tables)| &tables.wanted).map(|(_, table)| table);
    for name in &args.record {
        if !tables().any(|table| table.name() == name) {
            return usage(format!(
                "--record {name}: no trace contains this table; to list the records of a trace, use `metatfc show`"
            ));
        }
    }
    for (path, Tables { wanted, .. }) in traces {
        for (_, table) in wanted {
            selection(path, &**table, args)?;
        }
    }
    for name in &args.columns {
        if !tables().any(|table| table.schema().index_of(name).is_ok()) {
            return usage(format!("--columns {name}: no selected table contains this column"));
        }
    }
    Ok(())
}

/// Returns the columns to read from a table, or `None` for all columns.
fn columns(table: &dyn Table, args: &Args) -> Option<Vec<usize>> {
    let schema = table.schema();
    let columns = || args.columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    (!args.columns.is_empty()).then(columns)
}

/// Returns the columns and rows to write from a table, or `None` if the table contains none of the requested columns.
fn selection(path: &Path, table: &dyn Table, args: &Args) -> Result<Option<Selection>> {
    let columns = columns(table, args);
    if columns.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    let mut conditions = Conditions::default();
    if let Some(text) = &args.condition
        && let Err(error) = conditions.add(table, text)
    {
        let (name, path) = (table.name(), path.display());
        return usage(format!("--where: {error}\nin the table {name} of {path}; use --record to select tables"));
    }
    Ok(Some(conditions.select(columns.as_deref())))
}

/// Writes one table to one file, from one or more traces.
fn one_file(traces: &[(&Path, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let mut file: Option<OpenFile> = None;
    for (path, Tables { wanted, .. }) in traces {
        let [(_, table)] = wanted.as_slice() else {
            return usage(format!(
                "{}: cannot write {} tables to one file: select one with --record, or name a directory as the output and its format with --to",
                path.display(),
                wanted.len()
            ));
        };
        let Some(selection) = selection(path, &**table, args)? else { continue };
        let batches = table.scan(&selection.scan(None, args.threads.number()));
        let batches = batches.map_err(|error| Failure::Failed(error.to_string()))?;
        let file = match &mut file {
            Some(file) => file,
            None => {
                let none = selection.rows(RecordBatch::new_empty(batches.schema()));
                let none = none.map_err(|error| read_failure(&error))?;
                file.insert(OpenFile::new(Target::create(args.output())?, form, &none.schema(), args)?)
            }
        };
        for batch in batches {
            file.write(&batch.and_then(|batch| selection.rows(batch)).map_err(|error| read_failure(&error))?)?;
        }
    }
    file.map_or(Ok(()), |file| file.keep(said))
}

/// Writes all tables to a directory. No file is written for an empty table.
fn folder(traces: &[(&Path, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let problem = |path: &Path, e: &std::io::Error| Failure::io(&path.display().to_string(), e);
    let root = args.output();
    if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        return failed(format!(
            "{}: the directory is not empty: choose a new one, so that tables are not mixed",
            root.display()
        ));
    }
    let mut folder = None;
    for (path, tables) in traces {
        let (parts, batches) = tables.read(path, args)?;
        let mut files: Vec<Option<OpenFile>> = parts.iter().map(|_| None).collect();
        for next in batches {
            let (place, batch) = next.map_err(|error| read_failure(&error))?;
            let (Some(slot), Some(Part { name, selection })) = (files.get_mut(place), parts.get(place)) else {
                continue;
            };
            let batch = selection.rows(batch).map_err(|error| read_failure(&error))?;
            if batch.num_rows() == 0 {
                continue;
            }
            let file = match slot {
                Some(file) => file,
                None => {
                    let folder = match &mut folder {
                        Some(folder) => folder,
                        None => folder.insert(OutputFolder::create(root).map_err(|e| problem(root, &e))?),
                    };
                    // With several traces, the table's directory contains a directory for each trace.
                    let names = [(*name).to_owned(), format!("trace={}", trace_name(path))];
                    let names = names.into_iter().filter(|_| traces.len() > 1);
                    let part = folder.folders(names).map_err(|e| problem(&root.join(name), &e))?;
                    let target = Target::create_in(&part, &format!("{name}.{}", form.name()))?;
                    slot.insert(OpenFile::new(target, form, &batch.schema(), args)?)
                }
            };
            file.write(&batch)?;
            if let Err(error) = bound_memory(files.iter_mut().flatten().map(|file| &mut file.writer)) {
                let failure = failure(&root.display().to_string(), &error);
                return Err(files.iter().flatten().fold(failure, |failure, file| file.target.cause(failure)));
            }
        }
        files.into_iter().flatten().try_for_each(|file| file.keep(said))?;
    }
    Ok(())
}

impl Tables {
    /// Reads the selected tables. Returns the parts to write, in the order of the part numbers in the batches.
    fn read(&self, path: &Path, args: &Args) -> Result<(Vec<Part<'_>>, Together)> {
        let (mut parts, mut scans) = (Vec::with_capacity(self.wanted.len()), Vec::with_capacity(self.wanted.len()));
        for (place, table) in &self.wanted {
            if let Some(selection) = selection(path, &**table, args)? {
                scans.push((*place, selection.columns().map(<[usize]>::to_vec)));
                parts.push(Part { name: table.name(), selection });
            }
        }
        let batches = self.all.scan_together(&scans, args.threads.number());
        Ok((parts, batches.map_err(|error| Failure::Failed(error.to_string()))?))
    }
}

/// Writes all tables to a database. With several traces, a column contains the name of the trace. Empty tables are
/// omitted.
fn database(traces: &[(&Path, Tables)], args: &Args, said: &mut String) -> Result<()> {
    let (target, mut sink) = Target::create(args.output())?;
    let write = |sink: &mut Box<dyn Sink + Send>| {
        let failure = |error: &WriteError| failure(target.name(), error);
        let mut database = Database::create_in(&target.folder()).map_err(|error| failure(&error))?;
        for (path, tables) in traces {
            let lead = (traces.len() > 1).then_some("trace");
            let trace = lead.map(|_| trace_name(path));
            let (parts, batches) = tables.read(path, args)?;
            for next in batches {
                let (place, batch) = next.map_err(|error| read_failure(&error))?;
                let Some(Part { name, selection }) = parts.get(place) else { continue };
                let batch = selection.rows(batch).map_err(|error| read_failure(&error))?;
                if batch.num_rows() > 0 {
                    let written = database.table(name, &batch.schema(), lead);
                    written.and_then(|()| database.batch(name, trace.as_deref(), &batch)).map_err(|e| failure(&e))?;
                }
            }
        }
        database.finish(sink).map_err(|error| failure(&error))
    };
    let rows = write(&mut sink).map_err(|error| target.cause(error))?;
    target.keep(sink)?;
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort();
    for (name, rows) in rows {
        // Writing to a string does not fail.
        let _ = writeln!(said, "{}: {name}: {} rows", args.output().display(), count(rows));
    }
    Ok(())
}

/// Returns the name that distinguishes a trace from other traces.
fn trace_name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

impl OpenFile {
    fn new(
        (target, sink): (Target, Box<dyn Sink + Send>),
        form: Form,
        schema: &arrow_schema::SchemaRef,
        args: &Args,
    ) -> Result<Self> {
        let writer = TableWriter::new(form, schema, sink);
        let writer = writer.map_err(|error| target.cause(failure(target.name(), &error)))?;
        Ok(Self { target, writer: if args.no_formulas { writer.without_formulas() } else { writer } })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.batch(batch).map_err(|error| self.target.cause(failure(self.target.name(), &error)))
    }

    fn keep(self, said: &mut String) -> Result<()> {
        let Self { target, writer } = self;
        let (sink, rows) = writer.finish().map_err(|error| target.cause(failure(target.name(), &error)))?;
        let line = format!("{}: {} rows\n", target.name(), count(rows));
        target.keep(sink)?;
        said.push_str(&line);
        Ok(())
    }
}

fn read_failure(error: &ArrowError) -> Failure {
    Failure::Failed(metatf_arrow::message(error))
}

/// Converts an error that occurred while writing the file with this name.
fn failure(name: &str, error: &WriteError) -> Failure {
    match error {
        WriteError::Table(message) => Failure::Failed(message.clone()),
        WriteError::Output(error) => Failure::io(name, error),
    }
}
