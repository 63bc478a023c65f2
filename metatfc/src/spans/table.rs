//! Durations by kind of span.

use super::pairs::{Done, Pairs};
use crate::output::versioned;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Decimal digits that durations keep: percentiles are at most 1 % off.
const DIGITS: u8 = 2;

#[derive(Default)]
pub(super) struct Table(BTreeMap<String, Kind>);

#[derive(Default)]
struct Kind {
    /// `None` only if it could not be made.
    durations: Option<Histogram<u64>>,
    total: u128,
    least: u64,
    most: u64,
    count: u64,
    /// Of the total, in which no span right below one was open.
    own: u128,
    busy: Option<u128>,
}

impl Table {
    /// Counts a span.
    pub(super) fn add(&mut self, done: &Done) {
        if !self.0.contains_key(&done.name) {
            let durations = Histogram::new(DIGITS).ok();
            self.0.insert(done.name.clone(), Kind { durations, least: u64::MAX, ..Kind::default() });
        }
        let Some(kind) = self.0.get_mut(&done.name) else { return };
        let taken = done.nanoseconds();
        if let Some(durations) = &mut kind.durations {
            // It grows as far as it has to.
            if durations.record(taken).is_err() {
                durations.saturating_record(taken);
            }
        }
        kind.count += 1;
        kind.total += u128::from(taken);
        kind.least = kind.least.min(taken);
        kind.most = kind.most.max(taken);
        kind.own += u128::from(done.own);
        if let Some(busy) = done.busy {
            kind.busy = Some(kind.busy.unwrap_or(0) + u128::from(busy));
        }
    }

    /// The kinds that took most first.
    fn sorted(&self) -> Vec<(&String, &Kind)> {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.total));
        kinds
    }

    pub(super) fn text(&self, pairs: &Pairs, out: &mut Vec<u8>) {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  span",
            "count", "total", "self", "busy", "mean", "50 %", "90 %", "99 %", "most"
        );
        for (name, kind) in self.sorted() {
            let busy = kind.busy.map_or("-".to_owned(), |busy| duration(saturated(busy)));
            let numbers = [kind.mean(), kind.at(0.5), kind.at(0.9), kind.at(0.99), kind.most].map(duration);
            let [mean, half, nine, ninety_nine, most] = &numbers;
            let [total, own] = [kind.total, kind.own].map(|sum| duration(saturated(sum)));
            let _ = write!(
                text,
                "{:>10} {total:>10} {own:>10} {busy:>10} {mean:>10} {half:>10} {nine:>10} {ninety_nine:>10} {most:>10}  ",
                kind.count
            );
            text.push_str(&metatf_cli::shown(name));
            text.push('\n');
        }
        for (name, kind) in self.sorted() {
            let powers = kind.powers();
            let highest = powers.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
            text.push('\n');
            text.push_str(&metatf_cli::shown(name));
            text.push('\n');
            for (below, count) in powers {
                let share = usize::try_from(u128::from(count) * 40 / u128::from(highest)).unwrap_or(0);
                let bar = if count > 0 { "#".repeat(share.max(1)) } else { String::new() };
                let _ = writeln!(text, "{}", format!("  under {:>9} {count:>10}  {bar}", duration(below)).trim_end());
            }
        }
        for (count, what) in [
            (pairs.open(), "have not ended"),
            (pairs.without_end, "have no end: their number came again, or one around them ended"),
            (pairs.without_begin, "ended whose beginnings are not in the trace"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "\n{count} spans {what}");
            }
        }
        out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn json(&self, pairs: &Pairs, out: &mut Vec<u8>) {
        let kinds: Vec<Value> = self
            .sorted()
            .into_iter()
            .map(|(name, kind)| {
                let powers = kind.powers().into_iter();
                json!({
                    "name": name,
                    "count": kind.count,
                    "total_ns": saturated(kind.total),
                    "self_ns": saturated(kind.own),
                    "busy_ns": kind.busy.map(saturated),
                    "mean_ns": kind.mean(),
                    "min_ns": kind.least,
                    "p50_ns": kind.at(0.5),
                    "p90_ns": kind.at(0.9),
                    "p99_ns": kind.at(0.99),
                    "max_ns": kind.most,
                    "histogram": powers.map(|(below, count)| json!({"below_ns": below, "count": count})).collect::<Vec<_>>(),
                })
            })
            .collect();
        let json = versioned(&json!({
            "kinds": kinds,
            "tree": pairs.tree.json(),
            "open": pairs.open(),
            "without_end": pairs.without_end,
            "without_begin": pairs.without_begin,
        }));
        out.extend_from_slice(format!("{json:#}\n").as_bytes());
    }
}

impl Kind {
    fn mean(&self) -> u64 {
        saturated(self.total / u128::from(self.count.max(1)))
    }

    /// Returns the duration that this share of spans does not exceed; at most 1 % more than that, and no more than any took.
    fn at(&self, share: f64) -> u64 {
        self.durations.as_ref().map_or(0, |durations| durations.value_at_quantile(share)).clamp(self.least, self.most)
    }

    /// Returns counts by powers of two, from that of the least to that of the most.
    fn powers(&self) -> Vec<(u64, u64)> {
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

fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Formats nanoseconds with three digits.
#[allow(clippy::cast_precision_loss, reason = "a duration to be read")]
pub(super) fn duration(nanoseconds: u64) -> String {
    let (value, unit) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (nanoseconds as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanoseconds as f64 / 1e6, "ms"),
        _ => (nanoseconds as f64 / 1e9, "s"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}
