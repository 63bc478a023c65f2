//! The records that the endless writer writes, and how fast: for the writer, and for the test that kills it.

use std::time::Duration;

#[metatf_derive::metatf(dtd = "../examples/build-script/jobs.dtd")]
pub(crate) mod jobs {}

#[metatf_derive::metatf(dtd = "../examples/own-format/requests.dtd")]
pub(crate) mod requests {}

/// The requests go to this many paths.
pub(crate) const PATHS: u64 = 5000;

/// How fast records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As fast as can be, with the default options.
    Fast,
    /// One in a millisecond, flushed every [`PERIOD`].
    Slow,
    /// Many, and then one in 20 milliseconds, flushed every [`PERIOD`].
    Burst,
}

/// How often slow writers are flushed.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

impl Pace {
    pub(crate) const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Burst];

    /// The name, as an argument of the writer.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Burst => "burst",
        }
    }

    /// How often the writer is flushed, if not by default.
    pub(crate) fn period(self) -> Option<Duration> {
        (self != Self::Fast).then_some(PERIOD)
    }
}

/// The text of a record.
pub(crate) fn text(n: u64) -> Vec<u8> {
    format!("{n} {}", "x".repeat((n * 7 % 150) as usize)).into_bytes()
}
