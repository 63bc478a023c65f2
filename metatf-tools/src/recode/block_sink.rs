//! The sink of blocks and of the steps between them.

use super::block::Block;
use super::block_writer::BlockWriter;
use super::failure::Failure;
use metatf::container::{Error, ErrorKind, Sink};
use metatf::dynamic::OwnedRecord;

/// A sink of blocks and steps, which arrive in trace order. A started block must be passed on before any other step.
pub(super) trait BlockSink {
    /// Takes a block and replaces it with a new one that starts where the taken block ends.
    fn block(&mut self, block: &mut Block) -> Result<(), Failure>;

    /// Takes an element, with its section and whether the section is a shared table. `offset` is the required offset of
    /// the element, if any.
    fn element(&mut self, element: (usize, bool), offset: Option<u64>, owned: &OwnedRecord) -> Result<(), Failure>;

    fn start_group(&mut self) -> Result<(), Failure>;

    fn reset_stream(&mut self, section: usize) -> Result<(), Failure>;

    fn user_metadata(&mut self, json: &str) -> Result<(), Failure>;
}

impl<S: Sink> BlockSink for BlockWriter<S> {
    fn block(&mut self, block: &mut Block) -> Result<(), Failure> {
        self.block(block).map_err(Failure::Write)
    }

    fn element(
        &mut self,
        (section, shared): (usize, bool),
        offset: Option<u64>,
        owned: &OwnedRecord,
    ) -> Result<(), Failure> {
        let found = self.element(section, shared, owned).map_err(Failure::Write)?;
        if found.zip(offset).is_some_and(|(found, offset)| found != offset) {
            let why = "offsets into a stream section would no longer refer to its elements";
            return Err(Failure::Write(Error::at(0, ErrorKind::Usage(why))));
        }
        Ok(())
    }

    fn start_group(&mut self) -> Result<(), Failure> {
        self.start_group().map_err(Failure::Write)
    }

    fn reset_stream(&mut self, section: usize) -> Result<(), Failure> {
        self.reset_stream(section).map_err(Failure::Write)
    }

    fn user_metadata(&mut self, json: &str) -> Result<(), Failure> {
        self.user_metadata(json).map_err(Failure::Write)
    }
}
