//! The active calls of each thread.

use std::collections::HashMap;

use super::Context;
use hatf_lab::Result;

/// An active call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) context: Context,
    /// The number of calls of all threads seen before this call.
    pub(super) serial: u64,
    /// The `serial` of the enclosing call.
    pub(super) parent: Option<u64>,
    /// The bytes in the call's region.
    pub(super) bytes: u64,
}

/// The active calls of each thread, either recorded in the trace or inferred from allocations.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) threads: HashMap<u64, Vec<Active>>,
    pub(super) serial: u64,
}

impl Calls {
    /// Updates the active calls at an allocation. Calls absent from its stack have ended, and new calls have begun.
    /// `change` receives the ended calls, innermost first, followed by the new calls.
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

    /// Begins a call.
    pub(super) fn begin(&mut self, thread: u64, context: Context) {
        push(self.threads.entry(thread).or_default(), context, &mut self.serial);
    }

    /// Ends the innermost call of a thread.
    pub(super) fn end(&mut self, thread: u64) -> Option<Active> {
        self.threads.get_mut(&thread)?.pop()
    }

    /// Adds an object to the regions of the `count` outermost calls of a thread. Returns the `serial` of the innermost
    /// of these calls.
    pub(super) fn put(&mut self, thread: u64, count: usize, size: u64) -> Option<u64> {
        let active = self.threads.get_mut(&thread)?;
        active.iter_mut().take(count).for_each(|active| active.bytes = active.bytes.saturating_add(size));
        active.iter().take(count).next_back().map(|active| active.serial)
    }

    /// Returns the number of the thread's active calls that began before call number `serial`.
    pub(super) fn common(&self, thread: u64, serial: u64) -> usize {
        self.threads.get(&thread).map_or(0, |active| active.partition_point(|active| active.serial < serial))
    }
}

fn push(active: &mut Vec<Active>, context: Context, serial: &mut u64) {
    let parent = active.last().map(|active| active.serial);
    active.push(Active { context, serial: *serial, parent, bytes: 0 });
    *serial += 1;
}

/// A change to the set of active calls that an allocation reveals.
pub(super) enum Seen {
    Over(Active),
    Begun(Context),
}
