//! Latencies of single calls.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::operation::Kind;
use hatf_lab::statistics::Histogram;

/// The maximum sizes of all classes but the last.
const CLASSES: [u64; 6] = [64, 256, 1 << 10, 8 << 10, 64 << 10, 1 << 20];

const CALLS: [(Kind, &str); 5] = [
    (Kind::Malloc, "malloc"),
    (Kind::Calloc, "calloc"),
    (Kind::Realloc, "realloc"),
    (Kind::Aligned, "memalign"),
    (Kind::Free, "free"),
];

/// Latencies of calls to one function for blocks in one size class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The function.
    pub function: String,
    /// The maximum size of the class, or `None` for the class of the largest blocks.
    pub largest: Option<u64>,
    /// The number of calls.
    pub calls: u64,
    /// The median in nanoseconds. Like all the following values, it includes the cost of reading the clock.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The maximum.
    pub most: u64,
}

/// Histograms of latencies by function and size.
#[derive(Default)]
pub(super) struct Latencies(Vec<Option<Histogram>>);

impl Latencies {
    /// Records the latency of a call.
    #[inline]
    pub(super) fn add(&mut self, kind: Kind, size: u64, from: Instant, to: Instant) {
        let class = CLASSES.iter().position(|largest| size <= *largest).unwrap_or(CLASSES.len());
        let at = kind as usize * (CLASSES.len() + 1) + class;
        if self.0.len() <= at {
            self.0.resize_with(CALLS.len() * (CLASSES.len() + 1), || None);
        }
        if let Some(histogram) = self.0.get_mut(at) {
            let elapsed = u64::try_from((to - from).as_nanos()).unwrap_or(u64::MAX);
            histogram.get_or_insert_default().add(elapsed, 0);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize_with(other.0.len(), || None);
        }
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            if let Some(other) = other {
                mine.get_or_insert_default().merge(other);
            }
        }
    }

    /// Returns the quantiles of the recorded latencies.
    pub(super) fn finish(&self) -> Vec<Latency> {
        let classes = CLASSES.iter().copied().map(Some).chain([None]);
        let rows = CALLS.iter().flat_map(|(_, name)| classes.clone().map(move |largest| (*name, largest)));
        let seen = rows.zip(&self.0).filter_map(|(row, histogram)| Some((row, histogram.as_ref()?)));
        let latency = |((function, largest), histogram): ((&str, Option<u64>), &Histogram)| Latency {
            function: function.to_owned(),
            largest,
            calls: histogram.count(),
            p50: histogram.quantile(500),
            p90: histogram.quantile(900),
            p99: histogram.quantile(990),
            p999: histogram.quantile(999),
            most: histogram.quantile(1000),
        };
        seen.map(latency).collect()
    }
}
