//! Interning of table elements. A known element is found by its values without being encoded or copied: its fields are
//! hashed in place and then compared.

use super::RecordCore;
use crate::encode::RowWriter;
use crate::record::{Put, Stopped};
use hashbrown::DefaultHashBuilder;
use metatf_container::{Error, Result, Sink};
use std::hash::{BuildHasher, Hasher};

/// The interned elements.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// The elements by section.
    tables: Vec<Known>,
    /// The hasher, seeded randomly so that nobody can construct a trace whose elements all collide.
    hasher: DefaultHashBuilder,
    key: ElementKey,
    last: LastNumbers,
}

/// The values that identify an element: numbers, and byte arrays preceded by a number with their length.
pub(crate) trait Key {
    /// Writes the values to `to`.
    fn put<P: Put<Error = Stopped>>(&self, to: &mut P) -> Result<(), Stopped>;
}

/// The interned elements of one table.
///
/// Elements are stored contiguously at multiples of 8 bytes: eight bytes each for the offset and the key length, then
/// the key. A lookup touches one cache line of the index and the cache lines of the element, because cache misses
/// dominate the cost of interning.
#[derive(Debug, Default)]
struct Known {
    elements: Vec<u8>,
    /// A hash table with open addressing. Its size is a power of two, and at most three quarters of the slots are in
    /// use.
    index: Vec<Slot>,
    count: usize,
}

/// The position of an element. A `place` of 0 marks an empty slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    /// The element's position in units of 8 bytes, plus 1.
    place: u32,
}

impl Known {
    /// Returns the offset of the element with this key.
    #[inline]
    fn find(&self, hash: u32, key: &impl Key, last: &mut LastNumbers) -> Option<u64> {
        let mask = self.index.len().wrapping_sub(1);
        let mut n = hash as usize;
        loop {
            let slot = self.index.get(n & mask)?;
            let place = slot.place.checked_sub(1)?;
            if slot.hash == hash
                && let Some((offset, known)) = element(&self.elements, place as usize * 8)
            {
                let mut matching = Matching { rest: known, last };
                if key.put(&mut matching).is_ok() && matching.rest.is_empty() {
                    return Some(offset);
                }
            }
            n = n.wrapping_add(1);
        }
    }

    /// Adds an element. An element past 32 GiB cannot be indexed, so it is stored again at its next occurrence.
    fn add(&mut self, hash: u32, key: &[u8], offset: u64) {
        if 4 * (self.count + 1) > 3 * self.index.len() {
            let slots = vec![Slot::default(); (2 * self.index.len()).max(16)];
            let full = std::mem::replace(&mut self.index, slots);
            full.into_iter().filter(|slot| slot.place != 0).for_each(|slot| self.put(slot));
        }
        let Ok(place) = u32::try_from(self.elements.len() / 8 + 1) else { return };
        self.put(Slot { hash, place });
        self.count += 1;
        self.elements.extend_from_slice(&offset.to_le_bytes());
        self.elements.extend_from_slice(&(key.len() as u64).to_le_bytes());
        self.elements.extend_from_slice(key);
        self.elements.resize(self.elements.len().next_multiple_of(8), 0);
    }

    fn put(&mut self, slot: Slot) {
        let (mask, hash) = (self.index.len().wrapping_sub(1), slot.hash as usize);
        let mut places = (0..self.index.len()).map(|n| hash.wrapping_add(n) & mask);
        let free = places.find(|&n| self.index.get(n).is_some_and(|slot| slot.place == 0));
        if let Some(free) = free.and_then(|n| self.index.get_mut(n)) {
            *free = slot;
        }
    }
}

/// Returns the offset and key of the element that begins at `at`.
#[inline]
fn element(elements: &[u8], at: usize) -> Option<(u64, &[u8])> {
    let (offset, rest) = elements.get(at..)?.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let key = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((u64::from_le_bytes(*offset), key))
}

/// The last number of each leaf.
#[derive(Debug)]
struct LastNumbers([u64; 256]);

impl Default for LastNumbers {
    fn default() -> Self {
        Self([0; 256])
    }
}

/// A row that hashes an element.
struct Hashing<'l, H> {
    hasher: H,
    last: &'l mut LastNumbers,
}

impl<H: Hasher> Put for Hashing<'_, H> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    #[inline]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.last.0[usize::from(leaf)] = value;
        self.hasher.write_u64(value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.hasher.write(bytes);
        Ok(())
    }

    /// The count is already hashed as one of the element's numbers.
    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Ok(())
    }

    #[inline]
    fn last(&self, leaf: u8) -> u64 {
        self.last.0[usize::from(leaf)]
    }
}

/// A row that compares an element with a key and stops at the first difference.
struct Matching<'k, 'l> {
    rest: &'k [u8],
    last: &'l mut LastNumbers,
}

