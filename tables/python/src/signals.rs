//! Handles Ctrl-C while records are decoded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use pyo3::prelude::*;

/// A check for signals on the thread that started the work. Other threads must not wait for the interpreter.
pub(crate) struct Signals {
    thread: ThreadId,
}

impl Signals {
    pub(crate) fn of_this_thread() -> Self {
        Self { thread: thread::current().id() }
    }

    /// Runs pending signal handlers.
    ///
    /// # Errors
    /// Returns the exception that a signal handler raised, usually `KeyboardInterrupt`.
    pub(crate) fn check(&self) -> PyResult<()> {
        if thread::current().id() == self.thread { Python::attach(|py| py.check_signals()) } else { Ok(()) }
    }

    /// Returns whether a signal handler raised an exception, for callers that cannot return Python exceptions. The
    /// signal becomes pending again and is handled when the interpreter continues.
    pub(crate) fn is_interrupted(&self) -> bool {
        match self.check() {
            Ok(()) => false,
            Err(_) => {
                // SAFETY: this sets a flag and needs neither a thread state nor the interpreter.
                unsafe { pyo3::ffi::PyErr_SetInterrupt() };
                true
            }
        }
    }
}

/// A counter that checks for signals every `EVENTS` events, to end a pass over a trace.
pub(crate) struct Ticks<'s> {
    signals: &'s Signals,
    left: u32,
    raised: &'s AtomicBool,
}

/// Number of events between two checks. Processing these events takes a few milliseconds.
const EVENTS: u32 = 1 << 15;

impl<'s> Ticks<'s> {
    pub(crate) fn new(signals: &'s Signals, raised: &'s AtomicBool) -> Self {
        Self { signals, left: EVENTS, raised }
    }

    /// Counts an event. Returns true if the pass must end.
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
