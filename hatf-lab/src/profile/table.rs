//! The table of heap info blocks: a set-associative cache of contexts.

use std::str::FromStr;

use serde::Serialize;

use crate::{Error, Result};

/// What the table holds of a context.
pub trait Entry {
    /// Returns the context's number.
    fn context(&self) -> u64;

    /// Returns how many blocks it is of.
    fn count(&self) -> u64;

    /// Merges one of the same context that comes later.
    fn merge(&mut self, later: Self);
}

/// Which entry of a full set makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacement {
    /// The one of the fewest blocks, of several the one in the lowest way. An entry that was hit, and a new one, swap places with way 0.
    #[default]
    Min,
    /// The one that was hit the longest ago.
    Lru,
    /// The one that has been in the set for longest.
    Fifo,
}

/// The size of a table, and how it replaces entries. As text: `16381x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TableSettings {
    /// Sets. A context's set is its number modulo this; a prime spreads them well.
    pub sets: usize,
    /// Entries of a set.
    pub ways: usize,
    /// Which of them is evicted.
    pub replacement: Replacement,
}

impl Default for TableSettings {
    /// As the document has it: 65,524 entries.
    fn default() -> Self {
        Self { sets: 16_381, ways: 4, replacement: Replacement::Min }
    }
}

/// The most entries that a table may have.
const MOST: usize = 1 << 24;

impl TableSettings {
    /// Checks that the table has entries, and not too many.
    ///
    /// # Errors
    /// It has none, or more than 2^24.
    pub fn checked(self) -> Result<Self> {
        match self.sets.checked_mul(self.ways) {
            Some(1..=MOST) => Ok(self),
            _ => Err(Error::Usage(format!("a table of {}x{}: expected 1 to {MOST} entries", self.sets, self.ways))),
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

/// What the look-ups of a table came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lookups {
    /// All of them: one for each block that ended.
    pub lookups: u64,
    /// Those that filled an empty entry.
    pub first_fills: u64,
    /// Those that evicted an entry. What is left of all found their context.
    pub evictions: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub struct InfoTable<E> {
    settings: TableSettings,
    /// In each set way 0 comes first; sets begin empty.
    sets: Vec<Vec<E>>,
    lookups: Lookups,
}

impl<E: Entry> InfoTable<E> {
    /// Makes an empty table.
    ///
    /// # Errors
    /// See [`TableSettings::checked`].
    pub fn new(settings: TableSettings) -> Result<Self> {
        let TableSettings { sets, .. } = settings.checked()?;
        Ok(Self { settings, sets: std::iter::repeat_with(Vec::new).take(sets).collect(), lookups: Lookups::default() })
    }

    /// Returns what it was made with.
    #[must_use]
    pub fn settings(&self) -> TableSettings {
        self.settings
    }

    /// Returns what its look-ups came to so far.
    #[must_use]
    pub fn lookups(&self) -> Lookups {
        self.lookups
    }

    /// Merges an entry with the one of its context, or puts it into the table; returns the one that was evicted for it.
    #[inline]
    pub fn insert(&mut self, entry: E) -> Option<E> {
        let TableSettings { sets, ways, replacement } = self.settings;
        self.lookups.lookups += 1;
        let number = usize::try_from(entry.context() % sets as u64).unwrap_or(0);
        let set = self.sets.get_mut(number)?;
        // Most often it is in way 0, where it stays.
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
            // What was in way 0 goes to where the evicted one was.
            Replacement::Min => set.swap(0, way),
            Replacement::Lru | Replacement::Fifo => set.rotate_right(1),
        }
        set.first_mut().map(|first| std::mem::replace(first, entry))
    }

    /// Returns the entries that are left, by set and way.
    pub fn finish(self) -> impl Iterator<Item = E> {
        self.sets.into_iter().flatten()
    }
}
