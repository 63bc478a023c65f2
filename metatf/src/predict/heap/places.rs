//! Finds the block at an address.
//!
//! Allocators return addresses that are multiples of 16 and close to each other, so each leaf of the index covers 16
//! consecutive multiples. One lookup and one cache line then serve several neighbors. A leaf is found in a table
//! indexed by the last bits of its key, so neighbors in memory are also neighbors in the table; only colliding leaves
//! are hashed. Addresses that are not multiples of 16 are hashed individually.

use super::super::NONE;
use super::clear;
use hashbrown::HashMap;

/// Number of places in a leaf. Each place represents 16 bytes.
const PLACES: usize = 16;
/// Initial capacity of the table in leaves, a power of two. For addresses less than 2^50, this is large enough for the
/// remaining key bits to fit in 32 bits.
const NEAR: usize = 1024;
/// Number of table slots per leaf. Since allocators leave gaps, leaves would collide in a shorter table.
const PER_LEAF: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct AddressIndex {
    near: Near,
    /// Leaves, by `address / 256`, that could not be stored in the table, because their slot was occupied or the
    /// remaining bits of their key do not fit in 32 bits.
    far: HashMap<u64, u32>,
    leaves: Vec<AddressLine>,
    /// Leaves without a block, for reuse.
    spare: Vec<u32>,
    /// Blocks at addresses that are not multiples of 16.
    odd: HashMap<u64, u32>,
}

/// The blocks at neighboring places, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct AddressLine([u32; PLACES]);

impl AddressLine {
    const EMPTY: Self = Self([NONE; PLACES]);
}

/// Leaves by the last bits of their keys, with at least [`PER_LEAF`] slots per leaf.
#[derive(Clone, Debug)]
struct Near {
    /// The remaining bits of the key, and the leaf, indexed by the last bits of the key. An entry without a leaf is one
    /// of the two constants below.
    leaves: Vec<(u32, u32)>,
    /// Number of bits in the index.
    bits: u32,
}

/// No leaf exists whose key has these last bits, unless the remaining bits do not fit in 32 bits.
const UNUSED: (u32, u32) = (0, NONE);
/// A leaf was removed. A leaf that collided with it may exist elsewhere.
const LEFT: (u32, u32) = (1, NONE);

impl Near {
    fn of(leaves: usize) -> Self {
        let length = (PER_LEAF * leaves).next_power_of_two().max(NEAR);
        Self { leaves: vec![UNUSED; length], bits: length.trailing_zeros() }
    }

    /// Removes all leaves. Keeps capacity for this many leaves, without growing.
    fn clear(&mut self, leaves: usize) {
        self.leaves.truncate((PER_LEAF * leaves).next_power_of_two().max(NEAR));
        self.leaves.fill(UNUSED);
        self.bits = self.leaves.len().trailing_zeros();
    }

    /// Returns the index of a key and its remaining bits.
    #[inline]
    fn split(&self, key: u64) -> (usize, u64) {
        #[allow(clippy::cast_possible_truncation, reason = "less than the length")]
        let index = key as usize & (self.leaves.len() - 1);
        (index, key >> self.bits)
    }

    /// Returns the leaf of a key, or an error if the leaf may be elsewhere.
    #[inline(always)]
    fn get(&self, key: u64) -> Result<Option<u32>, ()> {
        let (index, rest) = self.split(key);
        match self.leaves.get(index) {
            Some(&(known, leaf)) if leaf != NONE && u64::from(known) == rest => Ok(Some(leaf)),
            Some(&UNUSED) if u32::try_from(rest).is_ok() => Ok(None),
            _ => Err(()),
        }
    }

    /// Stores the leaf of a key if the key's slot is free, and returns whether it was.
    fn put(&mut self, key: u64, leaf: u32) -> bool {
        let (index, rest) = self.split(key);
        match (self.leaves.get_mut(index), u32::try_from(rest)) {
            (Some(near), Ok(rest)) if near.1 == NONE => {
                *near = (rest, leaf);
                true
            }
            _ => false,
        }
    }

    /// Removes the leaf of a key stored here.
    fn remove(&mut self, key: u64, left: (u32, u32)) {
        let (index, _) = self.split(key);
        if let Some(near) = self.leaves.get_mut(index) {
            *near = left;
        }
    }
}

/// Returns an address's leaf key and its place in the leaf, or `None` if the address is not a multiple of 16.
#[inline]
fn split(address: u64) -> Option<(u64, usize)> {
    let place = usize::try_from(address >> 4 & (PLACES as u64 - 1)).unwrap_or(0);
    (address & 15 == 0).then_some((address >> 8, place))
}

