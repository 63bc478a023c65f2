//! The clocks that times are measured by.

use serde::{Deserialize, Serialize};

use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};

/// What time is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Each allocation and each free is one tick, from 1 on (the paper's 5.4.3).
    #[default]
    Events,
    /// Nanoseconds since the start of the recording. Where threads' times cross, the clock stands still.
    Time,
    /// Bytes asked for so far, those of the event included.
    Bytes,
}

/// What the holding time of an object is that was never freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unfreed {
    /// Up to the last event.
    #[default]
    End,
    /// None: it is left out of holding times.
    Drop,
}

/// A clock that runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running {
    clock: Clock,
    now: u64,
}

impl Running {
    /// Starts a clock at 0.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, now: 0 }
    }

    /// Returns the time at an event.
    #[inline]
    pub fn at(&mut self, event: &ObjectEvent) -> u64 {
        self.now = match (self.clock, event.change) {
            (Clock::Events, _) => event.tick,
            (Clock::Time, _) => self.now.max(event.time),
            (Clock::Bytes, Change::Allocated) => self.now.saturating_add(event.object.size),
            (Clock::Bytes, Change::Freed) => self.now,
        };
        self.now
    }

    /// Returns the time of the last event: the paper's T.
    ///
    /// # Errors
    /// There were no times, or no bytes.
    pub fn end(&self) -> Result<u64> {
        match (self.now, self.clock) {
            (0, Clock::Events) => Err(Error::Trace("the trace has no events".to_owned())),
            (0, Clock::Time) => Err(Error::Trace("the trace has no times: --clock events or bytes".to_owned())),
            (0, Clock::Bytes) => Err(Error::Trace("the trace allocates no bytes: --clock events".to_owned())),
            (end, _) => Ok(end),
        }
    }
}

impl Observer for Running {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.at(event);
        Ok(())
    }
}
