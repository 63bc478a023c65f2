//! Chunks, or in version 0 parts of the one extent, that are made in place: where the sink is memory, and content is stored as it
//! is.
//!
//! One section at a time borrows the sink's memory. Before anything else goes to the sink, its memory is given back, and the chunk
//! in progress is moved into a buffer of its own.

use super::{FileWriter, RecordWriter};
use metatf_container::{ChunkSpec, Result, Sink};

impl<S: Sink> RecordWriter<S> {
    /// Borrows the sink's memory for the next chunk of the section, where that is possible.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn start_in_place(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|writer| writer.out.is_empty()) else { return Ok(()) };
        if self.waits || self.in_place.is_some() {
            return Ok(());
        }
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let memory = match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.borrow_memory(number),
            // With several sections there will be more than one extent.
            Some(FileWriter::Extents(extents))
                if self.format.sections.iter().filter(|s| s.number != 0).count() == 1 =>
            {
                extents.borrow_memory(number)?
            }
            Some(FileWriter::Extents(_)) | None => None,
        };
        if let Some(memory) = memory {
            writer.out.continue_in(memory);
            self.in_place = Some(section);
        }
        Ok(())
    }

    /// Gives the sink its memory back, and moves the chunk in progress out of it.
    pub(crate) fn end_in_place(&mut self) {
        let Some(writer) = self.in_place.take().and_then(|section| self.sections.get_mut(section)) else { return };
        let start = writer.out.start();
        let content = writer.out.in_use().to_vec();
        let mut memory = writer.out.take();
        writer.out.append(&content);
        // Without content nothing can be wrong with it.
        let _ = match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.return_memory(None, memory, start),
            Some(FileWriter::Extents(extents)) => {
                memory.truncate(start);
                extents.return_memory(memory, start)
            }
            None => Ok(()),
        };
    }

    /// Closes a chunk that was made in the sink's memory.
    pub(crate) fn close_in_place(&mut self, section: usize, spec: ChunkSpec) -> Result<()> {
        self.in_place = None;
        let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
        let start = writer.out.start();
        let memory = writer.out.take();
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => chunks.return_memory(Some(spec), memory, start),
            Some(FileWriter::Extents(extents)) => extents.return_memory(memory, start),
            None => Ok(()),
        }
    }
}
