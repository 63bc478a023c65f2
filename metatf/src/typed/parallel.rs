//! The groups of a trace, read by several threads.

use super::Trace;
use super::map::Map;
use crate::parallel::{Grouped, ParGroups};
use crate::reader::RecordReader;
use crate::record::Protocol;
use std::sync::Arc;

/// How records of the trace's format become those of the reader's, where they differ.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SharedMap(Option<Arc<Map>>);

impl<'t, P: Protocol> Grouped<'t> for Trace<'t, P> {
    type Group<'g> = Trace<'g, P>;
    type Shared = SharedMap;

    fn shared(&self) -> Self::Shared {
        SharedMap(self.map.clone())
    }

    fn group<'g>(shared: &Self::Shared, reader: RecordReader<'g>) -> Self::Group<'g> {
        Trace::new(reader, shared.0.clone())
    }

    fn reader_of<'r, 'g: 'r>(group: &'r mut Self::Group<'g>) -> &'r mut RecordReader<'g> {
        &mut group.reader
    }

    fn whole(&mut self) -> &mut Self::Group<'t> {
        self
    }
}

impl<'t, P: Protocol> Trace<'t, P> {
    /// The trace's groups, for several threads to read. After it the trace is read to its end.
    ///
    /// What `work` makes of each group goes to `take` on this thread; see [`ParGroups`].
    pub fn par_groups(&mut self) -> ParGroups<'_, 't, Self> {
        ParGroups::new(self)
    }
}
