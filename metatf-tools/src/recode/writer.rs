//! A writer that plans: it holds records until a block is full, plans every leaf, and writes the block.

use super::Options;
use super::block::Block;
use super::block_writer::BlockWriter;
use super::item_row::ItemRow;
use super::write_block::Report;
use metatf::Row;
use metatf::container::{Error, ErrorKind, Result, Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf::format::Interpretation;

/// Writes the records of a trace by a plan. What [`RecordWriter`](metatf::RecordWriter) is without one.
pub struct PlannedWriter<S: Sink> {
    block: Block,
    writer: BlockWriter<S>,
}

/// A block and its writer, of a trace of this schema.
pub(super) fn begin<S: Sink>(
    sink: S,
    schema: &Schema,
    write: &WriteOptions,
    options: &Options,
) -> Result<(Block, BlockWriter<S>)> {
    if super::unknown_field(&schema.format, &options.fields).is_some() {
        return Err(Error::at(0, ErrorKind::Usage("the DTD has no numeric field of a name that is to be planned")));
    }
    Ok((Block::new(&schema.format, options), BlockWriter::new(sink, schema, write, options)?))
}

impl<S: Sink> PlannedWriter<S> {
    /// Starts a trace of this schema.
    ///
    /// # Errors
    /// The sink's; a field the DTD does not have ([`super::unknown_field`] names it).
    pub fn new(sink: S, schema: &Schema, write: &WriteOptions, options: Options) -> Result<Self> {
        let (block, writer) = begin(sink, schema, write, &options)?;
        Ok(Self { block, writer })
    }

    /// Adds a record or comment: the row gives its values in order.
    ///
    /// # Errors
    /// The row's, then the sink's.
    pub fn row<'r>(&mut self, section: usize, record: u16, row: &mut impl Row<'r>) -> Result<()> {
        if self.block.push(section, record, row)? { self.flush() } else { Ok(()) }
    }

    /// Adds a record or comment from an owned record.
    ///
    /// # Errors
    /// Values that are not those of the record; the sink's.
    pub fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()> {
        self.row(section, record, &mut ItemRow::new(owned.iter()))
    }

    /// From here on the leaf keeps this interpretation, if it is one that says more than how a number is stored
    /// (`sectionOffset`, `sectionStride`); any other sets the leaf free to be planned. At the start, and at the start of
    /// a group, each leaf keeps what the DTD says.
    pub fn keep(&mut self, section: usize, record: u16, leaf: u8, interpretation: Interpretation) {
        self.block.keep(section, record, leaf, interpretation);
    }

    /// Every leaf of a section keeps what the DTD says.
    pub fn keep_declared(&mut self, section: usize) {
        self.block.keep_declared(section);
    }

    /// Appends an element to a stream section, behind the records so far; gives its offset. An element of a shared table
    /// is written with what follows it, and has none yet; where nothing follows it stands behind the last group.
    ///
    /// # Errors
    /// As [`Writer::element`].
    pub fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<Option<u64>> {
        self.flush()?;
        self.writer.element(section, shared, owned)
    }

    /// Starts a group (version 1).
    ///
    /// # Errors
    /// The sink's.
    pub fn start_group(&mut self) -> Result<()> {
        self.flush()?;
        self.writer.start_group()?;
        self.block.start_group();
        Ok(())
    }

    /// Resets the state of a stream section.
    ///
    /// # Errors
    /// The sink's.
    pub fn reset_stream(&mut self, section: usize) -> Result<()> {
        self.flush()?;
        self.writer.reset_stream(section)
    }

    /// Adds user metadata, a JSON object.
    ///
    /// # Errors
    /// As [`RecordWriter::user_metadata`](metatf::RecordWriter::user_metadata).
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.user_metadata(json)
    }

    /// The writer that takes the blocks.
    pub(super) fn beneath(&mut self) -> &mut Writer<S> {
        self.writer.beneath()
    }

    /// Gives up: what is in the sink is not a whole trace, and there is no message.
    pub fn abandon(self) {
        self.writer.abandon();
    }

    /// Writes what is left; gives the sink back.
    ///
    /// # Errors
    /// The sink's; what the last block's records ask of their stream sections.
    pub fn finish(mut self) -> Result<(S, Report)> {
        if let Err(error) = self.flush() {
            self.writer.abandon();
            return Err(error);
        }
        self.writer.finish()
    }

    /// Plans and writes the block.
    fn flush(&mut self) -> Result<()> {
        self.writer.block(&mut self.block)
    }
}
