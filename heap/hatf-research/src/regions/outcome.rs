//! Results of a memory manager, including its fragmentation.

use serde::Serialize;

use super::parts::{OfMethod, OfRegion};
use super::settings::Settings;
use super::{Inter, Intra};
use hatf_lab::history::Curves;

/// The outcome of one simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The settings, such as `64 first capture`.
    pub name: String,
    /// Bytes per block.
    pub block: u64,
    /// The sum of `f_i` over all allocations. `f_i` is the number of free bytes in the growing region if they would
    /// have been sufficient in total.
    pub intra_sum: u64,
    /// The largest `f_i`.
    pub intra_most: u64,
    /// The number of allocations with `f_i` above 0.
    pub intra_count: u64,
    /// The sum of `F_i`. `F_i` is the number of free bytes in the prefix if a region grew although another region had a
    /// sufficiently large block.
    pub inter_sum: u64,
    /// The largest `F_i`.
    pub inter_most: u64,
    /// The number of allocations with `F_i` above 0.
    pub inter_count: u64,
    /// The maximum number of bytes in blocks of active regions.
    pub most_bytes: u64,
    /// The number of blocks examined.
    pub blocks_looked_at: u64,
    /// The number of blocks added, including the first block of each region.
    pub blocks_added: u64,
    /// The number of blocks freed at exits.
    pub blocks_freed: u64,
    /// The number of objects collected at exits.
    pub objects_collected: u64,
    /// The number of objects larger than a block.
    pub oversize: u64,
    /// Statistics over regions with allocations (Figure 6). The value of a region is `100 f_i` divided by the bytes in
    /// the region's blocks, averaged over its allocations.
    pub used_regions: Percent,
    /// The same statistics over all regions. Regions without allocations count as 0.
    pub all_regions: Percent,
    /// Statistics over all allocations of `100 f_i` divided by the bytes in blocks of all active regions (Figure 5).
    pub over_time: Percent,
    /// The same statistics, with the sum of the latest `f_i` of all active regions in place of `f_i`.
    pub carried_over_time: Percent,
    /// The values of `over_time` in thousandths of a percent. If there are more than 511 allocations, the maximum in
    /// each interval of `step`.
    pub curve: Option<Curves>,
    /// The results of each method's regions, in the order in which the methods first occur; empty unless requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<OfMethod>,
    /// The results of each region in order of entry; empty unless requested. If there are more than
    /// [`MOST_REGIONS`](super::MOST_REGIONS) regions, only those with the most bytes in blocks are listed.
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

/// The minimum, maximum and mean of percentages; 0 if there are no percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percent {
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The mean.
    pub average: f64,
}

/// A collector of percentages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Percents {
    seen: Option<Percent>,
    sum: f64,
    count: f64,
}

impl Percents {
    /// Adds a percentage.
    pub(super) fn add(&mut self, value: f64) {
        let seen = self.seen.get_or_insert(Percent { min: value, max: value, average: 0.0 });
        seen.min = seen.min.min(value);
        seen.max = seen.max.max(value);
        self.sum += value;
        self.count += 1.0;
    }

    /// Returns the statistics.
    pub(super) fn finish(self) -> Percent {
        self.seen.map_or(Percent::default(), |seen| Percent { average: self.sum / self.count, ..seen })
    }
}
