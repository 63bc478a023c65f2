//! One pass over traces that returns the batches of one or several tables. A thread reads the traces.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use arrow_array::RecordBatchIterator;
use arrow_schema::{ArrowError, SchemaRef};
use hatf_lab::HeapTracker;
use hatf_trace::forms::{self, OpenOptions};
use hatf_trace::pipeline::read_beside;
use metatf_arrow::{Batches, Error, Result, Scan, Table};

use crate::Names;
use crate::column::schema;
use crate::rows::{Collector, Collectors, Made, Output, Row, collector};

/// Maximum number of batches that wait for the receiver.
const WAITING: usize = 4;

/// A table of heap traces.
pub(crate) struct HeapTable {
    traces: Arc<[PathBuf]>,
    names: Arc<dyn Names>,
    options: OpenOptions,
    kind: Kind,
    schema: SchemaRef,
}

/// The kind of a table, independent of the type of its rows.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    schema: fn() -> SchemaRef,
    is_named: bool,
    collector: fn(Output<'_>) -> Box<dyn Collector + '_>,
}

impl Kind {
    /// Returns the kind of tables with these rows.
    pub(crate) const fn of<R: Row>() -> Self {
        Self { name: R::NAME, schema: || schema(R::COLUMNS), is_named: R::NAMED, collector: collector::<R> }
    }
}

impl HeapTable {
    pub(crate) fn new(kind: Kind, traces: Arc<[PathBuf]>, names: Arc<dyn Names>, options: OpenOptions) -> Self {
        Self { traces, names, options, kind, schema: (kind.schema)() }
    }

    /// Returns the requested part of the table.
    pub(crate) fn part(&self, columns: Option<&[usize]>) -> Result<Part> {
        let all = self.schema.fields();
        let columns = columns.map_or_else(|| (0..all.len()).collect(), <[usize]>::to_vec);
        let schema = self.schema.project(&columns).map_err(|error| Error::new(self.kind.name, error))?;
        Ok(Part { kind: self.kind, columns, schema: Arc::new(schema) })
    }
}

/// The part of a table to read.
pub(crate) struct Part {
    kind: Kind,
    /// Column indices.
    columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
}

/// The tables and traces to read in one pass.
pub(crate) struct Reading {
    pub(crate) traces: Arc<[PathBuf]>,
    pub(crate) names: Arc<dyn Names>,
    pub(crate) options: OpenOptions,
    pub(crate) parts: Vec<Part>,
    /// Whether another thread decodes the trace.
    pub(crate) beside: bool,
}

impl Table for HeapTable {
    fn name(&self) -> &str {
        self.kind.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let part = self.part(scan.columns.as_deref())?;
        let schema = Arc::clone(&part.schema);
        let (traces, names) = (Arc::clone(&self.traces), Arc::clone(&self.names));
        let made =
            Reading { traces, names, options: self.options, parts: vec![part], beside: scan.threads != 1 }.start()?;
        Ok(Box::new(RecordBatchIterator::new(made.map(|made| made.map(|(_, batch)| batch)), schema)))
    }
}

/// Creates an error that contains the path of the trace exactly once.
pub(crate) fn place(path: &std::path::Path, error: &hatf_trace::Error) -> Error {
    let (text, name) = (error.to_string(), path.display().to_string());
    let rest = text.strip_prefix(&name).and_then(|rest| rest.strip_prefix(": "));
    Error::new(path, rest.unwrap_or(&text))
}

impl Reading {
    /// Reads on a new thread. The iterator ends after an error.
    pub(crate) fn start(self) -> Result<impl Iterator<Item = Made> + Send + use<>> {
        if let Some(first) = self.traces.first() {
            forms::open(first, &self.options).map_err(|error| place(first, &error))?;
        }
        let (sender, batches) = sync_channel(WAITING);
        thread::Builder::new()
            .name("hatf-table".to_owned())
            .spawn(move || self.read(&sender))
            .map_err(|error| Error::new("hatf-table", format!("could not start a thread: {error}")))?;
        let mut failed = false;
        Ok(batches.into_iter().take_while(move |made| !std::mem::replace(&mut failed, made.is_err())))
    }

    /// Reads all traces and sends batches until the receiver is gone.
    fn read(&self, sender: &SyncSender<Made>) {
        for path in self.traces.iter() {
            let stopped = Cell::new(false);
            match self.read_trace(path, sender, &stopped) {
                Ok(()) => {}
                Err(_) if stopped.get() => return,
                Err(error) => {
                    let error = ArrowError::ExternalError(Box::new(place(path, &error)));
                    // The receiver may be gone already.
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
    }

    fn read_trace(&self, path: &Path, sender: &SyncSender<Made>, stopped: &Cell<bool>) -> hatf_trace::Result<()> {
        let trace = &*path.display().to_string();
        let collectors = self.parts.iter().enumerate().map(|(place, Part { kind, columns, schema })| {
            (kind.collector)(Output { place, columns, schema, trace, sender, stopped })
        });
        let mut tracker = HeapTracker::new(Collectors(collectors.collect())).with_sizes_only();
        if self.beside {
            read_beside(|feed| forms::open(path, &self.options)?.feed(feed).map(|_| ()), &mut tracker)?;
        } else {
            forms::open(path, &self.options)?.give(&mut tracker)?;
        }
        let (mut heap, Collectors(collectors)) = tracker.into_parts();
        if self.parts.iter().any(|part| part.kind.is_named) {
            self.names.name(&mut heap.stacks);
        }
        Ok(collectors.into_iter().try_for_each(|collector| collector.finish(&heap, &*self.names))?)
    }
}
