//! The columns of the tables: which encodings there are, and how each is compressed.

use std::fmt;
use std::str::FromStr;

use metatf::container::{Codec, Filter, WriteOptions};
use metatf_tools::recode::{Plan, Preset};
use serde::Serialize;

/// An encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Raw records: four fields of 8 bytes.
    Simple,
    /// The paper's simple binary: four fields of 4 bytes, where addresses and sizes fit.
    Simple32,
    /// A line of text for a record.
    Ascii,
    /// HATF 1.0's records, with metadata records by a plan: `naive` is the paper's "HATF (naive)", `best` its "HATF (best)",
    /// the others are the columns of its tables 7 and 8. `optimal` is not the paper's.
    Hatf(Plan),
    /// The same, with metadata records as long as HATF 1.0's: their arguments have 8 bytes, where `Hatf`'s have as few as hold them.
    HatfLong(Plan),
    /// The simple binary's fields as columns of Parquet, by pyarrow if python3 has it, each in the encoding that suits it best.
    Parquet,
    /// Each field of the simple binary in a stream of its own.
    SplitStream,
    /// The paper's: `best`, of which all unencoded addresses are a file of their own.
    SplitAddr,
    /// `best` for sizes, all addresses in a stream section.
    AddressSection,
    /// `dtds/heap-split.dtd`: the paper's interpretations, streams for filter and codec.
    Split,
    /// `dtds/heap-values.dtd`: predictors that know nothing of heaps.
    Values,
    /// `dtds/heap.dtd`: a model of the heap.
    Heap,
}

/// The meaning of a star in a title.
pub(super) const STAR: &str = "*: not in the paper";

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Not.
    Raw,
    /// As gzip does by default: DEFLATE at level 6. In Meta-TF section by section, with no filter.
    Gzip,
    /// xz by default, if the command is there.
    Xz,
    /// zstd at level 3. In Meta-TF the preset `default`, with filters.
    #[serde(rename = "zstd-3")]
    Zstd3,
    /// zstd at level 19. In Meta-TF the preset `archive`, with filters.
    #[serde(rename = "zstd-19")]
    Zstd19,
}

impl Column {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Simple32,
        Self::Simple,
        Self::Parquet,
        Self::Ascii,
        Self::Hatf(Plan::Naive),
        Self::Hatf(Plan::SmallSize),
        Self::Hatf(Plan::SameSize),
        Self::Hatf(Plan::CombinedSize),
        Self::Hatf(Plan::BaseOffset1),
        Self::Hatf(Plan::BaseOffset2),
        Self::Hatf(Plan::BestBaseOffset),
        Self::Hatf(Plan::Stride),
        Self::Hatf(Plan::Best),
        Self::HatfLong(Plan::SameSize),
        Self::HatfLong(Plan::Best),
        Self::SplitStream,
        Self::SplitAddr,
        Self::AddressSection,
        Self::Hatf(Plan::Optimal),
        Self::Split,
        Self::Values,
        Self::Heap,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Simple32 => "simple32",
            Self::Parquet => "parquet",
            Self::Ascii => "ascii",
            Self::Hatf(plan) => plan.name(),
            Self::HatfLong(Plan::SameSize) => "same-size-12",
            Self::HatfLong(_) => "best-12",
            Self::SplitStream => "split-stream",
            Self::SplitAddr => "split-addr",
            Self::AddressSection => "address-section",
            Self::Split => "split",
            Self::Values => "values",
            Self::Heap => "heap",
        }
    }

    /// Its title in tables; a star marks what is not the paper's.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Simple => "64-bit Simple Binary*",
            Self::Simple32 => "Simple Binary",
            Self::Parquet => "Parquet*",
            Self::Ascii => "ASCII",
            Self::Hatf(Plan::Naive) => "HATF (naive)",
            Self::Hatf(Plan::SmallSize) => "Small Size",
            Self::Hatf(Plan::SameSize) => "Same Size",
            Self::Hatf(Plan::CombinedSize) => "Combined Size",
            Self::Hatf(Plan::BaseOffset1) => "BaseOffset 1-byte",
            Self::Hatf(Plan::BaseOffset2) => "BaseOffset 2-bytes",
            Self::Hatf(Plan::BestBaseOffset) => "Best BaseOffset",
            Self::Hatf(Plan::Stride) => "Stride",
            Self::Hatf(Plan::Best) => "HATF (best)",
            Self::Hatf(Plan::Optimal) => "HATF (optimal)*",
            Self::HatfLong(Plan::SameSize) => "Same Size, 12 bytes*",
            Self::HatfLong(_) => "HATF (best), 12 bytes*",
            Self::SplitStream => "Split Stream",
            Self::SplitAddr => "HATF SplitAddr",
            Self::AddressSection => "Address Section*",
            Self::Split => "heap-split*",
            Self::Values => "heap-values*",
            Self::Heap => "heap*",
        }
    }

    /// Why it may be absent in a packing.
    pub(super) fn absence(self, packing: Packing) -> &'static str {
        match (self, packing) {
            (Self::Simple32, _) => "an address or a size takes more than 32 bits",
            (Self::Parquet, _) => "python3 with pyarrow is not there",
            (_, Packing::Xz) => "xz is not there",
            _ => "it was not made",
        }
    }

    /// How it is compressed.
    #[must_use]
    pub fn packings(self) -> &'static [Packing] {
        use Packing::{Gzip, Raw, Xz, Zstd3, Zstd19};
        match self {
            Self::Simple => &[Raw, Gzip, Xz, Zstd3, Zstd19],
            Self::Parquet => &[Zstd3, Zstd19],
            Self::Hatf(Plan::Optimal) => &[Raw, Gzip, Zstd3, Zstd19],
            Self::Split | Self::Values | Self::Heap => &[Raw, Zstd3, Zstd19],
            _ => &[Raw, Gzip],
        }
    }

    /// Returns whether its times are measured: the encodings of the paper's tables 5 and 6, and ours.
    #[must_use]
    pub fn is_timed(self) -> bool {
        match self {
            Self::Parquet | Self::HatfLong(_) => false,
            Self::Hatf(plan) => matches!(plan, Plan::Naive | Plan::Best | Plan::Optimal),
            _ => true,
        }
    }

    /// How it is compressed where times are measured.
    #[must_use]
    pub fn quick_packing(self) -> Packing {
        match self {
            Self::Split | Self::Values | Self::Heap => Packing::Zstd3,
            _ => Packing::Gzip,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|column| column.name() == name);
        found.ok_or_else(|| format!("a column is one of {}", names()))
    }
}

impl Packing {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd3 => "zstd-3",
            Self::Zstd19 => "zstd-19",
        }
    }

    /// How a Meta-TF trace is written.
    pub(super) fn write_options(self) -> WriteOptions {
        let mut write = WriteOptions::default();
        match self {
            Self::Zstd3 => Preset::Default.apply(&mut write),
            Self::Zstd19 => Preset::Archive.apply(&mut write),
            // As a file would be compressed: all of a section at once.
            Self::Raw | Self::Gzip | Self::Xz => {
                Preset::Archive.apply(&mut write);
                write.codec = if self == Self::Gzip { Codec::Zlib(6) } else { Codec::Stored };
                write.filter = Filter::None;
                write.trial = None;
            }
        }
        write
    }
}
