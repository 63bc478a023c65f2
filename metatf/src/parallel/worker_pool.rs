//! The threads that work on groups, and the caller's thread, which takes the results.

use super::{Grouped, Out};
use crate::reader::{GroupList, GroupSummary, StatePool, Tables};
use metatf_container::{Error, Result};
use rayon::{Scope, ThreadPool, ThreadPoolBuilder};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Creates threads to work on groups. Returns `None` if the system cannot start them; the caller's thread then does the
/// work.
pub(super) fn pool(threads: usize) -> Option<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(threads).thread_name(|n| format!("metatf-group-{n}")).build().ok()
}

/// Runs `work` on this thread, passing its values to `take` immediately. An error from `take` takes precedence over the
/// result of `work`.
pub(super) fn taking<V, E>(
    take: &mut impl FnMut(V) -> Result<(), E>,
    work: impl FnOnce(&mut Out<'_, V>) -> Result<(), E>,
) -> Result<(), E> {
    let mut refused = None;
    let mut hand = |value| {
        if refused.is_none() {
            refused = take(value).err();
        }
        refused.is_none()
    };
    let worked = work(&mut Out(&mut hand));
    refused.map_or(worked, Err)
}

/// The state that is shared by the threads working on groups.
pub(super) struct WorkerPool<'c, 's, 't, T: Grouped<'t>, W> {
    pub(super) groups: GroupList<'s>,
    pub(super) shared: &'c T::Shared,
    pub(super) work: &'c W,
    pub(super) pool: Option<&'c ThreadPool>,
    pub(super) states: StatePool,
    pub(super) ahead: usize,
    pub(super) of: PhantomData<&'t ()>,
}

/// Groups that a thread reads in sequence, with the tables before each group.
struct Batch {
    first: usize,
    tables: Vec<Result<Tables>>,
}

/// The summary and result at the end of a group.
type Ending<E> = (GroupSummary, Result<(), E>);

/// A message from a thread about its groups.
enum Said<V, E> {
    Values(Vec<V>),
    /// The last values of a group, with its summary and its result.
    End(Vec<V>, GroupSummary, Result<(), E>),
}

impl<V, E> Said<V, E> {
    /// Returns the values and, if they are the last of their group, the group's ending.
    fn parts(self) -> (Vec<V>, Option<Ending<E>>) {
        match self {
            Self::Values(values) => (values, None),
            Self::End(values, summary, result) => (values, Some((summary, result))),
        }
    }
}

impl<'t, T: Grouped<'t>, W> WorkerPool<'_, '_, 't, T, W> {
    /// Reads a group.
    fn group<V, E: From<Error>>(
        &self,
        n: usize,
        tables: &Result<Tables>,
        out: &mut Out<'_, V>,
    ) -> (GroupSummary, Result<(), E>)
    where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E>,
    {
        let reader = match tables {
            Ok(tables) => self.groups.reader(n, tables, &self.states),
            Err(error) => Err(*error),
        };
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => return (GroupSummary::default(), Err(error.into())),
        };
        let mut group = T::group(self.shared, reader);
        let result = (self.work)(&mut group, out);
        let reader = T::reader_of(&mut group);
        let (summary, spare) = (reader.summary(), reader.end());
        drop(group);
        self.states.put(spare);
        (summary, result)
    }

    /// Returns the tables after group `n`, given the tables before it.
    fn tables_behind(&self, n: usize, tables: Result<Tables>) -> Result<Tables> {
        tables.and_then(|tables| self.groups.tables_behind(n, &tables))
    }

    /// Returns the groups that a thread takes, starting with `next`. `tables` contains the tables before these groups,
    /// and is updated to the tables after them.
    fn batch(&self, next: usize, tables: &mut Result<Tables>) -> Batch {
        let behind = |n| {
            let behind = self.tables_behind(n, tables.clone());
            std::mem::replace(tables, behind)
        };
        Batch { first: next, tables: self.groups.batch(next).map(behind).collect() }
    }

    /// Reads group by group on this thread.
    pub(super) fn alone<V, E: From<Error>>(
        &self,
        take: &mut impl FnMut(V) -> Result<(), E>,
    ) -> (GroupSummary, Result<(), E>)
    where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E>,
    {
        let mut all = GroupSummary::default();
        let mut tables = self.groups.first_tables();
        for n in self.groups.wanted() {
            let result = taking(take, |out| {
                let (summary, result) = self.group(n, &tables, out);
                all.add(summary);
                result
            });
            if result.is_err() {
                return (all, result);
            }
            tables = self.tables_behind(n, tables);
        }
        (all, Ok(()))
    }
}

