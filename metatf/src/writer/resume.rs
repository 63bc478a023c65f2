//! Continues an existing trace (see [`AppendFile`](metatf_container::AppendFile)) with further groups.

use super::{FileWriter, RecordCore};
use metatf_container::Sink;

impl RecordCore<dyn Sink + '_> {
    /// Adopts the byte order, the class and the counts of the trace that the container continues. A new trace has none
    /// of its records yet, so nothing changes.
    pub(super) fn resume(&mut self) {
        let Some(FileWriter::Chunks(chunks)) = &self.layout else { return };
        let (header, written) = chunks.written();
        (self.order, self.int_size) = (header.order, header.class.int_size());
        for chunk in written.iter().filter(|chunk| chunk.is_data()) {
            self.group += u32::from(chunk.is_group_start());
            let Some(index) = self.format.section_index(chunk.section) else { continue };
            if !self.format.sections.get(index).is_some_and(|section| section.stream) {
                self.records += u64::from(chunk.nrecords);
            } else if let Some(stream) = self.streams.streams.get_mut(index) {
                // A section is either a shared table or belongs to groups, so only one of the lengths is used.
                stream.table_length = chunk.base + u64::from(chunk.raw_len);
                stream.local_length = stream.table_length;
            }
        }
    }
}
