//! Builds chunks (in version 0, parts of the single extent) in place, if the sink is memory and content is stored
//! unchanged.
//!
//! One section at a time borrows the sink's memory. Before any other data is written to the sink, the memory is
//! returned, and the current chunk moves to a separate buffer.

use super::{FileWriter, RecordCore};
use metatf_container::{ChunkSpec, Result, Sink};

impl RecordCore<dyn Sink + '_> {
    /// Borrows the sink's memory for the section's next chunk, if possible.
    ///
    /// # Errors
    /// Returns an error from the sink.
    pub(super) fn start_in_place(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|writer| writer.out.is_empty()) else { return Ok(()) };
        if self.waits || self.in_place.is_some() {
            return Ok(());
        }
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let memory = match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.borrow_memory(&mut self.sink, number),
            // If the format has several sections, the trace will need more than one extent.
            Some(FileWriter::Extents(extents))
                if self.format.sections.iter().filter(|s| s.number != 0).count() == 1 =>
            {
                extents.borrow_memory(&mut self.sink, number)?
            }
            Some(FileWriter::Extents(_)) | None => None,
        };
        if let Some(memory) = memory {
            writer.out.continue_in(memory);
            self.in_place = Some(section);
        }
        Ok(())
    }

    /// Returns the memory to the sink and moves the current chunk out of it.
    pub(crate) fn end_in_place(&mut self) {
        let Some(writer) = self.in_place.take().and_then(|section| self.sections.get_mut(section)) else { return };
        let start = writer.out.start();
        let content = writer.out.in_use().to_vec();
        let mut memory = writer.out.take();
        writer.out.append(&content);
        // Without content, this cannot fail.
        let _ = match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.return_memory(&mut self.sink, None, memory, start),
            Some(FileWriter::Extents(extents)) => {
                memory.truncate(start);
                extents.return_memory(&mut self.sink, memory, start)
            }
            None => Ok(()),
        };
    }

    /// Closes a chunk that was built in the sink's memory.
    pub(crate) fn close_in_place(&mut self, section: usize, spec: ChunkSpec) -> Result<()> {
        self.in_place = None;
        let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
        let start = writer.out.start();
        let memory = writer.out.take();
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.return_memory(&mut self.sink, Some(spec), memory, start),
            Some(FileWriter::Extents(extents)) => extents.return_memory(&mut self.sink, memory, start),
            None => Ok(()),
        }
    }
}
