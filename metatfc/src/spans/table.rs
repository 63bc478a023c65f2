//! The durations of each kind of span.

use hdrhistogram::Histogram;
use metatf_tools::spans::Span;
use std::collections::BTreeMap;

/// Number of significant decimal digits, which limits the error of percentiles to 1%.
const DIGITS: u8 = 2;

#[derive(Default)]
pub(super) struct Table(BTreeMap<String, Kind>);

#[derive(Default)]
pub(super) struct Kind {
    /// The histogram; `None` only if it could not be created.
    durations: Option<Histogram<u64>>,
    pub(super) total: u128,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) count: u64,
    /// The part of the total in which no direct child span was open.
    pub(super) own: u128,
    pub(super) busy: Option<u128>,
}

impl Table {
    /// Counts a span.
    pub(super) fn add(&mut self, span: &Span) {
        if !self.0.contains_key(&*span.name) {
            let durations = Histogram::new(DIGITS).ok();
            self.0.insert(span.name.to_string(), Kind { durations, least: u64::MAX, ..Kind::default() });
        }
        let Some(kind) = self.0.get_mut(&*span.name) else { return };
        let taken = span.nanoseconds();
        if let Some(durations) = &mut kind.durations {
            // The histogram grows as needed.
            if durations.record(taken).is_err() {
                durations.saturating_record(taken);
            }
        }
        kind.count += 1;
        kind.total += u128::from(taken);
        kind.least = kind.least.min(taken);
        kind.most = kind.most.max(taken);
        kind.own += u128::from(span.own);
        if let Some(busy) = span.busy {
            kind.busy = Some(kind.busy.unwrap_or(0) + u128::from(busy));
        }
    }

    /// Returns the kinds in descending order of their total.
    pub(super) fn sorted(&self) -> Vec<(&String, &Kind)> {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.total));
        kinds
    }
}

impl Kind {
    pub(super) fn mean(&self) -> u64 {
        saturated(self.total / u128::from(self.count.max(1)))
    }

    /// Returns the duration that this share of the spans does not exceed. The result is at most 1% too large, and never
    /// exceeds the maximum.
    pub(super) fn at(&self, share: f64) -> u64 {
        self.durations.as_ref().map_or(0, |durations| durations.value_at_quantile(share)).clamp(self.least, self.most)
    }

    /// Returns the number of spans per power of two, from the minimum to the maximum duration.
    pub(super) fn powers(&self) -> Vec<(u64, u64)> {
        let power = |value: u64| value.checked_add(1).and_then(u64::checked_next_power_of_two).unwrap_or(u64::MAX);
        let mut powers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut below = power(self.least);
        while below <= power(self.most) {
            powers.insert(below, 0);
            let Some(next) = below.checked_mul(2) else { break };
            below = next;
        }
        for value in self.durations.iter().flat_map(Histogram::iter_recorded) {
            let taken = value.value_iterated_to().clamp(self.least, self.most);
            *powers.entry(power(taken)).or_default() += value.count_at_value();
        }
        powers.into_iter().collect()
    }
}

pub(super) fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
