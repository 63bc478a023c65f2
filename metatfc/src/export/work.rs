//! Writes tables to files.

use super::Args;
use crate::dtd;
use crate::failure::{Failure, Result, failed, usage};
use crate::target::Target;
use crate::{input, output};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use metatf::container::Sink;
use metatf_arrow::files::{Form, TableWriter, WriteError, bound_memory};
use metatf_arrow::{Conditions, OpenOptions, Selection, Table, open_tables};
use metatf_page::units::count;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The tables of a trace that are written.
struct Tables {
    all: metatf_arrow::Tables,
    /// Those that are wanted, with their places among all.
    wanted: Vec<(usize, Arc<dyn Table>)>,
}

/// A table that is written to a folder.
struct Part<'t> {
    place: usize,
    name: &'t str,
    selection: Selection,
    /// `None`: there has been no row yet.
    file: Option<OpenFile>,
}

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
    let all = open_tables(path, &options).map_err(|error| Failure::Failed(error.to_string()))?;
    let is_wanted = |name: &str| args.record.is_empty() || args.record.iter().any(|wanted| wanted == name);
    let wanted = all.all().into_iter().enumerate().filter(|(_, table)| is_wanted(table.name())).collect();
    Ok(Tables { all, wanted })
}

/// Fails for a table or a column that no trace has, and for a condition on a column that a table lacks.
fn check_names(traces: &[(&str, Tables)], args: &Args) -> Result<()> {
    let tables = || traces.iter().flat_map(|(_, tables)| &tables.wanted).map(|(_, table)| table);
    for name in &args.record {
        if !tables().any(|table| table.name() == name) {
            return usage(format!(
                "--record {name}: no trace has such a table; `metatfc show` tells the records of one"
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
            return usage(format!("--columns {name}: no table that is written has such a column"));
        }
    }
    Ok(())
}

/// Returns which columns of a table are read; `None`: all.
fn columns(table: &dyn Table, args: &Args) -> Option<Vec<usize>> {
    let schema = table.schema();
    let columns = || args.columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    (!args.columns.is_empty()).then(columns)
}

/// Returns which columns and rows of a table are written; `None`: it has none of the columns.
fn selection(path: &str, table: &dyn Table, args: &Args) -> Result<Option<Selection>> {
    let columns = columns(table, args);
    if columns.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    match Conditions::parse(args.filter.as_deref().unwrap_or_default(), &table.schema()) {
        Ok(conditions) => Ok(Some(conditions.select(columns.as_deref()))),
        Err(error) => usage(format!(
            "--where {error}, in the table {} of {path}; --record names the tables that have it",
            table.name()
        )),
    }
}

/// Writes one table, of several traces perhaps.
fn one_file(traces: &[(&str, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let mut file: Option<OpenFile> = None;
    for (path, Tables { wanted, .. }) in traces {
        let [(_, table)] = wanted.as_slice() else {
            return usage(format!(
                "{path}: {} tables do not go into one file: name one (--record), or a folder (-o)",
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
                file.insert(OpenFile::create(
                    &args.output,
                    form,
                    &none.map_err(|error| read_failure(&error))?.schema(),
                )?)
            }
        };
        for batch in batches {
            file.write(&batch.and_then(|batch| selection.rows(batch)).map_err(|error| read_failure(&error))?)?;
        }
    }
    file.map_or(Ok(()), |file| file.keep(&args.output, said))
}

/// Writes all tables to a folder. A table without rows has no file.
fn folder(traces: &[(&str, Tables)], form: Form, args: &Args, said: &mut String) -> Result<()> {
    let problem = |path: &Path, e: &std::io::Error| Failure::io(&path.display().to_string(), e);
    let root = &args.output;
    if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
        return failed(format!(
            "{}: there are files in it: name a new folder, so that tables do not mix",
            root.display()
        ));
    }
    for (path, Tables { all, wanted }) in traces {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(wanted.len());
        for (place, table) in wanted {
            if let Some(selection) = selection(path, &**table, args)? {
                parts.push(Part { place: *place, name: table.name(), selection, file: None });
            }
        }
        let columns = |part: &Part<'_>| (part.place, part.selection.columns().map(<[usize]>::to_vec));
        let batches = all.scan_together(&parts.iter().map(columns).collect::<Vec<_>>(), args.threads.number());
        for next in batches.map_err(|error| Failure::Failed(error.to_string()))? {
            let (part, batch) = next.map_err(|error| read_failure(&error))?;
            let Some(Part { name, selection, file, .. }) = parts.get_mut(part) else { continue };
            let batch = selection.rows(batch).map_err(|error| read_failure(&error))?;
            if batch.num_rows() == 0 {
                continue;
            }
            let file = match file {
                Some(file) => file,
                None => {
                    let target = place(root, path, traces.len() > 1, name, form);
                    let parent = target.parent().unwrap_or(root);
                    fs::create_dir_all(parent).map_err(|e| problem(parent, &e))?;
                    file.insert(OpenFile::create(&target, form, &batch.schema())?)
                }
            };
            file.write(&batch)?;
            let writers = parts.iter_mut().filter_map(|part| Some(&mut part.file.as_mut()?.writer));
            bound_memory(writers).map_err(|error| failure(&error))?;
        }
        for Part { name, file, .. } in parts {
            if let Some(file) = file {
                file.keep(&place(root, path, traces.len() > 1, name, form), said)?;
            }
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

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.batch(batch).map_err(|error| self.target.cause(failure(&error)))
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

fn read_failure(error: &ArrowError) -> Failure {
    Failure::Failed(metatf_arrow::message(error))
}

fn failure(error: &WriteError) -> Failure {
    Failure::Failed(error.to_string())
}
