//! The final pass, which merges the heap info blocks of each context in the order in which they were written.

use std::collections::HashMap;

use super::info::HeapInfo;

/// Merged heap info blocks, one per context, in order of first occurrence.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::{HeapInfo, Merged};
/// use hatf_lab::sites::Amount;
///
/// let info = |context, blocks| HeapInfo::of_sums(context, Amount { blocks, bytes: 10 * blocks }, None);
/// let merged = Merged::from_iter([info(1, 2), info(2, 1), info(1, 5)]).finish();
/// let counts: Vec<_> = merged.iter().map(|info| (info.context, info.alloc_count)).collect();
/// assert_eq!(counts, [(1, 7), (2, 1)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Merged {
    places: HashMap<u64, usize>,
    infos: Vec<HeapInfo>,
}

impl Merged {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges a heap info block that was written after the previous ones; see [`HeapInfo::merge_with`].
    pub fn add(&mut self, info: HeapInfo, neighbours: bool) {
        match self.places.get(&info.context).and_then(|place| self.infos.get_mut(*place)) {
            Some(earlier) => earlier.merge_with(info, neighbours),
            None => {
                self.places.insert(info.context, self.infos.len());
                self.infos.push(info);
            }
        }
    }

    /// Returns the merged heap info blocks.
    #[must_use]
    pub fn finish(self) -> Vec<HeapInfo> {
        self.infos
    }
}

impl FromIterator<HeapInfo> for Merged {
    /// Merges the heap info blocks of one run.
    fn from_iter<I: IntoIterator<Item = HeapInfo>>(infos: I) -> Self {
        let mut merged = Self::new();
        infos.into_iter().for_each(|info| merged.add(info, true));
        merged
    }
}
