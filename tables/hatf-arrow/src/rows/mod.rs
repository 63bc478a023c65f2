//! The rows of each table, and their collection from a trace.

mod lifetimes;
mod marks;
mod objects;
mod processes;
mod sites;
mod stacks;
mod timeline;
mod traces;

use std::cell::Cell;
use std::sync::mpsc::SyncSender;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use hatf_lab::{Heap, ObjectEvent, Observer, Result};
use hatf_trace::Event;
use hatf_trace::event::UserMetadata;

pub(crate) use lifetimes::LifetimeRow;
pub(crate) use marks::MarkRow;
pub(crate) use objects::TableObject;
pub(crate) use processes::ProcessRow;
pub(crate) use sites::SiteRow;
pub(crate) use stacks::StackRow;
pub(crate) use timeline::TimelineRow;
pub(crate) use traces::TraceRow;

use crate::Names;
use crate::column::{Column, batch};

/// A type of rows.
pub(crate) trait Row: Sized + Send + 'static {
    /// The name of the table.
    const NAME: &'static str;
    const COLUMNS: &'static [Column<Self>];
    /// Whether the rows contain function names.
    const NAMED: bool = false;

    /// Starts collecting rows from a trace.
    fn collector(take: Take<'_, Self>) -> Box<dyn Collector + '_>;
}

/// Receives rows in batches. It is not called again after it has returned an error.
pub(crate) type Take<'t, R> = Box<dyn FnMut(&[R]) -> Result<()> + 't>;

/// Collects rows while the trace is replayed on the heap.
pub(crate) trait Collector: Observer {
    /// Emits the remaining rows at the end of the trace.
    ///
    /// # Errors
    /// Returns an error if the receiver of the rows failed.
    fn finish(self: Box<Self>, heap: &Heap, names: &dyn Names) -> Result<()>;
}

/// An observer whose rows are built at the end of the trace.
pub(crate) struct AtEnd<O, F> {
    pub(crate) observer: O,
    pub(crate) finish: F,
}

impl<O: Observer, F> Observer for AtEnd<O, F> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.observer.event(event)
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        self.observer.record(record, heap)
    }

    fn sampled(&mut self, mean: u64) {
        self.observer.sampled(mean);
    }

    fn comment(&mut self, text: &str) {
        self.observer.comment(text);
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.observer.user_metadata(user_metadata);
    }
}

impl<O: Observer, F: FnOnce(O, &Heap, &dyn Names) -> Result<()>> Collector for AtEnd<O, F> {
    fn finish(self: Box<Self>, heap: &Heap, names: &dyn Names) -> Result<()> {
        (self.finish)(self.observer, heap, names)
    }
}

/// Several collectors that share a pass. The dynamic calls to seven collectors cost less than a second pass.
pub(crate) struct Collectors<'t>(pub(crate) Vec<Box<dyn Collector + 't>>);

impl Observer for Collectors<'_> {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.0.iter_mut().try_for_each(|collector| collector.event(event))
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        self.0.iter_mut().try_for_each(|collector| collector.record(record, heap))
    }

    fn sampled(&mut self, mean: u64) {
        self.0.iter_mut().for_each(|collector| collector.sampled(mean));
    }

    fn comment(&mut self, text: &str) {
        self.0.iter_mut().for_each(|collector| collector.comment(text));
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.0.iter_mut().for_each(|collector| collector.user_metadata(user_metadata));
    }
}

/// A batch and the index of its table among the tables being read.
pub(crate) type Made = std::result::Result<(usize, RecordBatch), ArrowError>;

/// The destination of a table's rows.
pub(crate) struct Output<'t> {
    /// Index of the table among the tables being read.
    pub(crate) place: usize,
    /// Indices of the requested columns.
    pub(crate) columns: &'t [usize],
    pub(crate) schema: &'t SchemaRef,
    /// Path of the trace.
    pub(crate) trace: &'t str,
    pub(crate) sender: &'t SyncSender<Made>,
    /// Whether the receiver is gone.
    pub(crate) stopped: &'t Cell<bool>,
}

/// Starts collecting rows and sending them as batches.
pub(crate) fn collector<R: Row>(output: Output<'_>) -> Box<dyn Collector + '_> {
    let Output { place, columns, schema, trace, sender, stopped } = output;
    let columns: Vec<&Column<R>> = columns.iter().filter_map(|column| R::COLUMNS.get(*column)).collect();
    R::collector(Box::new(move |rows| {
        if rows.is_empty() {
            return Ok(());
        }
        let made = batch(&columns, schema, rows, trace).map(|batch| (place, batch));
        stopped.set(made.is_err() | sender.send(made).is_err());
        if stopped.get() { Err(hatf_lab::Error::Stopped) } else { Ok(()) }
    }))
}

/// Defines the first column of every table.
macro_rules! trace_column {
    () => {
        Column { name: "trace", unit: "", doc: "path of the trace", of: Of::Trace }
    };
}
pub(crate) use trace_column;
