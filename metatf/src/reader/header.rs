//! Fields of a file's header whose values the records of the file take (spec 5.4).

use super::RecordReader;
use crate::record::Visit;
use crate::state::State;

/// The values of a header's leaves. A byte array counts as 0.
#[derive(Debug, Default)]
pub(super) struct HeaderValues(pub(super) Vec<u64>);

impl Visit<'_> for HeaderValues {
    fn number(&mut self, leaf: u8, value: u64) {
        let leaf = usize::from(leaf);
        if self.0.len() <= leaf {
            self.0.resize(leaf + 1, 0);
        }
        if let Some(slot) = self.0.get_mut(leaf) {
            *slot = value;
        }
    }

    fn bytes(&mut self, _: u8, _: &[u8]) {}
}

impl RecordReader<'_> {
    /// Reads the header of a raw stream if records take values from it. A mistake in the header is reported when the
    /// header itself is read.
    pub(super) fn read_header(&mut self) {
        let start = self.format.raw.as_ref().and_then(|raw| raw.starts.first()).map(|start| start.section);
        let section = start.and_then(|number| self.format.section_index(number));
        let takes = self.format.records.iter().any(|record| record.leaves.iter().any(|leaf| leaf.header.is_some()));
        let Some(section) = section.filter(|_| takes && self.container.raw_section().is_some()) else { return };
        let mut values = HeaderValues::default();
        if self.element_at(section, 0, |row| Ok(row.walk(&mut values)?)).is_ok() {
            self.set_header(&values.0);
        }
    }

    /// Sets the values that records take from the header.
    pub(super) fn set_header(&mut self, values: &[u64]) {
        self.header = values.to_vec();
        let format = self.format.clone();
        self.states.iter_mut().for_each(|state: &mut State| state.set_header(&format, values));
    }
}
