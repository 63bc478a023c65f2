//! Which model: a choice each for sizes, interarrival times and holding times (the paper's section 3.6).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Declares the choices, with their names.
macro_rules! choices {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// How one quantity is modelled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Choice {
            $($(#[$doc])* $variant,)+
        }

        impl Choice {
            /// All choices: the paper's five, then its variants.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns its name.
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
    /// The histogram (3.2).
    Cdf = "cdf",
    /// By size class, exponential (3.3, as measured in 5.1).
    Size = "size",
    /// The mean of a bucket of time (3.4).
    Time = "time",
    /// By the size before and this one, normal (3.5, as measured in 5.1).
    Trans = "trans",
    /// Normal about the mean (5.4.1).
    MeanNormal = "mean-normal",
    /// Pareto, by the method of moments (5.4.1).
    MeanPareto = "mean-pareto",
    /// Markers of the histogram by the P² algorithm (5.4.2).
    CdfP2 = "cdf-p2",
    /// By size class, uniform from 0 to twice the mean (3.3 read literally).
    SizeUniform = "size-uniform",
    /// By size class, holding times normal (5.4.1).
    SizeNormal = "size-normal",
    /// By bucket of time, normal (3.4, 5.4.1).
    TimeNormal = "time-normal",
    /// By the size before and this one, the mean itself.
    TransMean = "trans-mean",
    /// The live heap over time, in 64 KiB: this project's own, and no part of a mixture.
    Outline = "outline",
}

/// What a choice needs of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Count, sum and sum of squares.
    Moments,
    /// How often each value came.
    Histogram,
    /// Quantiles by the P² algorithm.
    Markers,
    /// Size classes.
    Classes,
    /// Buckets of time.
    Buckets,
    /// Pairs of sizes.
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
        found.copied().ok_or_else(|| Error::Usage(format!("model `{name}` is none of {}", names())))
    }
}

/// A model: one choice for each quantity. In the paper's models and their variants all three are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Kind {
    /// How sizes are modelled.
    pub size: Choice,
    /// How interarrival times are.
    pub iat: Choice,
    /// How holding times are.
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

    /// Makes a model of one choice.
    #[must_use]
    pub const fn same(choice: Choice) -> Self {
        Self { size: choice, iat: choice, ht: choice }
    }

    pub(super) fn choices(self) -> [Choice; 3] {
        [self.size, self.iat, self.ht]
    }

    /// Returns whether a choice needs this part.
    pub(super) fn needs(self, part: Part) -> bool {
        self.choices().iter().any(|choice| choice.part() == part)
    }

    /// Returns whether a trial needs no random number, so that all trials are one.
    #[must_use]
    pub fn is_certain(self) -> bool {
        self == Self::same(Choice::Time)
    }

    /// Checks that the three can be drawn in some order.
    fn checked(self) -> Result<Self> {
        let wrong = |why: &str| Err(Error::Usage(format!("model `{self}`: {why}")));
        if self.needs(Part::Outline) && self != Self::same(Choice::Outline) {
            return wrong("outline is no part of a mixture");
        }
        match (self.size.part(), self.iat.part()) {
            (size, Part::Classes) if size != Part::Classes => {
                wrong("iat is of one process for each size class, which needs size=size")
            }
            (Part::Buckets, Part::Transitions) => wrong("iat needs the size first, and size the time"),
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
            ("median", "`median` is none of mean, cdf, size, time, trans, mean-normal"),
            ("mix:size=cdf", "expected a mixture such as"),
            ("mix:size=cdf,size=cdf,ht=cdf", "expected a mixture such as"),
            ("mix:size=cdf,iat=x,ht=cdf", "`x` is none of"),
            ("mix:size=cdf,iat=size,ht=cdf", "which needs size=size"),
            ("mix:size=outline,iat=cdf,ht=cdf", "outline is no part of a mixture"),
            ("mix:size=time,iat=trans,ht=cdf", "iat needs the size first"),
        ] {
            let error = text.parse::<Kind>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
