//! Who allocated.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::Event;

/// The calls of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    /// Its number.
    pub thread: u64,
    /// Its last name: its own, or that of the thread that made it at that moment. Of the main thread it is the program's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The system's number of it, if the trace has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// When it began, if the trace has it.
    pub began: Option<u64>,
    /// When it ended, if the trace has it.
    pub ended: Option<u64>,
    /// Blocks it allocated.
    pub allocs: u64,
    /// Bytes it allocated.
    pub bytes: u64,
    /// Blocks it freed, its own or others'.
    pub frees: u64,
    /// The bytes of those.
    pub bytes_freed: u64,
}

/// Bytes of a thread's name, at most.
const NAME: usize = 15;

impl ThreadReport {
    pub(super) fn name(&mut self, name: &[u8]) {
        self.name = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
    }

    pub(super) fn allocated(&mut self, size: u64) {
        self.allocs += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    pub(super) fn freed(&mut self, size: u64) {
        self.frees += 1;
        self.bytes_freed = self.bytes_freed.saturating_add(size);
    }
}

/// All threads. The last one asked for is kept at hand: threads come in runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    others: BTreeMap<u64, ThreadReport>,
    current: ThreadReport,
}

impl Threads {
    #[inline]
    pub(super) fn of(&mut self, thread: u64) -> &mut ThreadReport {
        if self.current.thread != thread {
            self.switch(thread);
        }
        &mut self.current
    }

    #[cold]
    fn switch(&mut self, thread: u64) {
        let next = self.others.remove(&thread).unwrap_or(ThreadReport { thread, ..ThreadReport::default() });
        let before = std::mem::replace(&mut self.current, next);
        self.others.insert(before.thread, before);
    }

    pub(super) fn began(&mut self, event: &Event<'_>, creator: u64, task: u64) {
        let name = if creator == 0 { None } else { self.of(creator).name.clone() };
        let thread = self.of(event.thread);
        thread.began = Some(event.time);
        thread.task = (task != 0).then_some(task);
        thread.name = name.or(thread.name.take());
    }

    /// A program begins, whose main thread has the name of its file.
    pub(super) fn image(&mut self, path: &[u8]) {
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.of(1).name(file.get(..NAME).unwrap_or(file));
    }

    pub(super) fn ended(&mut self, event: &Event<'_>) {
        self.of(event.thread).ended = Some(event.time);
    }

    /// Threads ascending. Thread 0 is one only if it did something.
    pub(super) fn report(&self) -> Vec<ThreadReport> {
        let mut all = self.others.clone();
        all.insert(self.current.thread, self.current.clone());
        let nobody = ThreadReport::default();
        all.into_values().filter(|thread| *thread != nobody).collect()
    }
}
