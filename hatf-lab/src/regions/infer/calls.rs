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
    /// The `serial` of the call that it is in.
    pub(super) parent: Option<u64>,
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
            push(active, context, &mut self.serial);
            change(Seen::Begun(context))?;
        }
        Ok(())
    }

    /// A call begins.
    pub(super) fn begin(&mut self, thread: u64, context: Context) {
        push(self.threads.entry(thread).or_default(), context, &mut self.serial);
    }

    /// The innermost call of a thread is over.
    pub(super) fn end(&mut self, thread: u64) -> Option<Active> {
        self.threads.get_mut(&thread)?.pop()
    }

    /// Puts an object into the regions of the thread's outermost calls, this many; returns the `serial` of the innermost of them.
    pub(super) fn put(&mut self, thread: u64, count: usize, size: u64) -> Option<u64> {
        let active = self.threads.get_mut(&thread)?;
        active.iter_mut().take(count).for_each(|active| active.bytes = active.bytes.saturating_add(size));
        active.iter().take(count).next_back().map(|active| active.serial)
    }

    /// Returns how many of the thread's calls have been active since the `serial`th call was seen.
    pub(super) fn common(&self, thread: u64, serial: u64) -> usize {
        self.threads.get(&thread).map_or(0, |active| active.partition_point(|active| active.serial < serial))
    }
}

fn push(active: &mut Vec<Active>, context: Context, serial: &mut u64) {
    let parent = active.last().map(|active| active.serial);
    active.push(Active { context, serial: *serial, parent, bytes: 0 });
    *serial += 1;
}

/// What an allocation shows of calls.
pub(super) enum Seen {
    Over(Active),
    Begun(Context),
}