impl AddressIndex {
    pub(super) fn new() -> Self {
        Self { near: Near::of(NEAR), far: HashMap::new(), leaves: Vec::new(), spare: Vec::new(), odd: HashMap::new() }
    }

    /// Removes all entries but keeps as much memory as they needed, because the next use may need as much again.
    pub(super) fn clear(&mut self) {
        self.near.clear(self.leaves.len());
        clear(&mut self.far);
        self.leaves.clear();
        self.spare.clear();
        clear(&mut self.odd);
    }

    /// Returns the leaf of a key.
    #[inline(always)]
    fn leaf(&self, key: u64) -> Option<u32> {
        self.near.get(key).unwrap_or_else(|()| self.far(key))
    }

    #[inline(never)]
    fn far(&self, key: u64) -> Option<u32> {
        self.far.get(&key).copied()
    }

    /// Returns the block at an address.
    #[inline(always)]
    pub(super) fn get(&self, address: u64) -> Option<u32> {
        let Some((key, place)) = split(address) else { return self.odd(address) };
        let leaf = self.leaf(key)?;
        self.leaves.get(leaf as usize)?.0.get(place).copied().filter(|&block| block != NONE)
    }

    #[cold]
    #[inline(never)]
    fn odd(&self, address: u64) -> Option<u32> {
        self.odd.get(&address).copied()
    }

    /// Returns the entry for the block at an address, which is [`NONE`] if there is no block yet. Returns `None` if
    /// there are already 2^32 leaves.
    #[inline]
    pub(super) fn entry(&mut self, address: u64) -> Option<&mut u32> {
        let Some((key, place)) = split(address) else { return Some(self.odd.entry(address).or_insert(NONE)) };
        let leaf = match self.leaf(key) {
            Some(leaf) => leaf,
            None => self.add(key)?,
        };
        self.leaves.get_mut(leaf as usize)?.0.get_mut(place)
    }

    /// Adds a leaf for a key that has no leaf yet.
    #[inline(never)]
    fn add(&mut self, key: u64) -> Option<u32> {
        let leaf = match self.spare.pop() {
            Some(leaf) => leaf,
            None => {
                let leaf = u32::try_from(self.leaves.len()).ok().filter(|&leaf| leaf != NONE)?;
                self.leaves.push(AddressLine::EMPTY);
                leaf
            }
        };
        if PER_LEAF * self.leaves.len() > self.near.leaves.len() {
            self.grow();
        }
        if !self.near.put(key, leaf) {
            self.far.insert(key, leaf);
        }
        Some(leaf)
    }

    /// Grows the table to fit the number of leaves.
    #[cold]
    fn grow(&mut self) {
        let old = std::mem::replace(&mut self.near, Near::of(self.leaves.len()));
        for (index, &(rest, leaf)) in (0..).zip(&old.leaves).filter(|(_, near)| near.1 != NONE) {
            // Leaves with different slots in the old table cannot collide in the longer table.
            self.near.put(u64::from(rest) << old.bits | index, leaf);
        }
        let near = &mut self.near;
        self.far.retain(|&key, &mut leaf| !near.put(key, leaf));
    }

    /// Removes the block at this address.
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
        if places.0 == AddressLine::EMPTY.0 {
            if self.far.remove(&key).is_none() {
                self.near.remove(key, if self.far.is_empty() { UNUSED } else { LEFT });
            }
            self.spare.push(leaf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_a_map() {
        // The leaves outnumber the initial capacity of the table.
        like_a_map_of(3000);
        like_a_map_of(200_000);
    }

    fn like_a_map_of(places_each: u64) {
        let (mut places, mut map) = (AddressIndex::new(), std::collections::HashMap::new());
        let mut state = 1_u64;
        for i in 0..50_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Four regions whose leaves collide in the table. The keys of the last region do not fit.
            let region = [0, 1 << 40, 2 << 40, 1 << 60][usize::try_from(state >> 33 & 3).unwrap()];
            let address = (state >> 36) % places_each * 8 + region;
            assert_eq!(places.get(address), map.get(&address).copied(), "{address:#x}");
            if state >> 63 == 0 {
                *places.entry(address).unwrap() = i;
                map.insert(address, i);
            } else {
                places.remove(address);
                map.remove(&address);
            }
        }
        for (&address, &block) in &map {
            assert_eq!(places.get(address), Some(block), "{address:#x}");
        }
        for address in map.into_keys() {
            places.remove(address);
        }
        assert!(places.far.is_empty() && places.odd.is_empty());
        assert!(places.near.leaves.iter().all(|near| near.1 == NONE));
        assert_eq!(places.spare.len(), places.leaves.len());
        *places.entry(u64::MAX - 15).unwrap() = 7;
        assert_eq!((places.get(u64::MAX - 15), places.get(0)), (Some(7), None));
    }
}
