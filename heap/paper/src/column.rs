//! The columns of the tables, which are the encodings with their packings.

use std::fmt;
use std::str::FromStr;

use metatf::container::{Codec, Filter, WriteOptions};
use metatf_tools::recode::{Plan, Preset};
use serde::Serialize;

/// An encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Raw records with four 8-byte fields.
    Simple,
    /// The paper's simple binary with four 4-byte fields, if addresses and sizes fit.
    Simple32,
    /// A line of text per record.
    Ascii,
    /// HATF 1.0 records with planned metadata records. `naive` is the paper's "HATF (naive)", `best` is its "HATF
    /// (best)", and the other plans are the columns of its tables 7 and 8. `optimal` is not in the paper.
    Hatf(Plan),
    /// The same records as in [`Column::Hatf`], with metadata records as long as in HATF 1.0. Each argument has 8
    /// bytes, whereas arguments in [`Column::Hatf`] have as few bytes as necessary.
    HatfLong(Plan),
    /// The fields of the simple binary as Parquet columns, each in the most suitable encoding. They are written by
    /// pyarrow, if it is installed.
    Parquet,
    /// Each field of the simple binary in its own stream.
    SplitStream,
    /// The paper's split, which is `best` with all unencoded addresses in a separate file.
    SplitAddr,
    /// `best` for sizes, with all addresses in a stream section.
    AddressSection,
    /// `dtds/heap-split.dtd`, which uses the paper's interpretations, with separate streams for filter and codec.
    Split,
    /// `dtds/heap-values.dtd`, which uses predictors without knowledge of heaps.
    Values,
    /// `dtds/heap.dtd`, which uses a model of the heap.
    Heap,
}

/// The explanation of the star in titles.
pub(super) const STAR: &str = "*: not in the paper";

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Uncompressed.
    Raw,
    /// DEFLATE at level 6, which is gzip's default. In Meta-TF, each section is compressed without a filter.
    Gzip,
    /// xz's default. Requires the xz command.
    Xz,
    /// zstd at level 3. In Meta-TF, the preset `default` with filters.
    #[serde(rename = "zstd-3")]
    Zstd3,
    /// zstd at level 19. In Meta-TF, the preset `archive` with filters.
    #[serde(rename = "zstd-19")]
    Zstd19,
}

impl Column {
    /// All columns.
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

    /// Returns the column's name on the command line and in JSON.
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

    /// Returns the column's title in tables. A star marks encodings that are not in the paper.
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

    /// Returns the reason why the column may be missing in a packing.
    pub(super) fn absence(self, packing: Packing) -> &'static str {
        match (self, packing) {
            (Self::Simple32, _) => "an address or a size requires more than 32 bits",
            (Self::Parquet, _) => "python3 with pyarrow is not available",
            (_, Packing::Xz) => "xz is not available",
            _ => "it was not measured",
        }
    }

    /// Returns the packings of the column.
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

    /// Returns whether the column's times are measured. This applies to the encodings in the paper's tables 5 and 6 and
    /// to those of this project.
    #[must_use]
    pub fn is_timed(self) -> bool {
        match self {
            Self::Parquet | Self::HatfLong(_) => false,
            Self::Hatf(plan) => matches!(plan, Plan::Naive | Plan::Best | Plan::Optimal),
            _ => true,
        }
    }

    /// Returns the packing used for measuring times.
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
        found.ok_or_else(|| format!("expected one of {}", names()))
    }
}

impl Packing {
    /// Returns the packing's name in tables.
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

    /// Returns the options for writing a Meta-TF trace.
    pub(super) fn write_options(self) -> WriteOptions {
        let mut write = WriteOptions::default();
        match self {
            Self::Zstd3 => Preset::Default.apply(&mut write),
            Self::Zstd19 => Preset::Archive.apply(&mut write),
            // As in a compressed file, each section is compressed as a single unit.
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
