//! Comparison of the allocations in two traces by site, size class, thread or any other key.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

use serde::Serialize;

use crate::classes::class_of;
use crate::objects::ObjectEvent;
use crate::observer::Observer;
use crate::site_counts::{Amount, Counts, Measure, Sites};
use crate::{Error, Result};
use metatf_page::units::{count, parse_bytes};

/// An [`Observer`] that counts allocations by site, size class and thread.
///
/// # Examples
///
/// In the second of these traces, thread 2 allocates 30 bytes more than in the first:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::sites::{Measure, Tables, pairs, ranked_pairs};
/// use hatf_trace::{Event, EventSink, Result};
///
/// let by_thread = |sizes: [u64; 2]| -> Result<_> {
///     let mut tracker = HeapTracker::new(Tables::new());
///     for (thread, size) in (1_u64..).zip(sizes) {
///         tracker.event(&Event { thread, ..Event::malloc(thread << 12, size) })?;
///     }
///     Ok(tracker.observer().report().threads)
/// };
/// let pairs = pairs(by_thread([100, 20])?, by_thread([100, 50])?);
/// let changes = ranked_pairs(&pairs, Measure::Allocated, false);
/// assert_eq!(changes.iter().map(|(pair, change)| (pair.key, change.bytes)).collect::<Vec<_>>(), [(2, 30)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tables {
    sites: Sites,
    classes: Sites,
    threads: Sites,
    /// Indices in `threads`, by thread.
    places: HashMap<u64, u64>,
    /// The last thread looked up and its index, because consecutive events often come from the same thread.
    current: Option<(u64, u64)>,
}

/// The counts collected by [`Tables`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Counted {
    /// Counts by site number.
    pub sites: Vec<Counts>,
    /// Counts by [class](crate::statistics::class_of) number.
    pub classes: Vec<Counts>,
    /// Counts by thread.
    pub threads: HashMap<u64, Counts>,
}

impl Tables {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the counts.
    #[must_use]
    pub fn report(&self) -> Counted {
        let threads = self.threads.report();
        let of = |place: u64| usize::try_from(place).ok().and_then(|place| threads.get(place)).copied();
        let threads = self.places.iter().map(|(thread, place)| (*thread, of(*place).unwrap_or_default())).collect();
        Counted { sites: self.sites.report(), classes: self.classes.report(), threads }
    }

    #[inline]
    fn place(&mut self, thread: u64) -> u64 {
        match self.current {
            Some((current, place)) if current == thread => place,
            _ => {
                let next = self.places.len() as u64;
                let place = *self.places.entry(thread).or_insert(next);
                self.current = Some((thread, place));
                place
            }
        }
    }
}

impl Observer for Tables {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.sites.count(event.object.site, event)?;
        self.classes.count(class_of(event.object.size) as u64, event)?;
        let place = self.place(event.object.thread);
        self.threads.count(place, event)
    }

    fn sampled(&mut self, mean: u64) {
        [&mut self.sites, &mut self.classes, &mut self.threads].into_iter().for_each(|sites| sites.sampled(mean));
    }
}

/// The counts of one key on both sides. Counts are zero on a side that lacks the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<K> {
    /// The key.
    pub key: K,
    /// The counts of the first side.
    pub before: Counts,
    /// The counts of the second side.
    pub after: Counts,
}

/// The difference between two amounts. The fields can represent the difference between any two `u64` values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AmountChange {
    /// Blocks.
    pub blocks: i128,
    /// Bytes.
    pub bytes: i128,
}

impl AmountChange {
    /// Returns the change from `before` to `after`.
    #[must_use]
    pub fn between(before: Amount, after: Amount) -> Self {
        let less = |after: u64, before: u64| i128::from(after) - i128::from(before);
        Self { blocks: less(after.blocks, before.blocks), bytes: less(after.bytes, before.bytes) }
    }

    /// Returns the sum of two changes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { blocks: self.blocks.saturating_add(other.blocks), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl<K> Pair<K> {
    /// Returns the change in a measure.
    #[must_use]
    pub fn change(&self, measure: Measure) -> AmountChange {
        AmountChange::between(self.before.get(measure), self.after.get(measure))
    }
}

/// Pairs the rows of two tables by key, in order of first appearance. Rows with equal keys are summed.
#[must_use]
pub fn pairs<K: Clone + Eq + Hash>(
    before: impl IntoIterator<Item = (K, Counts)>,
    after: impl IntoIterator<Item = (K, Counts)>,
) -> Vec<Pair<K>> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut pairs: Vec<Pair<K>> = Vec::new();
    let mut add = |key: K, before: &Counts, after: &Counts| {
        let place = *places.entry(key.clone()).or_insert(pairs.len());
        if let Some(pair) = pairs.get_mut(place) {
            pair.before.add(before);
            pair.after.add(after);
        } else {
            pairs.push(Pair { key, before: *before, after: *after });
        }
    };
    let nothing = Counts::default();
    before.into_iter().for_each(|(key, counts)| add(key, &counts, &nothing));
    after.into_iter().for_each(|(key, counts)| add(key, &nothing, &counts));
    pairs
}

