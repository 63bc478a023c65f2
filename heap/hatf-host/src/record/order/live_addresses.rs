//! The set of addresses with a live block: a bit for every 8 bytes of the heap.
//!
//! The merge queries the set for each event and only needs to know whether a block is live, whereas `hatf_lab::Objects`
//! also stores each block's call.

use std::collections::HashMap;

/// Address bits within a region of 256 KiB.
const REGION_BITS: u32 = 18;
const WORDS: usize = (1 << REGION_BITS) / 8 / 64;
/// Number of regions whose index is cached.
const REMEMBERED: usize = 64;

/// The addresses of live blocks.
pub(crate) struct LiveAddresses {
    regions: Vec<Box<[u64; WORDS]>>,
    places: HashMap<u64, usize>,
    remembered: [(u64, usize); REMEMBERED],
}

impl Default for LiveAddresses {
    fn default() -> Self {
        Self { regions: Vec::new(), places: HashMap::new(), remembered: [(u64::MAX, 0); REMEMBERED] }
    }
}

impl LiveAddresses {
    /// Adds an address. Returns false if it was already present.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64) -> bool {
        let (word, bit) = self.find(address);
        let was = *word & bit != 0;
        *word |= bit;
        !was
    }

    /// Removes an address. Returns false if it was not present.
    #[inline]
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        let (word, bit) = self.find(address);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Returns whether the set contains an address.
    #[inline]
    pub(crate) fn has(&mut self, address: u64) -> bool {
        let (word, bit) = self.find(address);
        *word & bit != 0
    }

    /// Removes all addresses.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    #[inline(always)]
    fn find(&mut self, address: u64) -> (&mut u64, u64) {
        let region = address >> REGION_BITS;
        let (known, mut place) = self.remembered[index(region) % REMEMBERED];
        if known != region {
            place = self.look_up(region);
        }
        let granule = address >> 3;
        (&mut self.regions[place][index(granule >> 6) % WORDS], 1 << (granule & 63))
    }

    #[cold]
    fn look_up(&mut self, region: u64) -> usize {
        let regions = &mut self.regions;
        let place = *self.places.entry(region).or_insert_with(|| {
            regions.push(Box::new([0; WORDS]));
            regions.len() - 1
        });
        self.remembered[index(region) % REMEMBERED] = (region, place);
        place
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_set() {
        let (mut live, mut set) = (LiveAddresses::default(), std::collections::HashSet::new());
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Use only a few addresses in distant regions, so that addresses recur.
            let address = (random >> 8 & 0x3f) << 3 | (random >> 20 & 0x3) << 40 | (random >> 30 & 0xff) << 18;
            match random % 3 {
                0 => assert_eq!(live.insert(address), set.insert(address)),
                1 => assert_eq!(live.remove(address), set.remove(&address)),
                _ => assert_eq!(live.has(address), set.contains(&address)),
            }
        }
        assert!(set.len() > 100);
        live.clear();
        assert!(set.iter().all(|address| !live.has(*address)));
    }
}
