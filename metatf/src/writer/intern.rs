//! Elements of tables that are stored once. A known element is found by its values, without being encoded.

use super::RecordWriter;
use crate::encode::RowWriter;
use crate::record::{Put, Stopped};
use hashbrown::{DefaultHashBuilder, HashTable};
use metatf_container::{Error, Result, Sink};
use std::hash::BuildHasher;

/// The elements that were interned.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// By section.
    tables: Vec<Known>,
    key: ElementKey,
}

/// The elements of a table that were interned.
///
/// They lie one behind the other: offset and length of the key in eight bytes each, key. To find one touches little memory,
/// as interning is bound by that.
#[derive(Debug, Default)]
struct Known {
    elements: Vec<u8>,
    /// Where in `elements` each begins.
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl Known {
    /// The offset of the element of this key.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<u64> {
        let hash = self.hasher.hash_one(key);
        let &at = self.index.find(hash, |&at| element(&self.elements, at).is_some_and(|(_, known)| known == key))?;
        element(&self.elements, at).map(|(offset, _)| offset)
    }

    fn add(&mut self, key: &[u8], offset: u64) {
        let Self { elements, index, hasher } = self;
        let at = elements.len();
        elements.extend_from_slice(&offset.to_le_bytes());
        elements.extend_from_slice(&(key.len() as u64).to_le_bytes());
        elements.extend_from_slice(key);
        let hash = |at: usize| hasher.hash_one(element(elements, at).map_or(&[][..], |(_, key)| key));
        index.insert_unique(hash(at), at, |&at| hash(at));
    }
}

/// Offset and key of the element that begins at `at`.
#[inline]
fn element(elements: &[u8], at: usize) -> Option<(u64, &[u8])> {
    let (offset, rest) = elements.get(at..)?.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let key = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((u64::from_le_bytes(*offset), key))
}

/// The values of an element as bytes: numbers in eight, byte arrays behind the number that is their length.
#[derive(Debug)]
pub(crate) struct ElementKey {
    bytes: Vec<u8>,
    /// The last number of each leaf.
    last: [u64; 256],
}

impl Default for ElementKey {
    fn default() -> Self {
        Self { bytes: Vec::new(), last: [0; 256] }
    }
}

impl Put for ElementKey {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    #[inline]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.last[usize::from(leaf)] = value;
        self.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The count is a number of the element.
    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Ok(())
    }

    #[inline]
    fn last(&self, leaf: u8) -> u64 {
        self.last[usize::from(leaf)]
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Like [`element`](Self::element) of a shared table, but equal elements are stored once. `write_key` and `encode` give
    /// the same values.
    ///
    /// # Errors
    /// As [`element`](Self::element).
    #[inline]
    pub(crate) fn intern(
        &mut self,
        section: usize,
        write_key: impl FnOnce(&mut ElementKey) -> Result<(), Stopped>,
        mut encode: impl FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        let Interned { tables, key } = &mut self.interned;
        key.bytes.clear();
        // What stops here stops the encoding, too.
        if write_key(key).is_ok()
            && let Some(offset) = tables.get(section).and_then(|table| table.find(&key.bytes))
        {
            return Ok(offset);
        }
        self.intern_new(section, &mut encode)
    }

    #[inline(never)]
    fn intern_new(&mut self, section: usize, encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>) -> Result<u64> {
        let offset = self.element(section, true, encode)?;
        let Interned { tables, key } = &mut self.interned;
        if tables.len() <= section {
            tables.resize_with(section + 1, Known::default);
        }
        if let Some(table) = tables.get_mut(section) {
            table.add(&key.bytes, offset);
        }
        Ok(offset)
    }
}
