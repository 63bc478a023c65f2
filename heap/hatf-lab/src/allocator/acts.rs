//! Counts of the elementary operations of an allocator.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Declares the operations and their names in reports.
macro_rules! acts {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// An elementary operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Act {
            $($(#[$doc])* $variant,)+
        }

        impl Act {
            /// All operations.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the operation's name in reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

acts! {
    /// A free block was examined.
    Examined = "examined",
    /// A block was marked as used or free.
    Tagged = "tagged",
    /// A block was split in two.
    Split = "split",
    /// A block was removed from a free list.
    Unlinked = "unlinked",
    /// A freed block was merged with a neighbour.
    Merged = "merged",
    /// A block was inserted into a free list.
    Inserted = "inserted",
    /// A cache entry was compared with a size.
    Compared = "compared",
    /// A cached item was returned to the underlying allocator.
    Flushed = "flushed",
    /// The bucket size was doubled while searching for the right bucket.
    Doubled = "doubled",
    /// A block was carved from fresh memory.
    Cut = "cut",
    /// Memory was requested from the system.
    Sbrk = "sbrk",
    /// Memory was returned to the system.
    Returned = "returned",
    /// A cache served an allocation. This is an outcome rather than an operation, so its weight is 0.
    Hit = "hits",
    /// A cache could not serve an allocation. This is an outcome rather than an operation, so its weight is 0.
    Missed = "misses",
    /// A cache evicted an entry. This is an outcome rather than an operation, so its weight is 0. The evicted items
    /// count as [`Flushed`](Self::Flushed).
    GivenUp = "flushes",
}

/// A count for each operation. Weights of operations have the same type.
///
/// # Examples
///
/// ```
/// use hatf_lab::allocator::{Act, Acts};
///
/// let mut acts = Acts::default();
/// acts.add(Act::Examined, 3);
/// acts.note(Act::Split);
/// acts.note(Act::Hit);
/// let mut weights = Acts::weights();
/// assert_eq!(acts.weighted(&weights), 3 + 1);
/// weights.set(Act::Split, 5);
/// assert_eq!(acts.weighted(&weights), 3 + 5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acts([u64; Act::ALL.len()]);

impl Acts {
    /// Returns the default weights: 1 for each operation, and 0 for the counters of cache outcomes.
    #[must_use]
    pub fn weights() -> Self {
        let mut weights = Self([1; Act::ALL.len()]);
        [Act::Hit, Act::Missed, Act::GivenUp].into_iter().for_each(|act| weights.set(act, 0));
        weights
    }

    /// Counts one operation.
    #[inline]
    pub fn note(&mut self, act: Act) {
        self.add(act, 1);
    }

    /// Counts several operations of the same kind.
    #[inline]
    pub fn add(&mut self, act: Act, count: u64) {
        if let Some(sum) = self.0.get_mut(act as usize) {
            *sum += count;
        }
    }

    /// Sets the count of one operation.
    pub fn set(&mut self, act: Act, count: u64) {
        if let Some(sum) = self.0.get_mut(act as usize) {
            *sum = count;
        }
    }

    /// Returns the count of an operation.
    #[must_use]
    pub fn of(&self, act: Act) -> u64 {
        self.0.get(act as usize).copied().unwrap_or(0)
    }

    /// Returns the sum of all counts, each multiplied by its weight.
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
