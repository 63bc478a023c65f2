//! Regions, with their blocks and the free space in these blocks.

use std::collections::HashSet;

use super::{Intra, Settings};

/// The identity of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Who {
    pub(super) number: u64,
    pub(super) method: u64,
    pub(super) thread: u64,
    pub(super) depth: u64,
}

/// A region of blocks. A new region has one block (`R_1 = {B_1}`).
#[derive(Debug)]
pub(super) struct Region {
    /// Free bytes in each block.
    free: Vec<u64>,
    /// The sum of the free bytes.
    pub(super) total_free: u64,
    /// The bytes of all blocks.
    pub(super) bytes: u64,
    /// The number of objects in the region.
    pub(super) objects: u64,
    /// `f_i` of the last allocation.
    pub(super) last: u64,
    /// The sum of `100 f_i / bytes` over the allocations.
    pub(super) percents: f64,
    /// The sum of `f_i` over the allocations.
    pub(super) intra_sum: u64,
    pub(super) who: Who,
}

/// A block with enough space for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    block: usize,
    /// The number of bytes that would remain free.
    pub(super) left: u64,
}

impl Region {
    pub(super) fn new(block: u64, who: Who) -> Self {
        Self {
            free: vec![block],
            total_free: block,
            bytes: block,
            objects: 0,
            last: 0,
            percents: 0.0,
            intra_sum: 0,
            who,
        }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.free.len() as u64
    }

    /// Finds the block chosen by the strategy, which is the first block of `K_i` in the order of the strategy. Adds the
    /// number of examined blocks to `looked`.
    pub(super) fn find(&self, size: u64, intra: Intra, looked: &mut u64) -> Option<Fit> {
        let fits = |(block, free): (usize, &u64)| free.checked_sub(size).map(|left| Fit { block, left });
        let mut all = self.free.iter().enumerate().inspect(|_| *looked += 1);
        match intra {
            Intra::First => all.find_map(fits),
            Intra::Best => all.filter_map(fits).min_by_key(|fit| fit.left),
        }
    }

    /// Places an object in a block returned by `find`.
    pub(super) fn put(&mut self, fit: Fit, size: u64) {
        if let Some(free) = self.free.get_mut(fit.block) {
            *free = fit.left;
            self.total_free -= size;
            self.objects += 1;
        }
    }

    /// Places an object in a new block of sufficient size.
    pub(super) fn grow(&mut self, block: u64, size: u64) {
        self.free.push(block - size);
        self.total_free = self.total_free.saturating_add(block - size);
        self.bytes = self.bytes.saturating_add(block);
        self.objects += 1;
    }
}

/// A region that a thread has entered. This data is independent of the settings.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// The creation sites captured by the region.
    pub(super) captured: HashSet<u64>,
}

/// The regions of a thread under one setting, outermost first.
#[derive(Debug, Default)]
pub(super) struct Regions(pub(super) Vec<Region>);

impl Regions {
    /// Chooses a region from a prefix of the stack, whose last region is the capturing region. Returns the index of the
    /// chosen region and the block.
    pub(super) fn choose(&self, prefix: usize, size: u64, of: Settings, looked: &mut u64) -> Option<(usize, Fit)> {
        use super::Inter;
        let mut from_last = self.0.iter().enumerate().take(prefix).rev();
        let mut fit = |(number, region): (usize, &Region)| Some((number, region.find(size, of.intra, looked)?));
        match of.inter {
            Inter::Capture => from_last.next().and_then(fit),
            Inter::First => from_last.find_map(fit),
            // Of equal regions, `min_by_key` returns the first, which is the nearest to the top.
            Inter::Best => from_last.filter_map(&mut fit).min_by_key(|(_, fit)| fit.left),
        }
    }

    /// Returns whether a region of the prefix, other than `but`, has a block with enough space.
    pub(super) fn fits_elsewhere(&self, prefix: usize, but: usize, size: u64) -> bool {
        let others = self.0.iter().enumerate().take(prefix).filter(|(number, _)| *number != but);
        others.flat_map(|(_, region)| &region.free).any(|free| *free >= size)
    }
}
