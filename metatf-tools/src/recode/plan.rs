//! The plans by name.

use std::fmt;
use std::str::FromStr;

/// How the encoding of a trace is chosen. The named ones are those of the paper's section 3.3, put for any leaf; what each
/// does is said in the module `named`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// As the DTD says; a field is widened where a value does not fit, and stays wide.
    Naive,
    /// Fields are widened and narrowed (the paper's "small size").
    SmallSize,
    /// Runs of one value become `default` ("same size").
    SameSize,
    /// Both ("combined size").
    CombinedSize,
    /// Runs near one another become `baseOffset`, 1 byte each.
    BaseOffset1,
    /// The same, 2 bytes each.
    BaseOffset2,
    /// At every place the better of the two.
    BestBaseOffset,
    /// Runs of equal steps become `stride`.
    Stride,
    /// For every field that plan of the above that makes it smallest.
    Best,
    /// For every field the cheapest path through widths and interpretations.
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

    /// The plan's name, as a command line has it.
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

impl FromStr for Plan {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|plan| plan.name() == name).ok_or_else(|| format!("a plan is one of {}", names()))
    }
}
