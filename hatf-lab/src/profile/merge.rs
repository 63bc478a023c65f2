//! The later pass: merges heap info blocks of one context in the order in which they were written.

use std::collections::HashMap;

use super::info::HeapInfo;

/// Heap info blocks, one for each context, in the order in which contexts were first met.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    places: HashMap<u64, usize>,
    infos: Vec<HeapInfo>,
}

impl Merged {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Merges one that was written after those before; see [`HeapInfo::merge_with`].
    pub fn add(&mut self, info: HeapInfo, neighbours: bool) {
        match self.places.get(&info.context).and_then(|place| self.infos.get_mut(*place)) {
            Some(earlier) => earlier.merge_with(info, neighbours),
            None => {
                self.places.insert(info.context, self.infos.len());
                self.infos.push(info);
            }
        }
    }

    /// Returns them.
    #[must_use]
    pub fn finish(self) -> Vec<HeapInfo> {
        self.infos
    }
}

impl FromIterator<HeapInfo> for Merged {
    /// Merges those of one run.
    fn from_iter<I: IntoIterator<Item = HeapInfo>>(infos: I) -> Self {
        let mut merged = Self::new();
        infos.into_iter().for_each(|info| merged.add(info, true));
        merged
    }
}
