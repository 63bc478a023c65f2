//! Which block is at an address.
//!
//! Allocators give out multiples of 16 that lie close together, so addresses are looked up by leaves of 16 such places:
//! one hashed key and one line of cache serve several neighbours. Other addresses are hashed one by one.

use super::super::NONE;
use hashbrown::HashMap;

/// Places in a leaf; each stands for 16 bytes.
const PLACES: usize = 16;
/// Leaves that are found without hashing, at first; a power of two.
const NEAR: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Leaves by `address / 256`.
    by_key: HashMap<u64, u32>,
    leaves: Vec<Leaf>,
    /// Leaves without a block, to be used again.
    spare: Vec<u32>,
    near: Near,
    /// Addresses that are no multiple of 16.
    odd: HashMap<u64, u32>,
}

/// The blocks at neighbouring places, a line of cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Leaf([u32; PLACES]);

impl Leaf {
    const EMPTY: Self = Self([NONE; PLACES]);
}

/// Leaves that were looked up before, at least as many as there are: neighbours in memory are neighbours here, which a
/// hash would scatter. A leaf is found here unless one with the same last bits of the key was looked up since.
#[derive(Clone, Debug)]
struct Near {
    /// The last bits of the key are the index; its other bits, and the leaf.
    leaves: Vec<(u32, u32)>,
    /// How many bits are the index.
    bits: u32,
}

impl Near {
    fn of(leaves: usize) -> Self {
        let length = leaves.next_power_of_two().max(NEAR);
        Self { leaves: vec![(0, NONE); length], bits: length.trailing_zeros() }
    }

    /// Makes room for so many leaves.
    fn grow(&mut self, leaves: usize) {
        let old = std::mem::replace(self, Self::of(leaves));
        for (index, (rest, leaf)) in (0..).zip(old.leaves) {
            self.set(u64::from(rest) << old.bits | index, leaf);
        }
    }

    /// The leaf of a key, or none, where it was not looked up lately.
    #[inline]
    fn get(&self, key: u64) -> Option<u32> {
        let (index, rest) = self.split(key);
        self.leaves.get(index).filter(|near| u64::from(near.0) == rest && near.1 != NONE).map(|near| near.1)
    }

    /// Notes the leaf of a key; [`NONE`]: it has none any more.
    #[inline]
    fn set(&mut self, key: u64, leaf: u32) {
        let (index, rest) = self.split(key);
        // Of addresses over 2^50 or so there is nothing to note: their keys are too long.
        if let (Some(near), Ok(rest)) = (self.leaves.get_mut(index), u32::try_from(rest)) {
            *near = (rest, leaf);
        }
    }

    #[inline]
    fn split(&self, key: u64) -> (usize, u64) {
        #[allow(clippy::cast_possible_truncation, reason = "less than the length")]
        let index = key as usize & (self.leaves.len() - 1);
        (index, key >> self.bits)
    }
}

/// An address's leaf and its place in that; `None` where it is no multiple of 16.
#[inline]
fn split(address: u64) -> Option<(u64, usize)> {
    let place = usize::try_from(address >> 4 & (PLACES as u64 - 1)).unwrap_or(0);
    (address & 15 == 0).then_some((address >> 8, place))
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            by_key: HashMap::new(),
            leaves: Vec::new(),
            spare: Vec::new(),
            near: Near::of(NEAR),
            odd: HashMap::new(),
        }
    }

    /// The leaf of a key.
    #[inline]
    fn leaf(&mut self, key: u64) -> Option<u32> {
        match self.near.get(key) {
            Some(leaf) => Some(leaf),
            None => self.far(key),
        }
    }

    #[inline(never)]
    fn far(&mut self, key: u64) -> Option<u32> {
        let leaf = *self.by_key.get(&key)?;
        self.near.set(key, leaf);
        Some(leaf)
    }

    /// The block at an address.
    #[inline]
    pub(super) fn get(&mut self, address: u64) -> Option<u32> {
        let Some((key, place)) = split(address) else { return self.odd.get(&address).copied() };
        let leaf = self.leaf(key)?;
        self.leaves.get(leaf as usize)?.0.get(place).copied().filter(|&block| block != NONE)
    }

    /// Where the block at an address is noted, [`NONE`] where there is none yet. `None` where there are 2^32 leaves.
    #[inline]
    pub(super) fn entry(&mut self, address: u64) -> Option<&mut u32> {
        let Some((key, place)) = split(address) else { return Some(self.odd.entry(address).or_insert(NONE)) };
        let leaf = match self.leaf(key) {
            Some(leaf) => leaf,
            None => self.add(key)?,
        };
        self.leaves.get_mut(leaf as usize)?.0.get_mut(place)
    }

    #[inline(never)]
    fn add(&mut self, key: u64) -> Option<u32> {
        let leaf = match self.spare.pop() {
            Some(leaf) => leaf,
            None => {
                let leaf = u32::try_from(self.leaves.len()).ok().filter(|&leaf| leaf != NONE)?;
                self.leaves.push(Leaf::EMPTY);
                leaf
            }
        };
        self.by_key.insert(key, leaf);
        if self.leaves.len() > self.near.leaves.len() {
            self.near.grow(self.leaves.len());
        }
        self.near.set(key, leaf);
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
        if let Some(block) = places.0.get_mut(place) {
            *block = NONE;
        }
        if places.0 == Leaf::EMPTY.0 {
            self.by_key.remove(&key);
            self.spare.push(leaf);
            self.near.set(key, NONE);
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
