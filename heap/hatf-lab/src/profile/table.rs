//! The table of heap info blocks, which is a set-associative cache of contexts.

use std::str::FromStr;

use serde::Serialize;

use crate::{Error, Result};

/// The data of a context in the table.
pub trait Entry {
    /// Returns the number of the context.
    fn context(&self) -> u64;

    /// Returns the number of blocks in the entry.
    fn count(&self) -> u64;

    /// Merges a later entry of the same context.
    fn merge(&mut self, later: Self);
}

/// The policy for evicting an entry from a full set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacement {
    /// Evicts the entry with the fewest blocks. If several entries are tied, evicts the entry in the lowest way. An
    /// entry that is hit or inserted swaps places with way 0.
    #[default]
    Min,
    /// Evicts the least recently hit entry.
    Lru,
    /// Evicts the entry that has been in the set the longest.
    Fifo,
}

/// The size and replacement policy of a table, written as `16381x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TableSettings {
    /// The number of sets. A context is stored in set `number % sets`, so a prime spreads contexts evenly.
    pub sets: usize,
    /// The number of entries per set.
    pub ways: usize,
    /// The replacement policy.
    pub replacement: Replacement,
}

impl Default for TableSettings {
    /// Returns the settings of the RFC, with 65,524 entries.
    fn default() -> Self {
        Self { sets: 16_381, ways: 4, replacement: Replacement::Min }
    }
}

/// The maximum number of entries in a table.
const MOST: usize = 1 << 24;

impl TableSettings {
    /// Checks that the number of entries is in range.
    ///
    /// # Errors
    /// Fails if the table has no entries or more than 2^24.
    pub fn checked(self) -> Result<Self> {
        match self.sets.checked_mul(self.ways) {
            Some(1..=MOST) => Ok(self),
            _ => Err(Error::Usage(format!("table {}x{}: expected 1 to {MOST} entries", self.sets, self.ways))),
        }
    }
}

impl FromStr for TableSettings {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parsed = text.split_once('x').and_then(|(sets, ways)| sets.parse().ok().zip(ways.parse().ok()));
        let (sets, ways) = parsed.ok_or("expected SETSxWAYS, such as 16381x4")?;
        Self { sets, ways, ..Self::default() }.checked().map_err(|error| error.to_string())
    }
}

/// Lookup counts of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lookups {
    /// The number of lookups, one for each block that ended.
    pub lookups: u64,
    /// The number of lookups that filled an empty entry.
    pub first_fills: u64,
    /// The number of lookups that evicted an entry. All lookups that neither filled nor evicted an entry were hits.
    pub evictions: u64,
}

/// A set-associative table.
///
/// # Examples
///
/// In a table with a single entry, context 2 evicts context 1:
///
/// ```
/// use hatf_lab::profile::{Ended, HeapInfo, InfoTable, TICK, TableSettings};
///
/// let settings: TableSettings = "1x1".parse()?;
/// let mut table = InfoTable::new(settings)?;
/// let mut evicted = Vec::new();
/// for context in [1, 1, 2] {
///     let block = Ended { context, size: 100, ..Ended::default() };
///     evicted.extend(table.insert(HeapInfo::new(&block, TICK)));
/// }
/// let counts: Vec<_> = evicted.iter().map(|info| (info.context, info.alloc_count)).collect();
/// assert_eq!(counts, [(1, 2)]);
/// let lookups = table.lookups();
/// assert_eq!((lookups.lookups, lookups.first_fills, lookups.evictions), (3, 1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InfoTable<E> {
    settings: TableSettings,
    /// The sets, each starting with way 0. Sets are initially empty.
    sets: Vec<Vec<E>>,
    lookups: Lookups,
}

impl<E: Entry> InfoTable<E> {
    /// Creates an empty table.
    ///
    /// # Errors
    /// See [`TableSettings::checked`].
    pub fn new(settings: TableSettings) -> Result<Self> {
        let TableSettings { sets, .. } = settings.checked()?;
        Ok(Self { settings, sets: std::iter::repeat_with(Vec::new).take(sets).collect(), lookups: Lookups::default() })
    }

    /// Returns the settings of the table.
    #[must_use]
    pub fn settings(&self) -> TableSettings {
        self.settings
    }

    /// Returns the lookup counts so far.
    #[must_use]
    pub fn lookups(&self) -> Lookups {
        self.lookups
    }

    /// Merges an entry with the existing entry of its context, or inserts it into the table. Returns the evicted entry,
    /// if any.
    #[inline]
    pub fn insert(&mut self, entry: E) -> Option<E> {
        let TableSettings { sets, ways, replacement } = self.settings;
        self.lookups.lookups += 1;
        let number = usize::try_from(entry.context() % sets as u64).unwrap_or(0);
        let set = self.sets.get_mut(number)?;
        // In most cases the context is in way 0, where it stays.
        if let Some(first) = set.first_mut()
            && first.context() == entry.context()
        {
            first.merge(entry);
            return None;
        }
        if let Some(way) = set.iter().position(|other| other.context() == entry.context()) {
            if let Some(found) = set.get_mut(way) {
                found.merge(entry);
            }
            match replacement {
                Replacement::Min => set.swap(0, way),
                Replacement::Lru => set.get_mut(..=way)?.rotate_right(1),
                Replacement::Fifo => {}
            }
            return None;
        }
        if set.len() < ways {
            self.lookups.first_fills += 1;
            set.push(entry);
            match replacement {
                Replacement::Min => {
                    let last = set.len() - 1;
                    set.swap(0, last);
                }
                Replacement::Lru | Replacement::Fifo => set.rotate_right(1),
            }
            return None;
        }
        self.lookups.evictions += 1;
        let way = match replacement {
            Replacement::Min => set.iter().enumerate().min_by_key(|(way, other)| (other.count(), *way))?.0,
            Replacement::Lru | Replacement::Fifo => set.len() - 1,
        };
        match replacement {
            // The entry in way 0 moves to the position of the evicted one.
            Replacement::Min => set.swap(0, way),
            Replacement::Lru | Replacement::Fifo => set.rotate_right(1),
        }
        set.first_mut().map(|first| std::mem::replace(first, entry))
    }

    /// Returns the remaining entries by set and way.
    pub fn finish(self) -> impl Iterator<Item = E> {
        self.sets.into_iter().flatten()
    }
}