/// Returns the pairs whose measure changed, with their changes, in descending order of the change. Changes are ordered
/// by bytes and then by blocks, or vice versa if `by_blocks` is set. Equal changes keep their order.
#[must_use]
pub fn ranked_pairs<K>(pairs: &[Pair<K>], measure: Measure, by_blocks: bool) -> Vec<(&Pair<K>, AmountChange)> {
    let changes = pairs.iter().map(|pair| (pair, pair.change(measure)));
    let mut changes: Vec<_> = changes.filter(|(_, change)| *change != AmountChange::default()).collect();
    changes.sort_by_key(|(_, change)| {
        let (bytes, blocks) = (change.bytes.unsigned_abs(), change.blocks.unsigned_abs());
        std::cmp::Reverse(if by_blocks { (blocks, bytes) } else { (bytes, blocks) })
    });
    changes
}

/// A limit on the growth of a total, or on the size of a part of a total.
///
/// # Examples
///
/// ```
/// use hatf_lab::sites::Limit;
///
/// let limit: Limit = "5%".parse()?;
/// assert_eq!([1_050, 1_051].map(|after| limit.is_exceeded(1_000, after)), [false, true]);
/// let limit: Limit = "64KiB".parse()?;
/// assert_eq!(limit, Limit::Amount(65_536));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A percentage.
    Share {
        /// The digits without the decimal point.
        digits: u64,
        /// The number of digits after the decimal point.
        places: u32,
    },
    /// A number of bytes or blocks.
    Amount(u64),
}

impl Limit {
    /// The maximum number of decimal places in a percentage. Up to this number, the products below are exact.
    const PLACES: usize = 9;

    /// Returns the limit for a total of `whole`: the amount itself, or the percentage of `whole`.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Amount(most) => most,
            Self::Share { digits, places } => {
                let share = u128::from(whole) * u128::from(digits) / (100 * u128::from(10_u64.saturating_pow(places)));
                u64::try_from(share).unwrap_or(u64::MAX)
            }
        }
    }

    /// Returns whether a total grew from `before` to `after` by more than the limit. Any growth from 0 exceeds any
    /// percentage.
    #[must_use]
    pub fn is_exceeded(self, before: u64, after: u64) -> bool {
        let Some(growth) = after.checked_sub(before) else { return false };
        match self {
            Self::Amount(most) => growth > most,
            Self::Share { digits, places } => {
                let whole = 100 * u128::from(10_u64.saturating_pow(places));
                u128::from(growth).saturating_mul(whole) > u128::from(before) * u128::from(digits)
            }
        }
    }
}

impl FromStr for Limit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::Usage("expected a percentage or an amount, such as 5%, 64KiB or 1000".to_owned());
        let Some(share) = text.strip_suffix('%') else {
            return parse_bytes(text).map(Self::Amount).ok_or_else(wrong);
        };
        let (whole, places) = share.trim_end().split_once('.').unwrap_or((share.trim_end(), ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(places) || places.len() > Self::PLACES {
            return Err(wrong());
        }
        let digits = format!("{whole}{places}").parse().map_err(|_| wrong())?;
        Ok(Self::Share { digits, places: u32::try_from(places.len()).map_err(|_| wrong())? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Amount(most) => f.write_str(&count(most)),
            Self::Share { digits, places: 0 } => write!(f, "{digits}%"),
            Self::Share { digits, places } => {
                let (one, places) = (10_u64.saturating_pow(places), places as usize);
                write!(f, "{}.{:0places$}%", digits / one, digits % one)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_growth() {
        let limit = |text: &str| text.parse::<Limit>();
        for (text, before, most) in [
            ("5%", 1000, 1050),
            ("0.5%", 1000, 1005),
            ("100.25%", 10_000, 20_025),
            ("0%", 7, 7),
            ("5 %", 0, 0),
            ("64KiB", 10, 65_546),
            ("1 GiB", 0, 1 << 30),
            ("0", 3, 3),
            ("1000", 1, 1001),
            ("18446744073709551615%", 1000, u64::MAX),
        ] {
            let limit = limit(text).unwrap();
            assert!(!limit.is_exceeded(before, most), "{text}");
            assert!(most == u64::MAX || limit.is_exceeded(before, most + 1), "{text}");
            assert!(!limit.is_exceeded(before, 0), "{text}");
            assert!(most == u64::MAX || text.contains("B") || limit.of(before) == most - before, "{text}");
        }
        let most = limit("18446744073.709551615%").unwrap();
        assert!(!most.is_exceeded(u64::MAX, u64::MAX) && most.is_exceeded(0, u64::MAX));
        for text in [
            "",
            "%",
            ".%",
            "5.0000000001%",
            "-5%",
            "+5%",
            "5%%",
            "5e3%",
            "64kB",
            "-1",
            "99999999999999999999",
            "17179869184GiB",
        ] {
            assert!(limit(text).is_err(), "{text}");
        }
        let shown: Vec<_> = ["5%", "0.05%", "12.50%", "64KiB"].map(|text| limit(text).unwrap().to_string()).into();
        assert_eq!(shown, ["5%", "0.05%", "12.50%", "65,536"]);
    }
}
