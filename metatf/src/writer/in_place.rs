//! Chunks, or in version 0 parts of the one extent, that are made where they will stand: where the sink is memory, and content
//! is stored as it is.
//!
//! The sink lends its memory to one section at a time. Before anything else goes to the sink, it has it back, and what is in
//! the chunk so far goes on in a buffer of its own.

use super::{Layout, RecordWriter};
use crate::container::{ChunkSpec, Sink};
use crate::error::Result;

impl<S: Sink> RecordWriter<S> {
    /// Lets the next chunk of the section be made in the sink's memory, if that can be.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn lend(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|writer| writer.out.is_empty()) else { return Ok(()) };
        if self.waits || self.lent.is_some() {
            return Ok(());
        }
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let memory = match &mut self.layout {
            Some(Layout::Chunks(chunks)) => chunks.borrow_memory(number),
            // With several sections there will be more than one extent.
            Some(Layout::Extents(extents)) if self.format.sections.iter().filter(|s| s.number != 0).count() == 1 => {
                extents.borrow_memory(number)?
            }
            Some(Layout::Extents(_)) => None,
            None => None,
        };
        if let Some(memory) = memory {
            writer.out.go_on_in(memory);
            self.lent = Some(section);
        }
        Ok(())
    }

    /// The sink has its memory back.
    pub(crate) fn give_back(&mut self) {
        let Some(writer) = self.lent.take().and_then(|section| self.sections.get_mut(section)) else { return };
        let start = writer.out.start();
        let content = writer.out.in_use().to_vec();
        let mut memory = writer.out.take();
        writer.out.append(&content);
        // Without content nothing can be wrong with it.
        let _ = match &mut self.layout {
            Some(Layout::Chunks(chunks)) => chunks.return_memory(None, memory, start),
            Some(Layout::Extents(extents)) => {
                memory.truncate(start);
                extents.return_memory(memory, start)
            }
            None => Ok(()),
        };
    }

    /// Ends a chunk that was made in the sink's memory.
    pub(crate) fn close_lent(&mut self, section: usize, spec: ChunkSpec) -> Result<()> {
        self.lent = None;
        let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
        let start = writer.out.start();
        let memory = writer.out.take();
        match &mut self.layout {
            Some(Layout::Chunks(chunks)) => chunks.return_memory(Some(spec), memory, start),
            Some(Layout::Extents(extents)) => extents.return_memory(memory, start),
            None => Ok(()),
        }
    }
}