impl<'t, T: Grouped<'t>, W: Sync> WorkerPool<'_, '_, 't, T, W> {
    /// Reads on several threads, taking values in order.
    pub(super) fn ordered<V: Send, E: From<Error> + Send>(
        &self,
        take: &mut impl FnMut(V) -> Result<(), E>,
    ) -> (GroupSummary, Result<(), E>)
    where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E>,
    {
        let given_up = AtomicBool::new(false);
        let mut all = GroupSummary::default();
        let result = self.in_pool(|scope, most| {
            let mut tables = self.groups.first_tables();
            let mut open: VecDeque<Receiver<Said<V, E>>> = VecDeque::new();
            let Range { start: mut next, end } = self.groups.wanted();
            loop {
                while next < end && open.len() < most {
                    let batch = self.batch(next, &mut tables);
                    next += batch.tables.len();
                    // The values of several small groups are collected and sent together, because waking a thread takes
                    // as long as processing a small group.
                    let (together, waiting) = match batch.tables.len() {
                        1 => (1, self.ahead),
                        groups => (groups.max(self.ahead.div_ceil(2)), 1),
                    };
                    let (sender, receiver) = sync_channel(waiting);
                    self.spawn(scope, batch, together, &given_up, move |said| SyncSender::send(&sender, said).is_ok());
                    open.push_back(receiver);
                }
                let Some(first) = open.pop_front() else { return Ok(()) };
                // A panicking thread drops its sender, which ends its group. The panic continues once all threads have
                // ended.
                for said in first {
                    let (values, end) = said.parts();
                    let mut result = values.into_iter().try_for_each(&mut *take);
                    if let Some((summary, ended)) = end {
                        all.add(summary);
                        result = result.and(ended);
                    }
                    if result.is_err() {
                        given_up.store(true, Ordering::Relaxed);
                        return result;
                    }
                }
            }
        });
        (all, result)
    }

    /// Reads on several threads, taking values as they arrive.
    pub(super) fn unordered<V: Send, E: From<Error> + Send>(
        &self,
        take: &mut impl FnMut(V) -> Result<(), E>,
    ) -> (GroupSummary, Result<(), E>)
    where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E>,
    {
        let given_up = AtomicBool::new(false);
        let mut summaries = BTreeMap::new();
        let result = self.in_pool(|scope, most| {
            let mut tables = self.groups.first_tables();
            let (sender, receiver) = channel();
            let mut first_error: Option<(usize, E)> = None;
            let (Range { start: mut next, end }, mut open) = (self.groups.wanted(), 0);
            loop {
                while next < end && open < most && first_error.is_none() {
                    let batch = self.batch(next, &mut tables);
                    let mut ended = Ended { n: next, sender: sender.clone(), ended: false };
                    (next, open) = (next + batch.tables.len(), open + 1);
                    self.spawn(scope, batch, self.ahead, &given_up, move |said| ended.say(said));
                }
                if open == 0 {
                    return first_error.map_or(Ok(()), |(_, error)| Err(error));
                }
                let Ok((n, said)) = receiver.recv() else { return Ok(()) };
                let (values, end) = said.parts();
                let taken = values.into_iter().try_for_each(&mut *take);
                if taken.is_err() {
                    given_up.store(true, Ordering::Relaxed);
                    return taken;
                }
                if let Some((summary, result)) = end {
                    open -= 1;
                    summaries.insert(n, summary);
                    if let Err(error) = result
                        && first_error.as_ref().is_none_or(|(first, _)| n < *first)
                    {
                        first_error = Some((n, error));
                    }
                }
            }
        });
        let mut all = GroupSummary::default();
        summaries.into_values().for_each(|summary| all.add(summary));
        (all, result)
    }

    /// Runs the caller's part alongside the pool. `part` receives the maximum number of open groups.
    fn in_pool<'scope, E>(&'scope self, part: impl FnOnce(&Scope<'scope>, usize) -> Result<(), E>) -> Result<(), E> {
        match self.pool {
            Some(pool) => pool.in_place_scope(|scope| part(scope, pool.current_num_threads() + 1)),
            None => Ok(()),
        }
    }

    /// Spawns work on groups. The work sends its values in messages of `together` values each. `say` sends a message,
    /// and returns false if the receiver no longer exists.
    fn spawn<'scope, V: Send, E: From<Error> + Send>(
        &'scope self,
        scope: &Scope<'scope>,
        batch: Batch,
        together: usize,
        given_up: &'scope AtomicBool,
        mut say: impl FnMut(Said<V, E>) -> bool + Send + 'scope,
    ) where
        W: Fn(&mut T::Group<'_>, &mut Out<'_, V>) -> Result<(), E>,
    {
        scope.spawn(move |_| {
            if given_up.load(Ordering::Relaxed) {
                return;
            }
            let (mut all, mut last) = (GroupSummary::default(), Ok(()));
            let (mut values, mut listening) = (Vec::new(), true);
            for (n, tables) in (batch.first..).zip(&batch.tables) {
                let mut hand = |value| {
                    values.push(value);
                    if values.len() >= together {
                        listening = say(Said::Values(std::mem::take(&mut values)));
                    }
                    listening
                };
                let (summary, result) = self.group(n, tables, &mut Out(&mut hand));
                if !listening || given_up.load(Ordering::Relaxed) {
                    return;
                }
                all.add(summary);
                last = result;
                if last.is_err() {
                    break;
                }
            }
            say(Said::End(values, all, last));
        });
    }
}

/// A guard that announces the end of a group even if its thread panics, so that the receiver does not wait forever.
struct Ended<V, E> {
    n: usize,
    sender: Sender<(usize, Said<V, E>)>,
    ended: bool,
}

impl<V, E> Ended<V, E> {
    fn say(&mut self, said: Said<V, E>) -> bool {
        self.ended = matches!(said, Said::End(..));
        self.sender.send((self.n, said)).is_ok()
    }
}

impl<V, E> Drop for Ended<V, E> {
    fn drop(&mut self) {
        if !self.ended {
            self.say(Said::End(Vec::new(), GroupSummary::default(), Ok(())));
        }
    }
}
