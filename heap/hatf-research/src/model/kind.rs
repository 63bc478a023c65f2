//! Kinds of models. A kind consists of one choice each for sizes, interarrival times and holding times (section 3.6 of
//! the paper).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use hatf_lab::{Error, Result};

/// Declares the choices and their names.
macro_rules! choices {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// A model of a single quantity.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Choice {
            $($(#[$doc])* $variant,)+
        }

        impl Choice {
            /// All choices, starting with the five of the paper. Its variants follow.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name of the choice.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

choices! {
    /// Uniform from 0 to twice the mean (3.1).
    Mean = "mean",
    /// The full histogram (3.2).
    Cdf = "cdf",
    /// Exponential for each size class (3.3, as measured in 5.1).
    Size = "size",
    /// The mean of a time bucket (3.4).
    Time = "time",
    /// Normal for each pair of previous and current size (3.5, as measured in 5.1).
    Trans = "trans",
    /// Normal around the mean (5.4.1).
    MeanNormal = "mean-normal",
    /// Pareto, fitted by the method of moments (5.4.1).
    MeanPareto = "mean-pareto",
    /// The histogram, approximated by the markers of the P² algorithm (5.4.2).
    CdfP2 = "cdf-p2",
    /// Uniform from 0 to twice the mean for each size class (a literal reading of 3.3).
    SizeUniform = "size-uniform",
    /// Normally distributed holding times for each size class (5.4.1).
    SizeNormal = "size-normal",
    /// Normal for each time bucket (3.4, 5.4.1).
    TimeNormal = "time-normal",
    /// The mean for each pair of previous and current size.
    TransMean = "trans-mean",
    /// An outline of the live heap over time, in at most 64 KiB. This choice is specific to this project and cannot be
    /// part of a mixture.
    Outline = "outline",
}

/// A part of the trace data on which a choice depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Count, sum and sum of squares.
    Moments,
    /// The frequency of each value.
    Histogram,
    /// Quantiles from the P² algorithm.
    Markers,
    /// Size classes.
    Classes,
    /// Time buckets.
    Buckets,
    /// Size pairs.
    Transitions,
    /// Frames of events.
    Outline,
}

impl Choice {
    pub(super) fn part(self) -> Part {
        match self {
            Self::Mean | Self::MeanNormal | Self::MeanPareto => Part::Moments,
            Self::Cdf => Part::Histogram,
            Self::CdfP2 => Part::Markers,
            Self::Size | Self::SizeUniform | Self::SizeNormal => Part::Classes,
            Self::Time | Self::TimeNormal => Part::Buckets,
            Self::Trans | Self::TransMean => Part::Transitions,
            Self::Outline => Part::Outline,
        }
    }

    fn of(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|choice| choice.name() == name);
        let names = || Self::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>().join(", ");
        found.copied().ok_or_else(|| Error::Usage(format!("model `{name}` is not one of {}", names())))
    }
}

/// A kind of model, with one choice per quantity. In the paper's models and their variants, all three choices are
/// equal.
///
/// # Examples
///
/// ```
/// use hatf_research::model::{Choice, Kind};
///
/// let mixture: Kind = "mix:size=cdf,iat=time,ht=size".parse()?;
/// assert_eq!((mixture.size, mixture.iat, mixture.ht), (Choice::Cdf, Choice::Time, Choice::Size));
/// assert_eq!("cdf".parse::<Kind>()?, Kind::same(Choice::Cdf));
/// assert!("median".parse::<Kind>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Kind {
    /// The model of sizes.
    pub size: Choice,
    /// The model of interarrival times.
    pub iat: Choice,
    /// The model of holding times.
    pub ht: Choice,
}

impl Kind {
    /// The paper's five models.
    pub const FIVE: [Self; 5] = [
        Self::same(Choice::Mean),
        Self::same(Choice::Cdf),
        Self::same(Choice::Size),
        Self::same(Choice::Time),
        Self::same(Choice::Trans),
    ];

    /// Creates a model that uses one choice for all quantities.
    #[must_use]
    pub const fn same(choice: Choice) -> Self {
        Self { size: choice, iat: choice, ht: choice }
    }

    pub(super) fn choices(self) -> [Choice; 3] {
        [self.size, self.iat, self.ht]
    }

    /// Returns whether one of the choices depends on this part.
    pub(super) fn needs(self, part: Part) -> bool {
        self.choices().iter().any(|choice| choice.part() == part)
    }

    /// Returns whether all trials are equal, because the model uses no random numbers.
    #[must_use]
    pub fn is_certain(self) -> bool {
        self == Self::same(Choice::Time)
    }

    /// Checks that the three quantities can be drawn in some order.
    fn checked(self) -> Result<Self> {
        let wrong = |why: &str| Err(Error::Usage(format!("model `{self}`: {why}")));
        if self.needs(Part::Outline) && self != Self::same(Choice::Outline) {
            return wrong("`outline` cannot be part of a mixture");
        }
        match (self.size.part(), self.iat.part()) {
            (size, Part::Classes) if size != Part::Classes => {
                wrong("this iat model has one process for each size class, so it requires size=size")
            }
            (Part::Buckets, Part::Transitions) => wrong("iat depends on the size, but size depends on the time"),
            _ => Ok(self),
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    /// Parses the name of a choice, or `mix:size=CHOICE,iat=CHOICE,ht=CHOICE`.
    fn from_str(text: &str) -> Result<Self> {
        let Some(mix) = text.strip_prefix("mix:") else { return Choice::of(text).map(Self::same) };
        let mut given = [None; 3];
        for part in mix.split(',') {
            let (quantity, name) = part.split_once('=').unwrap_or((part, ""));
            let place = ["size", "iat", "ht"].iter().position(|known| *known == quantity);
            match place.and_then(|place| given.get_mut(place)) {
                Some(place @ None) => *place = Some(Choice::of(name)?),
                _ => return Err(form(text)),
            }
        }
        let [Some(size), Some(iat), Some(ht)] = given else { return Err(form(text)) };
        Self { size, iat, ht }.checked()
    }
}

fn form(text: &str) -> Error {
    Error::Usage(format!("model `{text}`: expected a mixture such as mix:size=cdf,iat=time,ht=size"))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, iat, ht } = *self;
        if self == &Self::same(size) {
            return f.pad(size.name());
        }
        f.pad(&format!("mix:size={},iat={},ht={}", size.name(), iat.name(), ht.name()))
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for Kind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let mixtures = ["mix:size=cdf,iat=time,ht=size", "mix:size=size,iat=size-uniform,ht=trans-mean"];
        for name in Choice::ALL.iter().map(|choice| choice.name()).chain(mixtures) {
            assert_eq!(name.parse::<Kind>().unwrap().to_string(), name);
        }
        assert_eq!("mix:ht=cdf,size=cdf,iat=cdf".parse::<Kind>().unwrap(), Kind::same(Choice::Cdf));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("median", "`median` is not one of mean, cdf, size, time, trans, mean-normal"),
            ("mix:size=cdf", "expected a mixture such as"),
            ("mix:size=cdf,size=cdf,ht=cdf", "expected a mixture such as"),
            ("mix:size=cdf,iat=x,ht=cdf", "`x` is not one of"),
            ("mix:size=cdf,iat=size,ht=cdf", "so it requires size=size"),
            ("mix:size=outline,iat=cdf,ht=cdf", "`outline` cannot be part of a mixture"),
            ("mix:size=time,iat=trans,ht=cdf", "iat depends on the size"),
        ] {
            let error = text.parse::<Kind>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
