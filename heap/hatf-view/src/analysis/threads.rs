//! Reports by thread.

use std::collections::BTreeMap;

use serde::Serialize;

use hatf_trace::event::Event;

/// The calls of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    /// The thread number.
    pub thread: u64,
    /// The last name of the thread. If the thread has not set a name, this is the name of its creator at the time of
    /// creation. For the main thread, this is the name of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kernel's thread ID, if the trace contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// The time at which the thread started, if the trace contains it.
    pub began: Option<u64>,
    /// The time at which the thread ended, if the trace contains it.
    pub ended: Option<u64>,
    /// Blocks allocated by the thread.
    pub allocs: u64,
    /// Bytes allocated by the thread.
    pub bytes: u64,
    /// Blocks freed by the thread, regardless of which thread allocated them.
    pub frees: u64,
    /// Bytes freed by the thread.
    pub bytes_freed: u64,
}

/// Maximum length of a thread's name in bytes.
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

/// All threads. The last one used is cached, because consecutive events often come from the same thread.
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

    /// Handles the start of a program, whose main thread is named after the file.
    pub(super) fn image(&mut self, path: &[u8]) {
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.of(1).name(file.get(..NAME).unwrap_or(file));
    }

    pub(super) fn ended(&mut self, event: &Event<'_>) {
        self.of(event.thread).ended = Some(event.time);
    }

    /// Returns all threads in ascending order. Thread 0 is included only if it caused an event.
    pub(super) fn report(&self) -> Vec<ThreadReport> {
        let mut all = self.others.clone();
        all.insert(self.current.thread, self.current.clone());
        let nobody = ThreadReport::default();
        all.into_values().filter(|thread| *thread != nobody).collect()
    }
}
