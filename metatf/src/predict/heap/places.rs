//! Which block is at an address.
//!
//! Allocators give out multiples of 16 that lie close together, so addresses are looked up by leaves of 16 such places:
//! one hashed key and one line of cache serve several neighbours. Other addresses are hashed one by one.

use super::super::NONE;
use hashbrown::HashMap;

/// Places in a leaf; each stands for 16 bytes.
const PLACES: usize = 16;
/// Leaves that are found without hashing, a power of two.
const NEAR: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Leaves by `address / 256`.
    by_key: HashMap<u64, u32>,
    leaves: Vec<[u32; PLACES]>,
    /// Leaves without a block, to be used again.
    spare: Vec<u32>,
    /// Keys looked up lately, and their leaves; by the key's last bits.
    near: Box<[(u64, u32); NEAR]>,
    /// Addresses that are no multiple of 16.
    odd: HashMap<u64, u32>,
}

/// An address's leaf and its place in that; `None` where it is no multiple of 16.
#[inline]
fn split(address: u64) -> Option<(u64, usize)> {
    let place = usize::try_from(address >> 4 & (PLACES as u64 - 1)).unwrap_or(0);
    (address & 15 == 0).then_some((address >> 8, place))
}

#[inline]
fn near_index(key: u64) -> usize {
    usize::try_from(key & (NEAR as u64 - 1)).unwrap_or(0)
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            by_key: HashMap::new(),
            leaves: Vec::new(),
            spare: Vec::new(),
            near: Box::new([(0, NONE); NEAR]),
            odd: HashMap::new(),
        }
    }

    /// The leaf of a key.
    #[inline]
    fn leaf(&mut self, key: u64) -> Option<u32> {
        let near = self.near.get_mut(near_index(key))?;
        if near.0 == key && near.1 != NONE {
            return Some(near.1);
        }
        let leaf = *self.by_key.get(&key)?;
        *near = (key, leaf);
        Some(leaf)
    }

    /// The block at an address.
    #[inline]
    pub(super) fn get(&mut self, address: u64) -> Option<u32> {
        let Some((key, place)) = split(address) else { return self.odd.get(&address).copied() };
        let leaf = self.leaf(key)?;
        self.leaves.get(leaf as usize)?.get(place).copied().filter(|&block| block != NONE)
    }

    /// Where the block at an address is noted, [`NONE`] where there is none yet. `None` where there are 2^32 leaves.
    #[inline]
    pub(super) fn entry(&mut self, address: u64) -> Option<&mut u32> {
        let Some((key, place)) = split(address) else { return Some(self.odd.entry(address).or_insert(NONE)) };
        let leaf = match self.leaf(key) {
            Some(leaf) => leaf,
            None => self.add(key)?,
        };
        self.leaves.get_mut(leaf as usize)?.get_mut(place)
    }

    #[inline(never)]
    fn add(&mut self, key: u64) -> Option<u32> {
        let leaf = match self.spare.pop() {
            Some(leaf) => leaf,
            None => {
                let leaf = u32::try_from(self.leaves.len()).ok().filter(|&leaf| leaf != NONE)?;
                self.leaves.push([NONE; PLACES]);
                leaf
            }
        };
        self.by_key.insert(key, leaf);
        if let Some(near) = self.near.get_mut(near_index(key)) {
            *near = (key, leaf);
        }
        Some(leaf)
    }

    /// No block is at this address any more.
    pub(super) fn remove(&mut self, address: u64) {
        let Some((key, place)) = split(address) else {
            self.odd.remove(&address);
            return;
        };
        let Some(leaf) = self.leaf(key) else { return };
        let Some(places) = self.leaves.get_mut(leaf as usize) else { return };
        if let Some(block) = places.get_mut(place) {
            *block = NONE;
        }
        if *places == [NONE; PLACES] {
            self.by_key.remove(&key);
            self.spare.push(leaf);
            if let Some(near) = self.near.get_mut(near_index(key)) {
                *near = (0, NONE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_a_map() {
        let (mut places, mut map) = (Places::new(), std::collections::HashMap::new());
        let mut state = 1_u64;
        for i in 0..50_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let address = (state >> 40) % 3000 * 8 + (state >> 33) % 3 * (1 << 40);
            assert_eq!(places.get(address), map.get(&address).copied(), "{address:#x}");
            if state >> 63 == 0 {
                *places.entry(address).unwrap() = i;
                map.insert(address, i);
            } else {
                places.remove(address);
                map.remove(&address);
            }
        }
        for address in map.into_keys() {
            places.remove(address);
        }
        assert!(places.by_key.is_empty() && places.odd.is_empty());
        assert_eq!(places.spare.len(), places.leaves.len());
        *places.entry(u64::MAX - 15).unwrap() = 7;
        assert_eq!((places.get(u64::MAX - 15), places.get(0)), (Some(7), None));
    }
}
