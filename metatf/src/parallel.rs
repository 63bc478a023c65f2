//! Reading the groups of a trace on several threads (feature `parallel`), with the `par_groups` method of generated
//! traces ([`crate::typed::Trace`]) and of the dynamic reader.
//!
//! A group can be read independently of all other groups except for shared tables (spec 5.2), which every group reader
//! receives. Threads read groups in order. The caller's thread receives the results either in group order or as they
//! arrive. In group order, the results of later groups wait for those of earlier groups, and with N threads, at most
//! N + 1 groups are open. If a trace cannot be split, the caller's thread reads all of it as one group, with the same
//! values in the same order and the same error. This applies to version 0, pipes, traces with a single group,
//! salvaging, readers that have already started, and files with invalid chunks.
//!
//! # Examples
//!
//! The DTD in this example declares the record `reading: (tag, time, vfield)`:
//!
//! ```
//! #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
//! mod readings {}
//! use readings::{Reading, Trace, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut writer = Writer::new(Vec::new())?;
//! writer.reading(&Reading { time: 40, vfield: b"" })?;
//! writer.start_group()?;
//! writer.reading(&Reading { time: 42, vfield: b"" })?;
//! writer.reading(&Reading { time: 43, vfield: b"" })?;
//! let file = writer.finish()?;
//!
//! let mut counts = Vec::new();
//! Trace::from_slice(&file)?.par_groups().threads(2).ordered(
//!     |group| group.records().map(|record| record.map(|_| 1_u64)).sum::<metatf::Result<u64>>(),
//!     |count| Ok(counts.push(count)),
//! )?;
//! assert_eq!(counts, [1, 2]);
//! # Ok(())
//! # }
//! ```

mod worker_pool;

use crate::reader::{GroupSummary, RecordReader, StatePool};
use metatf_container::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;
use worker_pool::{WorkerPool, pool, taking};

/// A trace whose groups can be read independently, with generated code or with the dynamic reader.
pub trait Grouped<'t> {
    /// The reader type for a single group.
    type Group<'g>;

    /// The data that a group reader needs in addition to its records.
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

/// The destination for values produced from a group.
pub struct Out<'o, V>(&'o mut dyn FnMut(V) -> bool);

impl<V> Out<'_, V> {
    /// Sends a value. Returns false if no more values are needed. In that case, `work` can return early, and its result
    /// is ignored.
    #[must_use = "if no more values are needed, the work can end"]
    pub fn send(&mut self, value: V) -> bool {
        (self.0)(value)
    }
}

impl<V> std::fmt::Debug for Out<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Out")
    }
}

/// Default for [`ParGroups::ahead`], the number of values that a group may buffer until its turn.
const AHEAD: usize = 16;

impl<'p, 't, T: Grouped<'t>> ParGroups<'p, 't, T> {
    pub(crate) fn new(trace: &'p mut T) -> Self {
        Self { trace, threads: 0, ahead: AHEAD, bytes: 0..u64::MAX, of: PhantomData }
    }

    /// Sets the number of threads. The default, 0, uses one thread per core. With 1, the caller's thread does all the
    /// work.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets, for [`streamed`](Self::streamed), the number of values that a group may buffer until its turn before its
    /// thread blocks. The minimum is 1 and the default is 16.
    #[must_use]
    pub fn ahead(mut self, values: usize) -> Self {
        self.ahead = values.max(1);
        self
    }

    /// Reads only the groups that begin in this byte range of the file, and the tables before them. If a file is
    /// divided into ranges, each group belongs to exactly one of them. A trace that cannot be split belongs to the
    /// range that contains its first byte.
    #[must_use]
    pub fn that_begin_in(mut self, bytes: Range<u64>) -> Self {
        self.bytes = bytes;
        self
    }

    /// Runs `work` for every group and passes its results to `take` in group order.
    ///
    /// # Errors
    /// Returns the first error in group order, which is an error in the trace or an error returned by `work` or `take`.
    /// The results of all groups before the failing one have been passed to `take`.
    pub fn ordered<V: Send, E: From<Error> + Send>(
        self,
        work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
        take: impl FnMut(V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(handing_on::<T, _, _>(work), take, |workers, take| workers.ordered(take))
    }

    /// Runs `work` for every group like [`ordered`](Self::ordered), but takes results as they arrive.
    ///
    /// # Errors
    /// As for [`ordered`](Self::ordered). The results of groups after the failing one may have been passed to `take`
    /// already.
    pub fn unordered<V: Send, E: From<Error> + Send>(
        self,
        work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
        take: impl FnMut(V) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run(handing_on::<T, _, _>(work), take, |workers, take| workers.unordered(take))
    }

    /// Runs `work` for every group. `work` can send any number of values, which are passed to `take` in group order
    /// and, within a group, in the order in which they were sent. Use this if the values are too large to be kept until
    /// a group is done.
    ///
    /// # Errors
    /// As for [`ordered`](Self::ordered).
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
        // Never use more threads than groups.
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
        drop(workers);
        let is_whole = result.is_ok() && self.bytes == (0..u64::MAX);
        T::reader_of(self.trace.whole()).has_been_read(summary, is_whole);
        result
    }
}

/// Wraps `work` so that its result is sent as the only value of its group.
fn handing_on<'t, T: Grouped<'t>, V, E>(
    work: impl Fn(&mut T::Group<'_>) -> Result<V, E> + Sync,
) -> impl Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E> + Sync {
    move |group, out| {
        let value = work(group)?;
        let _ = out.send(value);
        Ok(())
    }
}

/// Returns the number of cores.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