impl Put for Matching<'_, '_> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    #[inline]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.last.0[usize::from(leaf)] = value;
        match self.rest.split_first_chunk() {
            Some((known, rest)) if u64::from_le_bytes(*known) == value => self.rest = rest,
            _ => return Err(Stopped(())),
        }
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.rest = self.rest.strip_prefix(bytes).ok_or(Stopped(()))?;
        Ok(())
    }

    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Ok(())
    }

    #[inline]
    fn last(&self, leaf: u8) -> u64 {
        self.last.0[usize::from(leaf)]
    }
}

/// The values of an element as bytes: numbers take eight bytes each, and byte arrays are stored verbatim.
#[derive(Debug, Default)]
struct ElementKey {
    bytes: Vec<u8>,
    last: LastNumbers,
}

impl Put for ElementKey {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.last.0[usize::from(leaf)] = value;
        self.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Ok(())
    }

    fn last(&self, leaf: u8) -> u64 {
        self.last.0[usize::from(leaf)]
    }
}

impl RecordCore<dyn Sink + '_> {
    /// Adds an element to a shared table like [`element`](Self::element), but stores equal elements only once. `key`
    /// and `encode` must produce the same values.
    ///
    /// # Errors
    /// As for [`element`](Self::element).
    #[inline]
    pub(crate) fn intern(
        &mut self,
        section: usize,
        key: &impl Key,
        mut encode: impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        let Interned { tables, hasher, last, .. } = &mut self.interned;
        let mut hashing = Hashing { hasher: hasher.build_hasher(), last };
        // An error here occurs in the encoding, too.
        let hashed = key.put(&mut hashing);
        #[allow(clippy::cast_possible_truncation, reason = "half of a hash is also a hash")]
        let hash = hashing.hasher.finish() as u32;
        if hashed.is_ok()
            && let Some(offset) = tables.get(section).and_then(|table| table.find(hash, key, last))
        {
            return Ok(offset);
        }
        self.intern_new(section, hash, &mut |bytes| key.put(bytes), &mut encode)
    }

    /// Makes an element that was added to a shared table known to [`intern`](Self::intern), unless an equal one is known.
    ///
    /// # Errors
    /// Returns the error of `key`.
    #[cfg(feature = "dynamic")]
    pub(crate) fn add_interned(&mut self, section: usize, key: &impl Key, offset: u64) -> Result<()> {
        let Interned { tables, hasher, last, .. } = &mut self.interned;
        let mut hashing = Hashing { hasher: hasher.build_hasher(), last };
        key.put(&mut hashing)?;
        #[allow(clippy::cast_possible_truncation, reason = "half of a hash is also a hash")]
        let hash = hashing.hasher.finish() as u32;
        if tables.get(section).is_some_and(|table| table.find(hash, key, last).is_some()) {
            return Ok(());
        }
        self.keep_interned(section, hash, &mut |bytes| key.put(bytes), offset)
    }

    #[inline(never)]
    fn intern_new(
        &mut self,
        section: usize,
        hash: u32,
        write_key: &mut dyn FnMut(&mut ElementKey) -> Result<(), Stopped>,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        let offset = self.element(section, true, encode)?;
        self.keep_interned(section, hash, write_key, offset)?;
        Ok(offset)
    }

    fn keep_interned(
        &mut self,
        section: usize,
        hash: u32,
        write_key: &mut dyn FnMut(&mut ElementKey) -> Result<(), Stopped>,
        offset: u64,
    ) -> Result<()> {
        let Interned { tables, key, .. } = &mut self.interned;
        key.bytes.clear();
        write_key(key)?;
        if tables.len() <= section {
            tables.resize_with(section + 1, Known::default);
        }
        if let Some(table) = tables.get_mut(section) {
            table.add(hash, &key.bytes, offset);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string element.
    struct Text<'t>(&'t str);

    impl Key for Text<'_> {
        fn put<P: Put<Error = Stopped>>(&self, to: &mut P) -> Result<(), Stopped> {
            to.number(0, self.0.len() as u64)?;
            to.bytes(1, self.0.as_bytes())
        }
    }

    /// Interns strings with at most `hashes` different hashes and looks up all of them.
    fn intern(count: u32, hashes: u32) {
        let (mut known, mut key, mut last) = (Known::default(), ElementKey::default(), LastNumbers::default());
        let texts: Vec<String> = (0..count).map(|n| "x".repeat(n as usize % 50) + &n.to_string()).collect();
        let hash = |n: u32| (n % hashes).wrapping_mul(0x9e37_79b1);
        for (n, text) in (0..).zip(&texts) {
            assert_eq!(known.find(hash(n), &Text(text), &mut last), None);
            key.bytes.clear();
            Text(text).put(&mut key).unwrap();
            known.add(hash(n), &key.bytes, u64::from(n) << 40);
        }
        for (n, text) in (0..).zip(&texts) {
            assert_eq!(known.find(hash(n), &Text(text), &mut last), Some(u64::from(n) << 40));
            assert_eq!(known.find(hash(n), &Text(&format!("{text}!")), &mut last), None, "{text}");
        }
        assert!(4 * known.count <= 3 * known.index.len());
    }

    #[test]
    fn an_element_is_found_wherever_others_meet_it() {
        intern(3000, u32::MAX);
        intern(3000, 100);
        intern(300, 1);
    }
}
