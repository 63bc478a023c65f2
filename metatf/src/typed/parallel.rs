//! Reading the groups of a trace on several threads.

use super::Trace;
use super::map::Map;
use crate::parallel::{Grouped, ParGroups};
use crate::reader::RecordReader;
use crate::record::Protocol;
use std::sync::Arc;

/// The mapping from the trace's records to the reader's, if their formats differ.
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
    /// Returns the trace's groups, to be read by several threads. Afterwards, the trace is at its end.
    ///
    /// The result of `work` for each group is passed to `take` on the current thread; see [`ParGroups`].
    pub fn par_groups(&mut self) -> ParGroups<'_, 't, Self> {
        ParGroups::new(self)
    }
}
