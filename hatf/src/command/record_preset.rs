//! What a recording is for.

use std::fmt;
use std::str::FromStr;

use metatf::recode::Preset;

use super::Record;

/// A preset of the trace, or settings for finding out where memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordPreset {
    /// The trace is written in this way.
    Trace(Preset),
    /// All that can be known of each block is recorded, and the trace is written by default.
    Debug,
}

/// Frames of a stack, unless it is said otherwise.
const DEPTH: usize = 64;

impl RecordPreset {
    /// Returns how the trace is written.
    pub(crate) fn trace(self) -> Preset {
        match self {
            Self::Trace(preset) => preset,
            Self::Debug => Preset::Default,
        }
    }
}

impl FromStr for RecordPreset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "debug" {
            return Ok(Self::Debug);
        }
        text.parse().map(Self::Trace).map_err(|_| "expected fast, default, archive or debug".to_owned())
    }
}

impl fmt::Display for RecordPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(preset) => preset.fmt(f),
            Self::Debug => f.write_str("debug"),
        }
    }
}

impl Record {
    fn is_debug(&self) -> bool {
        self.preset == RecordPreset::Debug
    }

    /// Returns the most frames of a stack; 0: no stacks.
    pub(crate) fn stacks(&self) -> usize {
        self.stacks.unwrap_or(if self.is_debug() || self.python { DEPTH } else { 0 })
    }

    /// Returns whether it is recorded what blocks really have.
    pub(crate) fn usable(&self) -> bool {
        self.usable || self.is_debug()
    }

    /// Returns whether pages are recorded.
    pub(crate) fn pages(&self) -> bool {
        self.pages || self.is_debug()
    }
}
