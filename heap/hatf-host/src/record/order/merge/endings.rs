//! Handling of data that no longer arrives: slots that are never written, and events of threads that have ended.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use hatf_record::Next;

use super::Merge;

impl Merge<'_> {
    /// Skips slots and chunks that were reserved but will never be written, in all waiting threads. `ended` specifies
    /// whether the process has ended. Returns whether anything was skipped. An event that a thread was writing when the
    /// process ended is not counted: the program's call had not returned.
    pub(crate) fn skip_gaps(&mut self, ended: bool) -> bool {
        let mut found = false;
        for place in &self.waiting {
            let queue = &mut self.queues[*place];
            let is_unfinished = ended && queue.is_unfinished();
            if queue.skip_gap(self.spool, ended) {
                self.counts.gaps += u64::from(!is_unfinished);
                found = true;
            }
        }
        found
    }

    /// Skips slots and chunks that have been missing for `patience` although later ones are written. A thread that a
    /// profiler's timer keeps interrupting always has a gap, but each gap is short.
    pub(crate) fn skip_lasting_gaps(&mut self, now: Instant, patience: Duration) {
        for place in &self.waiting {
            let queue = &mut self.queues[*place];
            if queue.has_lasting_gap(now, patience) {
                self.counts.gaps += u64::from(queue.skip_gap(self.spool, false));
            }
        }
    }

    /// Queues the end events of threads that announced their end and are gone, so that nothing else can follow.
    pub(crate) fn end_threads(&mut self, is_gone: impl Fn(u32) -> bool) {
        let is_ending = |place: &usize| self.queues[*place].end.is_some();
        if !self.waiting.iter().any(is_ending) {
            return;
        }
        for place in std::mem::take(&mut self.waiting) {
            if self.queues[place].end.is_some() && is_gone(self.queues[place].task) {
                // Everything that the thread has written is visible now.
                self.read(place);
                let queue = &mut self.queues[place];
                if queue.head.is_none() {
                    queue.head = queue.end.take();
                    queue.has_end = true;
                }
            }
            match self.queues[place].head {
                Some(event) => self.ready.push(Reverse((event.time, place))),
                None => self.waiting.push(place),
            }
        }
    }

    /// Finishes the chunks of threads that have ended and are gone.
    pub(crate) fn finish_threads(&mut self, is_gone: impl Fn(u32) -> bool) {
        for place in &self.waiting {
            let queue = &mut self.queues[*place];
            if queue.ended && queue.end.is_none() && queue.chunks.is_empty() && is_gone(queue.task)
                && let Some((chunk, mut stream)) = queue.reading
                // Check that nothing arrived between the last read and the thread's end.
                && stream.next(&mut Vec::new()) == Next::Nothing
            {
                queue.reading = None;
                self.finished.append(&mut queue.kept);
                self.finished.push(chunk);
            }
        }
        let queues = &mut self.queues;
        self.waiting.retain(|place| {
            let queue = &mut queues[*place];
            queue.parked = queue.ended && queue.end.is_none() && queue.reading.is_none() && queue.chunks.is_empty();
            !queue.parked
        });
    }
}
