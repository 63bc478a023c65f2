//! The rows of each table, and how they are made of a trace.

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

/// What makes rows of a trace.
pub(crate) trait Row: Sized + Send + 'static {
    /// The name of their table.
    const NAME: &'static str;
    const COLUMNS: &'static [Column<Self>];
    /// Whether they have names of functions.
    const NAMED: bool = false;

    /// Starts to make rows of a trace.
    fn collector(take: Take<'_, Self>) -> Box<dyn Collector + '_>;
}

/// Takes rows in batches, as they come. After an error it takes no more.
pub(crate) type Take<'t, R> = Box<dyn FnMut(&[R]) -> Result<()> + 't>;

/// What makes rows, while the heap follows a trace.
pub(crate) trait Collector: Observer {
    /// Gives the rows that are left, at the end of the trace.
    ///
    /// # Errors
    /// Those of what takes them.
    fn finish(self: Box<Self>, heap: &Heap, names: &dyn Names) -> Result<()>;
}

/// An observer of which rows are made at the end of the trace.
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

/// Several at once, each by a call that is not known before: seven of them cost less than a second pass.
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

/// A batch of a table, by its place among those that are read.
pub(crate) type Made = std::result::Result<(usize, RecordBatch), ArrowError>;

/// Where the rows of a table go.
pub(crate) struct Output<'t> {
    /// The place of the table among those that are read.
    pub(crate) place: usize,
    /// Places of columns that are wanted.
    pub(crate) columns: &'t [usize],
    pub(crate) schema: &'t SchemaRef,
    /// The path of the trace.
    pub(crate) trace: &'t str,
    pub(crate) sender: &'t SyncSender<Made>,
    /// Nobody takes batches any more.
    pub(crate) stopped: &'t Cell<bool>,
}

/// Starts to make rows and to send them.
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

/// The first column of every table.
macro_rules! trace_column {
    () => {
        Column { name: "trace", unit: "", doc: "the path of the trace", of: Of::Trace }
    };
}
pub(crate) use trace_column;
