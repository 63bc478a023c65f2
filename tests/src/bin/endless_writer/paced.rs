//! Content and pace of the records of the endless writer, shared with the test that kills it.

use std::time::Duration;

#[metatf_derive::metatf(dtd = "../examples/build-script/jobs.dtd")]
pub(crate) mod jobs {}

#[metatf_derive::metatf(dtd = "../examples/own-format/requests.dtd")]
pub(crate) mod requests {}

/// Number of distinct paths in the requests.
pub(crate) const PATHS: u64 = 5000;

/// Pace at which records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as possible, with the default options.
    Fast,
    /// One record per millisecond, flushed every [`PERIOD`].
    Slow,
    /// A burst of records, then one every 20 milliseconds, flushed every [`PERIOD`].
    Burst,
}

/// Flush period of the slow writers.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

impl Pace {
    pub(crate) const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Burst];

    /// Returns the name of the pace, as the writer expects it on its command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Burst => "burst",
        }
    }

    /// Returns the flush period, or `None` for the default.
    pub(crate) fn period(self) -> Option<Duration> {
        (self != Self::Fast).then_some(PERIOD)
    }
}

/// Returns the text of record `n`.
pub(crate) fn text(n: u64) -> Vec<u8> {
    format!("{n} {}", "x".repeat((n * 7 % 150) as usize)).into_bytes()
}
