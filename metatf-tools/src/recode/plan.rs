//! The named plans.

use std::fmt;

/// The method for choosing the encoding of a trace. The named plans are the plans of section 3.3 of the paper,
/// generalized to any leaf; the module `paper_plans` describes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Uses the encoding of the DTD. If a value does not fit, its field is widened and stays wide.
    Naive,
    /// Widens and narrows fields (the paper's "small size").
    SmallSize,
    /// Encodes runs of one value as `default` ("same size").
    SameSize,
    /// Combines `SmallSize` and `SameSize` ("combined size").
    CombinedSize,
    /// Encodes runs of close values as `baseOffset` with 1 byte.
    BaseOffset1,
    /// Encodes runs of close values as `baseOffset` with 2 bytes.
    BaseOffset2,
    /// Uses the better of `BaseOffset1` and `BaseOffset2` at every position.
    BestBaseOffset,
    /// Encodes runs with equal steps as `stride`.
    Stride,
    /// Uses the best of the plans above for every field.
    Best,
    /// Uses the cheapest path through widths and interpretations for every field.
    #[default]
    Optimal,
}

impl Plan {
    /// All plans.
    pub const ALL: [Self; 10] = [
        Self::Naive,
        Self::SmallSize,
        Self::SameSize,
        Self::CombinedSize,
        Self::BaseOffset1,
        Self::BaseOffset2,
        Self::BestBaseOffset,
        Self::Stride,
        Self::Best,
        Self::Optimal,
    ];

    /// Returns the plan's name, as in the paper's tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::SmallSize => "small-size",
            Self::SameSize => "same-size",
            Self::CombinedSize => "combined-size",
            Self::BaseOffset1 => "base-offset-1",
            Self::BaseOffset2 => "base-offset-2",
            Self::BestBaseOffset => "best-base-offset",
            Self::Stride => "stride",
            Self::Best => "best",
            Self::Optimal => "optimal",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
