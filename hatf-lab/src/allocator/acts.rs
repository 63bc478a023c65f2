//! The elementary acts of an allocator, which are counted.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Declares the acts, with their names in reports.
macro_rules! acts {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// An elementary act.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Act {
            $($(#[$doc])* $variant,)+
        }

        impl Act {
            /// All acts.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns its name in reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

acts! {
    /// A free block was looked at.
    Examined = "examined",
    /// A block was marked used or free.
    Tagged = "tagged",
    /// A block was cut in two.
    Split = "split",
    /// A block was taken out of a free list.
    Unlinked = "unlinked",
    /// A freed block became part of a neighbour.
    Merged = "merged",
    /// A block was put into a free list.
    Inserted = "inserted",
    /// An entry of a cache was compared with a size.
    Compared = "compared",
    /// A cached item went back to the allocator below.
    Flushed = "flushed",
    /// A bucket's size was doubled to find the right bucket.
    Doubled = "doubled",
    /// A block was cut from fresh memory.
    Cut = "cut",
    /// Memory was asked of the system.
    Sbrk = "sbrk",
    /// Memory was given back to the system.
    Returned = "returned",
    /// A cache served an allocation: no act of its own, so of weight 0.
    Hit = "hits",
    /// A cache did not serve an allocation: no act of its own, so of weight 0.
    Missed = "misses",
    /// A cache gave up an entry: no act of its own, so of weight 0. Its items are [`Flushed`](Self::Flushed).
    GivenUp = "flushes",
}

/// How often each act was done. Weights of acts are of this type, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acts([u64; Act::ALL.len()]);

impl Acts {
    /// Makes the default weights: 1 for each act, 0 for what only says how often a cache served.
    #[must_use]
    pub fn weights() -> Self {
        let mut weights = Self([1; Act::ALL.len()]);
        [Act::Hit, Act::Missed, Act::GivenUp].into_iter().for_each(|act| weights.set(act, 0));
        weights
    }

    /// Counts one.
    #[inline]
    pub fn note(&mut self, act: Act) {
        self.add(act, 1);
    }

    /// Counts several.
    #[inline]
    pub fn add(&mut self, act: Act, count: u64) {
        if let Some(sum) = self.0.get_mut(act as usize) {
            *sum += count;
        }
    }

    /// Replaces one count.
    pub fn set(&mut self, act: Act, count: u64) {
        if let Some(sum) = self.0.get_mut(act as usize) {
            *sum = count;
        }
    }

    /// Returns how often an act was done.
    #[must_use]
    pub fn of(&self, act: Act) -> u64 {
        self.0.get(act as usize).copied().unwrap_or(0)
    }

    /// Returns the sum of all counts, each times its weight.
    #[must_use]
    pub fn weighted(&self, weights: &Self) -> u128 {
        self.0.iter().zip(weights.0).map(|(count, weight)| u128::from(*count) * u128::from(weight)).sum()
    }
}

impl Serialize for Acts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Act::ALL.len()))?;
        Act::ALL.iter().try_for_each(|act| map.serialize_entry(act.name(), &self.of(*act)))?;
        map.end()
    }
}
