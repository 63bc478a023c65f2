//! Presets of recordings.

use std::fmt;
use std::str::FromStr;

use metatf_tools::recode::Preset;

/// A preset for the trace, or settings for finding out where memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordPreset {
    /// A preset for writing the trace.
    Trace(Preset),
    /// All available data about each block. The trace is written with the default preset.
    Debug,
}

impl RecordPreset {
    /// Returns the preset for writing the trace.
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
