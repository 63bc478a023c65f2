//! Elements of tables that are stored once. A known element is found by its values, without being encoded.

use super::RecordWriter;
use crate::encode::RowWriter;
use crate::record::{Put, Stopped};
use hashbrown::HashMap;
use metatf_container::{Error, Result, Sink};

/// The elements that were interned.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// By section: the offset of each element, by its key.
    tables: Vec<HashMap<Box<[u8]>, u64>>,
    key: ElementKey,
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
            && let Some(&offset) = tables.get(section).and_then(|table| table.get(key.bytes.as_slice()))
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
            tables.resize_with(section + 1, HashMap::new);
        }
        if let Some(table) = tables.get_mut(section) {
            table.insert(key.bytes.as_slice().into(), offset);
        }
        Ok(offset)
    }
}
