//! CACHE: A small cache in front of FIRST. The cache contains free items of the most recently freed sizes.

use super::rover::Rover;
use super::tagged::{TagSettings, Tagged};
use super::{Act, Acts, Allocator, Place};

/// Parameters that the paper specifies (5 entries, a rounding factor of 32), and parameters of the underlying FIRST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// The number of cached sizes.
    pub entries: usize,
    /// The rounding factor R in bytes. With 1, sizes are not rounded.
    pub round: u64,
    /// Whether an evicted entry returns its items to FIRST in the order in which they were freed. Otherwise, the entry
    /// returns the most recently freed item (the head of the chain) first.
    pub oldest: bool,
    /// Settings of the underlying FIRST.
    pub first: TagSettings,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { entries: 5, round: 32, oldest: false, first: TagSettings::default() }
    }
}

/// The adaptive cache of Table 6.
///
/// An item has size S' = (B + R - 1) / R, where B is the requested size. A miss requests R S' bytes from FIRST, not B
/// bytes, because a cached 33-byte item could not serve a later 64-byte request with the same S'. Only `free` creates
/// entries. Cached items are not merged.
///
/// # Examples
///
/// Requests for 33 and 64 bytes are both rounded up to 64 bytes:
///
/// ```
/// use hatf_lab::allocator::{Act, Acts, Allocator, Cache, CacheSettings};
///
/// let (mut cache, mut acts) = (Cache::new(CacheSettings::default()), Acts::default());
/// cache.switch_to(0);
/// let place = cache.allocate(33, &mut acts).ok_or("the address space is full")?;
/// cache.free(place, 33, &mut acts);
/// assert_eq!(cache.allocate(64, &mut acts), Some(place));
/// assert_eq!((acts.of(Act::Missed), acts.of(Act::Hit)), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    settings: CacheSettings,
    /// Sizes and their free items, most recently used first.
    entries: Vec<(u64, Vec<Place>)>,
    first: Tagged<Rover>,
}

impl Cache {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: CacheSettings) -> Self {
        Self { settings, entries: Vec::new(), first: Tagged::new(settings.first, Rover::default()) }
    }

    /// Finds the entry of a size and moves it to the front. Returns whether the cache contains the entry.
    fn access(&mut self, size: u64, acts: &mut Acts) -> bool {
        let found = self.entries.iter().position(|(cached, _)| *cached == size);
        acts.add(Act::Compared, found.map_or(self.entries.len(), |at| at + 1) as u64);
        if let Some(at) = found
            && let Some(front) = self.entries.get_mut(..=at)
        {
            front.rotate_right(1);
        }
        found.is_some()
    }
}

impl Allocator for Cache {
    fn name(&self) -> String {
        let CacheSettings { entries, round, oldest, first } = self.settings;
        format!("cache:entries={entries}:round={round}:oldest={}:{}", u8::from(oldest), first.text())
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let units = size.div_ceil(self.settings.round);
        if self.access(units, acts)
            && let Some(item) = self.entries.first_mut().and_then(|(_, items)| items.pop())
        {
            acts.note(Act::Unlinked);
            acts.note(Act::Hit);
            return Some(item);
        }
        acts.note(Act::Missed);
        self.first.allocate(units.checked_mul(self.settings.round)?, acts)
    }

    fn free(&mut self, place: Place, size: u64, acts: &mut Acts) {
        let units = size.div_ceil(self.settings.round);
        if !self.access(units, acts) {
            let mut items = Vec::new();
            if self.entries.len() == self.settings.entries {
                // Evict the least recently used entry, starting with the head of its chain. In the paper, its items are
                // "chained to the free list".
                items = self.entries.pop().map(|(_, items)| items).unwrap_or_default();
                acts.note(Act::GivenUp);
                acts.add(Act::Flushed, items.len() as u64);
                if self.settings.oldest {
                    items.reverse();
                }
                while let Some(item) = items.pop() {
                    self.first.free(item, acts);
                }
            }
            self.entries.insert(0, (units, items));
        }
        if let Some((_, items)) = self.entries.first_mut() {
            items.push(place);
        }
        acts.note(Act::Inserted);
    }

    fn heap(&self) -> u64 {
        self.first.heap()
    }

    fn held(&self) -> u64 {
        self.first.held()
    }

    fn check_touched(&self) -> Result<(), String> {
        let sizes = self.entries.iter().enumerate();
        let twice =
            sizes.clone().any(|(at, (size, _))| self.entries.iter().skip(at + 1).any(|(other, _)| other == size));
        if twice || self.entries.len() > self.settings.entries {
            return Err("the cache contains a duplicate size or too many sizes".to_owned());
        }
        self.first.check_touched()
    }

    fn check(&self) -> Result<(), String> {
        for (size, items) in &self.entries {
            if items.iter().any(|item| self.first.usable(*item) < size * self.settings.round) {
                return Err(format!("a cached item of size {size} is too small or free in the underlying allocator"));
            }
        }
        self.first.check()
    }
}
