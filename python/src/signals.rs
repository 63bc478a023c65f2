//! Ctrl-C while records are decoded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

/// Asks the interpreter for signals, in the thread that began the work: no other may be able to wait for the interpreter.
pub(crate) struct Signals {
    thread: ThreadId,
}

impl Signals {
    pub(crate) fn of_this_thread() -> Self {
        Self { thread: thread::current().id() }
    }

    /// # Errors
    /// What the handler of a signal raised: `KeyboardInterrupt`, as a rule.
    pub(crate) fn check(&self) -> PyResult<()> {
        if thread::current().id() == self.thread { Python::attach(|py| py.check_signals()) } else { Ok(()) }
    }

    /// As [`check`](Self::check), for those whose callers know no exceptions of Python: the signal is pending again, and comes when the
    /// interpreter runs on.
    pub(crate) fn is_interrupted(&self) -> bool {
        match self.check() {
            Ok(()) => false,
            Err(_) => {
                // SAFETY: it sets a flag, and needs neither a thread state nor the interpreter.
                unsafe { pyo3::ffi::PyErr_SetInterrupt() };
                true
            }
        }
    }
}

/// Whether a pass over a trace is to end, asked once for a number of events.
pub(crate) struct Ticks<'s> {
    signals: &'s Signals,
    left: u32,
    raised: &'s AtomicBool,
}

/// Events between two looks for signals: some milliseconds.
const EVENTS: u32 = 1 << 15;

impl<'s> Ticks<'s> {
    pub(crate) fn new(signals: &'s Signals, raised: &'s AtomicBool) -> Self {
        Self { signals, left: EVENTS, raised }
    }

    /// Counts an event; true: end.
    #[inline]
    pub(crate) fn tick(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0 && self.look()
    }

    #[cold]
    fn look(&mut self) -> bool {
        self.left = EVENTS;
        let is_interrupted = self.signals.is_interrupted();
        self.raised.fetch_or(is_interrupted, Ordering::Relaxed);
        is_interrupted
    }
}
