//! Compares offsets by the elements they refer to.

use super::ignored::Addresses;
use super::pair::{LeafPair, Pairs};
use super::{PassCursor, values_differ};
use crate::value_indices::ValueIndices;
use metatf::container::{ErrorKind, Result};
use metatf::dynamic::OwnedRecord;
use std::collections::{HashMap, HashSet};

/// Maximum number of verdicts to cache. When the cache is full, it is cleared.
const KEPT: usize = 1 << 20;

/// A pair of offsets, left and right, each with the index of its section.
type OffsetPair = [(usize, u64); 2];

/// The verdicts about pairs of offsets.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    known: HashMap<OffsetPair, bool>,
    /// Corresponding addresses, which are references like offsets.
    pub(super) addresses: Addresses,
}

impl Offsets {
    /// Returns whether two offsets currently refer to equal elements. If no element starts at one of the offsets,
    /// returns whether they are equal numbers. If the elements contain offsets themselves, these offsets are followed
    /// as well, and the elements are equal unless a difference is found.
    pub(super) fn same(
        &mut self,
        pairs: &Pairs,
        cursors: [&mut PassCursor<'_, '_>; 2],
        sections: [usize; 2],
        offsets: [u64; 2],
    ) -> Result<bool, (super::Which, metatf::container::Error)> {
        let key = [(sections[0], offsets[0]), (sections[1], offsets[1])];
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let [left, right] = cursors;
        // Assume that all pairs are equal until a difference is found.
        let mut assumed = HashSet::from([key]);
        let mut waiting = vec![key];
        self.known.insert(key, true);
        let asked = key;
        while let Some(key) = waiting.pop() {
            let a = element(left, key[0]).map_err(|e| (super::Which::Left, e))?;
            let b = element(right, key[1]).map_err(|e| (super::Which::Right, e))?;
            let same = match (a, b) {
                (Some(a), Some(b)) => match self.elements(pairs, [left, right], key, [&a, &b]) {
                    Some(more) => {
                        assumed.extend(&more);
                        waiting.extend(more);
                        true
                    }
                    None => false,
                },
                _ => key[0].1 == key[1].1,
            };
            if !same {
                for key in assumed {
                    self.known.remove(&key);
                }
                self.known.insert(asked, false);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares two elements except for their offsets. Returns the pairs of offsets without a verdict, or `None` if the
    /// elements differ.
    fn elements(
        &mut self,
        pairs: &Pairs,
        [left, right]: [&PassCursor<'_, '_>; 2],
        key: OffsetPair,
        [a, b]: [&OwnedRecord; 2],
    ) -> Option<Vec<OffsetPair>> {
        let element = |cursor: &PassCursor<'_, '_>, section: usize| {
            let format = &cursor.trace.schema().format;
            format.sections.get(section).and_then(|s| s.records.first()).copied()
        };
        let (l, r) = (element(left, key[0].0)?, element(right, key[1].0)?);
        let Some(pair) = pairs.record(key[0].0, l).filter(|_| pairs.sections.contains(&[key[0].0, key[1].0])) else {
            // The tables have different names, so compare the offsets as numbers.
            return (a == b).then(Vec::new);
        };
        let mut indices = [ValueIndices::default(), ValueIndices::default()];
        for (indices, (cursor, record, owned)) in indices.iter_mut().zip([(left, l, a), (right, r, b)]) {
            indices.fill(cursor.trace.schema().format.records.get(usize::from(record))?, owned);
        }
        let mut more = Vec::new();
        for &LeafPair { left, right, offsets, address } in &pair.leaves {
            let (x, y) = (indices[0].of(left), indices[1].of(right));
            if x.len() != y.len() {
                return None;
            }
            for (&x, &y) in x.iter().zip(y) {
                match (offsets, super::number(a, x), super::number(b, y)) {
                    (Some([s, t]), Some(x), Some(y)) => {
                        let key = [(s, x), (t, y)];
                        match self.known.get(&key) {
                            Some(true) => {}
                            Some(false) => return None,
                            None => {
                                self.known.insert(key, true);
                                more.push(key);
                            }
                        }
                    }
                    (_, Some(x), Some(y)) if address && !self.addresses.same(x, y) => return None,
                    (_, Some(_), Some(_)) if address => {}
                    _ if values_differ([a, b], [x, y]) => return None,
                    _ => {}
                }
            }
        }
        Some(more)
    }
}

/// Returns the element at an offset, or `None` if no element starts there or the element is corrupt.
fn element(cursor: &mut PassCursor<'_, '_>, (section, offset): (usize, u64)) -> Result<Option<OwnedRecord>> {
    let mut owned = OwnedRecord::default();
    match cursor.trace.reader_mut().element_at(section, offset, |row| owned.decode(row)) {
        Ok(()) => Ok(Some(owned)),
        Err(error) if matches!(error.kind, ErrorKind::Io(_)) => Err(error),
        Err(_) => Ok(None),
    }
}
