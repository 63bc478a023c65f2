//! One scan of a table: a thread reads the traces, and its batches are taken one by one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use hatf_trace::forms::TraceReader;
use metatf_arrow::{Batches, Error, Result, Scan, Table};

use crate::Names;
use crate::column::{Column, batch, schema};
use crate::rows::{Opened, Row};

/// Batches that may wait to be taken.
const WAITING: usize = 4;

/// A table of rows.
pub(crate) struct HeapTable {
    traces: Arc<[PathBuf]>,
    names: Arc<dyn Names>,
    kind: Kind,
    schema: SchemaRef,
}

/// What a table is of, where the type of its rows is not known.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    schema: fn() -> SchemaRef,
    read: fn(&Reading, &SyncSender<Taken>),
}

impl Kind {
    /// The kind of tables with these rows.
    pub(crate) const fn of<R: Row>() -> Self {
        Self { name: R::NAME, schema: || schema(R::COLUMNS), read: read::<R> }
    }
}

impl HeapTable {
    pub(crate) fn new(kind: Kind, traces: Arc<[PathBuf]>, names: Arc<dyn Names>) -> Self {
        Self { traces, names, kind, schema: (kind.schema)() }
    }
}

type Taken = std::result::Result<RecordBatch, ArrowError>;

/// What a thread is to read.
struct Reading {
    traces: Arc<[PathBuf]>,
    names: Arc<dyn Names>,
    /// Places of columns.
    columns: Vec<usize>,
    schema: SchemaRef,
    beside: bool,
}

impl Table for HeapTable {
    fn name(&self) -> &str {
        self.kind.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        if let Some(first) = self.traces.first() {
            TraceReader::open(first).map_err(|error| place(first, &error))?;
        }
        let all = self.schema.fields();
        let columns = scan.columns.clone().unwrap_or_else(|| (0..all.len()).collect());
        let field = |column: &usize| {
            let none = || Error::new(self.kind.name, format!("there is no column {column}"));
            all.get(*column).map(Arc::clone).ok_or_else(none)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let reading = Reading {
            traces: Arc::clone(&self.traces),
            names: Arc::clone(&self.names),
            columns,
            schema: Arc::clone(&schema),
            beside: scan.threads != 1,
        };
        let (sender, batches) = sync_channel(WAITING);
        let read = self.kind.read;
        thread::Builder::new()
            .name("hatf-table".to_owned())
            .spawn(move || read(&reading, &sender))
            .map_err(|error| Error::new(self.kind.name, format!("no thread: {error}")))?;
        Ok(Box::new(Taking { schema, batches: Some(batches) }))
    }
}

/// An error of a trace, which names it once.
pub(crate) fn place(path: &std::path::Path, error: &hatf_trace::Error) -> Error {
    let (text, name) = (error.to_string(), path.display().to_string());
    let rest = text.strip_prefix(&name).and_then(|rest| rest.strip_prefix(": "));
    Error::new(path, rest.unwrap_or(&text))
}

/// Reads all traces, and sends batches until nobody takes them any more.
fn read<R: Row>(reading: &Reading, sender: &SyncSender<Taken>) {
    let columns: Vec<&Column<R>> = reading.columns.iter().filter_map(|column| R::COLUMNS.get(*column)).collect();
    for path in reading.traces.iter() {
        let trace = path.display().to_string();
        let mut stopped = false;
        let mut take = |rows: &[R]| {
            if rows.is_empty() {
                return Ok(());
            }
            let batch = batch(&columns, &reading.schema, rows, &trace);
            stopped = batch.is_err() | sender.send(batch).is_err();
            if stopped { Err(hatf_lab::Error::Stopped) } else { Ok(()) }
        };
        let opened = Opened { path, names: &*reading.names, beside: reading.beside };
        let ended = R::read(&opened, &mut take);
        match ended {
            Ok(()) => {}
            Err(_) if stopped => return,
            Err(error) => {
                let error = ArrowError::ExternalError(Box::new(place(path, &error)));
                // The one who took batches may have gone meanwhile.
                let _ = sender.send(Err(error));
                return;
            }
        }
    }
}

/// Takes the batches.
struct Taking {
    schema: SchemaRef,
    /// `None`: there was an error.
    batches: Option<Receiver<Taken>>,
}

impl Iterator for Taking {
    type Item = Taken;

    fn next(&mut self) -> Option<Taken> {
        let next = self.batches.as_ref()?.recv().ok();
        if !matches!(next, Some(Ok(_))) {
            self.batches = None;
        }
        next
    }
}

impl RecordBatchReader for Taking {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
