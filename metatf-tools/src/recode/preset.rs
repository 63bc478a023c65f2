//! Presets, which combine a plan, a codec, a filter, and sizes of chunks and groups.

use super::{Groups, Options, Plan};
use metatf::container::{Codec, Filter, Trial, WriteOptions};
use std::fmt;
use std::str::FromStr;

/// The purpose of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// The trace is written once and soon read once. Uses LZ4 or no codec, no filter and no planning.
    Fast,
    /// The trace is kept and used.
    #[default]
    Default,
    /// The trace is sent or archived, and should be as small as possible.
    Archive,
    /// Tables and other readers need only some fields of the records. Uses the filter that stores each leaf by itself, and
    /// no planning, because readers decode single leaves only if the encoding does not change inside a chunk.
    Columns,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 4] = [Self::Fast, Self::Default, Self::Archive, Self::Columns];

    /// Returns the preset's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Default => "default",
            Self::Archive => "archive",
            Self::Columns => "columns",
        }
    }

    /// Returns the plan.
    #[must_use]
    pub const fn plan(self) -> Plan {
        match self {
            Self::Fast | Self::Columns => Plan::Naive,
            Self::Default | Self::Archive => Plan::Optimal,
        }
    }

    /// Sets the codecs, the filter, and the sizes of chunks and groups.
    pub fn apply(self, write: &mut WriteOptions) {
        (write.filter, write.chunk_size, write.group_size) = match self {
            Self::Fast => (Filter::None, 256 << 10, 4 << 20),
            Self::Default => (Filter::Auto, 4 << 20, 16 << 20),
            Self::Archive => (Filter::Auto, 16 << 20, 64 << 20),
            Self::Columns => (Filter::Columns, 4 << 20, 16 << 20),
        };
        let (codec, mut trial) = match self {
            Self::Fast => (Codec::Lz4, Trial { codecs: vec![Codec::Lz4], slack: 10 }),
            Self::Default | Self::Columns => {
                (Codec::Zstd(3), Trial { codecs: vec![Codec::Lz4, Codec::Zstd(3)], slack: 2 })
            }
            Self::Archive => (Codec::Zstd(19), Trial { codecs: vec![Codec::Zstd(19), Codec::Zlib(9)], slack: 0 }),
        };
        // Keep only built-in codecs.
        trial.codecs.retain(|codec| codec.is_built_in());
        write.codec = if codec.is_built_in() { codec } else { Codec::default() };
        write.trial = Some(trial);
    }

    /// Returns the plans, the block size and the handling of groups.
    #[must_use]
    pub fn options(self) -> Options {
        let (block, groups) = match self {
            Self::Fast => (1 << 16, Groups::Keep),
            Self::Default | Self::Columns => (1 << 18, Groups::Keep),
            Self::Archive => (1 << 20, Groups::Keep),
        };
        let others = if self.plan() == Plan::Naive { Vec::new() } else { vec![Plan::Naive] };
        Options { plan: self.plan(), others, block, groups, ..Options::default() }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| format!("expected one of {}", names()))
    }
}
