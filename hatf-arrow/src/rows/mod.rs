//! The rows of each table, and how they are made of a trace.

mod lifetimes;
mod marks;
mod objects;
mod processes;
mod sites;
mod stacks;
mod timeline;
mod traces;

use hatf_lab::{HeapTracker, Observer};
use hatf_trace::forms::TraceReader;
use hatf_trace::pipeline::read_beside;

pub(crate) use lifetimes::LifetimeRow;
pub(crate) use marks::MarkRow;
pub(crate) use objects::TableObject;
pub(crate) use processes::ProcessRow;
pub(crate) use sites::SiteRow;
pub(crate) use stacks::StackRow;
pub(crate) use timeline::TimelineRow;
pub(crate) use traces::TraceRow;

use crate::Names;
use crate::column::Column;

/// What makes rows of a trace.
pub(crate) trait Row: Sized + Send + 'static {
    /// The name of their table.
    const NAME: &'static str;
    const COLUMNS: &'static [Column<Self>];

    /// Reads a trace, and gives its rows in batches. After an error of `take` no more is given.
    fn read(trace: &Opened<'_>, take: &mut dyn FnMut(&[Self]) -> hatf_lab::Result<()>) -> hatf_trace::Result<()>;
}

/// A trace to be read.
pub(crate) struct Opened<'s> {
    pub(crate) path: &'s std::path::Path,
    pub(crate) names: &'s dyn Names,
    /// Whether another thread decodes it.
    pub(crate) beside: bool,
}

impl Opened<'_> {
    /// Has the heap and an observer follow it to its end.
    fn follow<O: Observer>(&self, mut tracker: HeapTracker<O>) -> hatf_trace::Result<HeapTracker<O>> {
        if self.beside {
            read_beside(|feed| TraceReader::open(self.path)?.feed(feed).map(|_| ()), &mut tracker)?;
        } else {
            TraceReader::open(self.path)?.give(&mut tracker)?;
        }
        Ok(tracker)
    }
}

/// The first column of every table.
macro_rules! trace_column {
    () => {
        Column { name: "trace", unit: "", doc: "the path of the trace", of: Of::Trace }
    };
}
pub(crate) use trace_column;
