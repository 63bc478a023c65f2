//! Clocks that define the times of a model: events, nanoseconds or requested bytes.

use serde::{Deserialize, Serialize};

use hatf_lab::{Change, Error, ObjectEvent, Observer, Result};

/// The unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Each allocation and each free is one tick, starting at 1 (section 5.4.3 of the paper).
    #[default]
    Events,
    /// Nanoseconds since the start of the recording. If a timestamp is earlier than the timestamp of another thread,
    /// the clock does not advance.
    Time,
    /// Bytes requested so far, including those of the event.
    Bytes,
}

/// The holding time of an object that is never freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unfreed {
    /// The time up to the last event.
    #[default]
    End,
    /// No holding time. The object does not count in the distribution of holding times.
    Drop,
}

/// A running clock.
///
/// # Examples
///
/// As an observer, the clock determines the end of a trace before the fit:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_research::model::{Choice, Fitter, Kind, Running, Settings};
/// use hatf_trace::{Event, EventSink};
///
/// let settings = Settings::new(vec![Kind::same(Choice::Time)]);
/// assert!(settings.needs_end());
/// let mut tracker = HeapTracker::new(Running::new(settings.clock));
/// tracker.event(&Event::malloc(1, 30))?;
/// tracker.event(&Event::free(1))?;
/// let end = tracker.observer().end()?;
/// assert_eq!(end, 2);
/// let fitter = Fitter::new(settings, Some(end))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Running {
    clock: Clock,
    now: u64,
}

impl Running {
    /// Creates a clock that starts at 0.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, now: 0 }
    }

    /// Returns the time of an event.
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

    /// Returns the time of the last event, which is the paper's T.
    ///
    /// # Errors
    /// Fails if the clock requires timestamps and the trace has none, or if the clock counts bytes and no bytes were
    /// allocated.
    pub fn end(&self) -> Result<u64> {
        match (self.now, self.clock) {
            (0, Clock::Events) => Err(Error::Trace("the trace has no events".to_owned())),
            (0, Clock::Time) => {
                Err(Error::Trace("the trace has no timestamps: use --clock events or --clock bytes".to_owned()))
            }
            (0, Clock::Bytes) => Err(Error::Trace("the trace allocates no bytes: use --clock events".to_owned())),
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
