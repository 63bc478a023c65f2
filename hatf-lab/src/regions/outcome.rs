//! What a memory manager did, and how much of its memory was in fragments.

use serde::Serialize;

use super::parts::{OfMethod, OfRegion};
use super::settings::Settings;
use super::{Inter, Intra};
use crate::curve::Curves;

/// The outcome of one simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The settings: `64 first capture`.
    pub name: String,
    /// Bytes of a block.
    pub block: u64,
    /// The sum of `f_i` over all allocations: bytes free in the region that grew though they would have been enough.
    pub intra_sum: u64,
    /// The largest `f_i`.
    pub intra_most: u64,
    /// Allocations with an `f_i` over 0.
    pub intra_count: u64,
    /// The sum of `F_i`: bytes free in the prefix of a region that grew though another had a block with enough.
    pub inter_sum: u64,
    /// The largest `F_i`.
    pub inter_most: u64,
    /// Allocations with an `F_i` over 0.
    pub inter_count: u64,
    /// Most bytes of blocks of active regions.
    pub most_bytes: u64,
    /// Blocks looked at to find one.
    pub blocks_looked_at: u64,
    /// Blocks added, with the first of each region.
    pub blocks_added: u64,
    /// Blocks freed at exits.
    pub blocks_freed: u64,
    /// Objects collected at exits.
    pub objects_collected: u64,
    /// Objects larger than a block.
    pub oversize: u64,
    /// Over regions with allocations: the mean over the region's allocations of `100 f_i` by the bytes of its blocks (Figure 6).
    pub used_regions: Percent,
    /// The same, with regions without allocations as 0.
    pub all_regions: Percent,
    /// Over allocations: `100 f_i` by the bytes of blocks of all active regions (Figure 5).
    pub over_time: Percent,
    /// The same, with the last `f` of every active region.
    pub carried_over_time: Percent,
    /// `over_time` in thousandths of a percent: of each allocation, or, where there are more than 511, the most in each stretch of `step`.
    pub curve: Option<Curves>,
    /// What the regions of each method came to, in the order in which methods are first named; empty where it was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<OfMethod>,
    /// What each region came to, in the order in which they were entered: of more than [`MOST_REGIONS`](super::MOST_REGIONS) those with the
    /// most bytes of blocks; empty where it was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<OfRegion>,
}

impl Outcome {
    pub(super) fn new(settings: Settings) -> Self {
        let intra = match settings.intra {
            Intra::First => "first",
            Intra::Best => "best",
        };
        let inter = match settings.inter {
            Inter::Capture => "capture",
            Inter::First => "first",
            Inter::Best => "best",
        };
        let none = Percent::default();
        Self {
            name: format!("{} {intra} {inter}", settings.block),
            block: settings.block,
            intra_sum: 0,
            intra_most: 0,
            intra_count: 0,
            inter_sum: 0,
            inter_most: 0,
            inter_count: 0,
            most_bytes: 0,
            blocks_looked_at: 0,
            blocks_added: 0,
            blocks_freed: 0,
            objects_collected: 0,
            oversize: 0,
            used_regions: none,
            all_regions: none,
            over_time: none,
            carried_over_time: none,
            curve: None,
            methods: Vec::new(),
            regions: Vec::new(),
        }
    }

    pub(super) fn intra(&mut self, f: u64) {
        self.intra_sum = self.intra_sum.saturating_add(f);
        self.intra_most = self.intra_most.max(f);
        self.intra_count += u64::from(f > 0);
    }

    pub(super) fn inter(&mut self, f: u64) {
        self.inter_sum = self.inter_sum.saturating_add(f);
        self.inter_most = self.inter_most.max(f);
        self.inter_count += u64::from(f > 0);
    }
}

/// Least, most and mean of percentages; 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percent {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean.
    pub average: f64,
}

/// Collects percentages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Percents {
    seen: Option<Percent>,
    sum: f64,
    count: f64,
}

impl Percents {
    /// Notes one.
    pub(super) fn add(&mut self, value: f64) {
        let seen = self.seen.get_or_insert(Percent { min: value, max: value, average: 0.0 });
        seen.min = seen.min.min(value);
        seen.max = seen.max.max(value);
        self.sum += value;
        self.count += 1.0;
    }

    /// Returns what was noted.
    pub(super) fn finish(self) -> Percent {
        self.seen.map_or(Percent::default(), |seen| Percent { average: self.sum / self.count, ..seen })
    }
}
