//! The calls that are active in each thread.

use std::collections::HashMap;

use super::Context;
use crate::Result;

/// A call that is active.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) context: Context,
    /// Calls of all threads seen before it.
    pub(super) serial: u64,
    /// Bytes of its region.
    pub(super) bytes: u64,
}

/// The calls that are active in each thread: as the trace says, or as far as allocations show them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) threads: HashMap<u64, Vec<Active>>,
    pub(super) serial: u64,
}

impl Calls {
    /// At an allocation: calls that are not on its stack are over, others have begun. `change` is given those that are over
    /// innermost first, then those that begin.
    pub(super) fn see(
        &mut self,
        thread: u64,
        path: &[Context],
        mut change: impl FnMut(Seen) -> Result<()>,
    ) -> Result<()> {
        if path.is_empty() {
            return Ok(());
        }
        let active = self.threads.entry(thread).or_default();
        let common = active.iter().zip(path).take_while(|(active, context)| active.context == **context).count();
        while active.len() > common {
            active.pop().map_or(Ok(()), |over| change(Seen::Over(over)))?;
        }
        for &context in path.iter().skip(common) {
            active.push(Active { context, serial: self.serial, bytes: 0 });
            self.serial += 1;
            change(Seen::Begun(context))?;
        }
        Ok(())
    }

    /// A call begins.
    pub(super) fn begin(&mut self, thread: u64, context: Context) {
        self.threads.entry(thread).or_default().push(Active { context, serial: self.serial, bytes: 0 });
        self.serial += 1;
    }

    /// The innermost call of a thread is over.
    pub(super) fn end(&mut self, thread: u64) -> Option<Active> {
        self.threads.get_mut(&thread)?.pop()
    }

    /// Puts an object into the regions of the thread's outermost calls, so many.
    pub(super) fn put(&mut self, thread: u64, count: usize, size: u64) {
        let active = self.threads.get_mut(&thread).into_iter().flatten();
        active.take(count).for_each(|active| active.bytes = active.bytes.saturating_add(size));
    }

    /// Returns how many of the thread's calls have been active since the `serial`th call was seen.
    pub(super) fn common(&self, thread: u64, serial: u64) -> usize {
        self.threads.get(&thread).map_or(0, |active| active.partition_point(|active| active.serial < serial))
    }
}

/// What an allocation shows of calls.
pub(super) enum Seen {
    Over(Active),
    Begun(Context),
}
