//! The groups of a trace, read by several threads (feature `parallel`): `par_groups` of generated modules' traces
//! ([`crate::typed::Trace`]) and of the universal reader's.
//!
//! A group can be read without any other except for shared tables (spec 5.2), which each reader of a group is given. Threads
//! take groups in their order. What they make of them is taken by the caller's thread, in the order of the groups (then
//! those behind wait, at most one more than there are threads) or as it comes. Where a trace cannot be cut (version 0, a
//! pipe, one group, salvage, a reader that has begun, a file whose chunks are wrong), the caller's thread reads all of it
//! as one group: the same values come in the same order, and the same error.

mod worker_pool;

use crate::reader::{GroupSummary, RecordReader, StatePool};
use metatf_container::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;
use worker_pool::{WorkerPool, pool, taking};

/// A trace whose groups can be read each by itself: a generated module's, and the universal reader's.
pub trait Grouped<'t> {
    /// The same of one group.
    type Group<'g>;

    /// What a group's reader needs beside its records.
    #[doc(hidden)]
    type Shared: Sync;

    #[doc(hidden)]
    fn shared(&self) -> Self::Shared;

    #[doc(hidden)]
    fn group<'g>(shared: &Self::Shared, reader: RecordReader<'g>) -> Self::Group<'g>;

    #[doc(hidden)]
    fn reader_of<'r, 'g: 'r>(group: &'r mut Self::Group<'g>) -> &'r mut RecordReader<'g>;

    #[doc(hidden)]
    fn whole(&mut self) -> &mut Self::Group<'t>;
}

/// The groups of a trace, to be read by several threads. See [`Trace::par_groups`](crate::typed::Trace::par_groups).
#[derive(Debug)]
pub struct ParGroups<'p, 't, T> {
    trace: &'p mut T,
    threads: usize,
    ahead: usize,
    bytes: Range<u64>,
    of: PhantomData<&'t ()>,
}

/// Where the work on a group puts what it makes.
pub struct Out<'o, V>(&'o mut dyn FnMut(V) -> bool);

impl<V> Out<'_, V> {
    /// Hands a value on. False: nobody wants more, and the work can end; what it returns does not count.
    #[must_use = "where nobody wants more, the work can end"]
    pub fn send(&mut self, value: V) -> bool {
        (self.0)(value)
    }
}

impl<V> std::fmt::Debug for Out<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out")
    }
}

/// Values that a group may hold back until it is its turn, unless [`ParGroups::ahead`] says otherwise.
const AHEAD: usize = 16;

impl<'p, 't, T: Grouped<'t>> ParGroups<'p, 't, T> {
    pub(crate) fn new(trace: &'p mut T) -> Self {
        Self { trace, threads: 0, ahead: AHEAD, bytes: 0..u64::MAX, of: PhantomData }
    }

    /// Sets how many threads work; 0, which is the default: as many as there are cores. With 1 the caller's thread does all.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// With [`streamed`](Self::streamed): a group whose turn has not come holds this many values back, at least one, and then
    /// its thread waits. The default is 16.
    #[must_use]
    pub fn ahead(mut self, values: usize) -> Self {
        self.ahead = values.max(1);
        self
    }

    /// Reads the groups alone that begin in these bytes of the file, and the tables before them. However a file is cut into ranges, each
    /// group is in one. A trace that cannot be cut is that of the range with its first byte.
    #[must_use]
    pub fn that_begin_in(mut self, bytes: Range<u64>) -> Self {
        self.bytes = bytes;
        self
    }

    /// Each group by `work`; what it makes of them goes to `take` in the order of the groups.
    ///
    /// # Errors
    /// The first in the order of the groups: what is wrong with the trace, what `work` or `take` returns. What the groups
    /// before it have made was taken.
    pub fn ordered<V: Send, E: From<Error> + Send>(
        self,
        work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
        take: impl FnMut(V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(handing_on::<T, _, _>(work), take, |workers, take| workers.ordered(take))
    }

    /// As [`ordered`](Self::ordered), but values are taken as they come.
    ///
    /// # Errors
    /// As [`ordered`](Self::ordered); groups behind the one that is wrong may have been taken.
    pub fn unordered<V: Send, E: From<Error> + Send>(
        self,
        work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
        take: impl FnMut(V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(handing_on::<T, _, _>(work), take, |workers, take| workers.unordered(take))
    }

    /// Each group by `work`, which may hand on any number of values; they go to `take` in the order of the groups, and in a
    /// group in the order in which they were handed on. For what is too large to be held until a group is done.
    ///
    /// # Errors
    /// As [`ordered`](Self::ordered).
    pub fn streamed<V: Send, E: From<Error> + Send>(
        self,
        work: impl Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E> + Sync,
        take: impl FnMut(V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(work, take, |workers, take| workers.ordered(take))
    }

    fn run<V: Send, E: From<Error> + Send, W, K>(
        self,
        work: W,
        mut take: K,
        by_threads: impl FnOnce(&WorkerPool<'_, '_, 't, T, W>, &mut K) -> (GroupSummary, Result<(), E>),
    ) -> Result<(), E>
    where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E> + Sync,
        K: FnMut(V) -> Result<(), E>,
    {
        let shared = self.trace.shared();
        let whole = self.trace.whole();
        let Some(groups) = T::reader_of(whole).groups(&self.bytes) else {
            return if self.bytes.contains(&0) { taking(&mut take, |out| work(whole, out)) } else { Ok(()) };
        };
        // At most as many threads as groups.
        let threads = if self.threads == 0 { cores() } else { self.threads }.min(groups.wanted().len());
        let pool = (threads > 1).then(|| pool(threads)).flatten();
        let workers = WorkerPool {
            groups,
            shared: &shared,
            work: &work,
            pool: pool.as_ref(),
            states: StatePool::default(),
            ahead: self.ahead,
            of: PhantomData,
        };
        let (summary, result) = match workers.pool {
            Some(_) => by_threads(&workers, &mut take),
            None => workers.alone(&mut take),
        };
        let is_whole = result.is_ok() && self.bytes == (0..u64::MAX);
        T::reader_of(self.trace.whole()).has_been_read(summary, is_whole);
        result
    }
}

/// Work on a group whose value is handed on.
fn handing_on<'t, T: Grouped<'t>, V, E>(
    work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
) -> impl Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E> + Sync {
    move |group, out| {
        let value = work(group)?;
        let _ = out.send(value);
        Ok(())
    }
}

/// The number of cores.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
