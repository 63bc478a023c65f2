//! Presets: plan, codec, filter, chunks and groups together.

use super::{Groups, Options, Plan};
use metatf::container::{Codec, Filter, Trial, WriteOptions};
use std::fmt;
use std::str::FromStr;

/// What a trace is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// To be written and read at once: LZ4 or nothing, no filter, no planning.
    Fast,
    /// To be kept and worked with.
    #[default]
    Default,
    /// To be sent or put away: as small as it gets.
    Archive,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Default, Self::Archive];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Default => "default",
            Self::Archive => "archive",
        }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(self) -> Plan {
        match self {
            Self::Fast => Plan::Naive,
            Self::Default | Self::Archive => Plan::Optimal,
        }
    }

    /// Sets codecs, filter, and the size of chunks and groups.
    pub fn apply(self, write: &mut WriteOptions) {
        (write.filter, write.chunk_size, write.group_size) = match self {
            Self::Fast => (Filter::None, 256 << 10, 4 << 20),
            Self::Default => (Filter::Auto, 4 << 20, 16 << 20),
            Self::Archive => (Filter::Auto, 16 << 20, 64 << 20),
        };
        let (codec, mut trial) = match self {
            Self::Fast => (Codec::Lz4, Trial { codecs: vec![Codec::Lz4], slack: 10 }),
            Self::Default => (Codec::Zstd(3), Trial { codecs: vec![Codec::Lz4, Codec::Zstd(3)], slack: 2 }),
            Self::Archive => (Codec::Zstd(19), Trial { codecs: vec![Codec::Zstd(19), Codec::Zlib(9)], slack: 0 }),
        };
        // Of the codecs those that are built in.
        trial.codecs.retain(|codec| codec.is_built_in());
        write.codec = if codec.is_built_in() { codec } else { Codec::default() };
        write.trial = Some(trial);
    }

    /// Plans, blocks and groups.
    #[must_use]
    pub fn options(self) -> Options {
        let (block, groups) = match self {
            Self::Fast => (1 << 16, Groups::Keep),
            Self::Default => (1 << 18, Groups::Keep),
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
        Self::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| format!("one of {}", names()))
    }
}
