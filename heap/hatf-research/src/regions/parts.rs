//! The results of each region and method under one setting. They correspond to the numbers of instances and the region
//! sizes in section 6 of the paper.

use std::collections::BTreeMap;

use serde::Serialize;

use super::region::{Region, Who};

/// The maximum number of regions listed individually, which are those with the most bytes in blocks.
pub const MOST_REGIONS: usize = 1000;

/// The results of one method's regions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OfMethod {
    /// The method.
    pub method: String,
    /// The number of regions.
    pub regions: u64,
    /// The number of objects in these regions.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
    /// The maximum number of objects in a region.
    pub most_objects: u64,
    /// The maximum number of object bytes in a region.
    pub most_bytes: u64,
    /// The maximum number of bytes in the blocks of a region.
    pub most_block_bytes: u64,
    /// The sum of `f_i` over all allocations in these regions.
    pub intra_sum: u64,
}

/// The results of one region.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfRegion {
    /// The number of regions entered before this one.
    pub number: u64,
    /// The method.
    pub method: String,
    /// The thread of the region.
    pub thread: u64,
    /// The number of active regions of the thread when the region was entered.
    pub depth: u64,
    /// The number of objects in the region.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
    /// The bytes in the region's blocks at its end.
    pub block_bytes: u64,
    /// The sum of `f_i` over the region's allocations.
    pub intra_sum: u64,
}

/// The requested parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) methods: bool,
    pub(super) regions: bool,
}

/// Results collected so far. Method names are numbers until the end.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) wanted: Wanted,
    methods: BTreeMap<u64, OfMethod>,
    regions: Vec<(u64, OfRegion)>,
}

impl Parts {
    /// Records the results of a region that has ended.
    pub(super) fn note(&mut self, region: &Region) {
        let Region { objects, bytes: block_bytes, intra_sum, who, .. } = *region;
        let bytes = block_bytes - region.total_free;
        if self.wanted.methods {
            let of = self.methods.entry(who.method).or_default();
            of.regions += 1;
            of.objects += objects;
            of.bytes = of.bytes.saturating_add(bytes);
            of.most_objects = of.most_objects.max(objects);
            of.most_bytes = of.most_bytes.max(bytes);
            of.most_block_bytes = of.most_block_bytes.max(block_bytes);
            of.intra_sum = of.intra_sum.saturating_add(intra_sum);
        }
        if self.wanted.regions {
            let Who { number, method, thread, depth } = who;
            let name = String::new();
            let of = OfRegion { number, method: name, thread, depth, objects, bytes, block_bytes, intra_sum };
            self.regions.push((method, of));
            if self.regions.len() >= 2 * MOST_REGIONS {
                self.keep_the_largest();
            }
        }
    }

    fn keep_the_largest(&mut self) {
        self.regions.sort_by_key(|(_, of)| (std::cmp::Reverse(of.block_bytes), of.number));
        self.regions.truncate(MOST_REGIONS);
    }

    pub(super) fn finish(mut self, names: &[String]) -> (Vec<OfMethod>, Vec<OfRegion>) {
        self.keep_the_largest();
        self.regions.sort_by_key(|(_, of)| of.number);
        let name = |number: u64| usize::try_from(number).ok().and_then(|number| names.get(number)).cloned();
        let method = |(number, of)| OfMethod { method: name(number).unwrap_or_default(), ..of };
        let region = |(number, of)| OfRegion { method: name(number).unwrap_or_default(), ..of };
        (self.methods.into_iter().map(method).collect(), self.regions.into_iter().map(region).collect())
    }
}
