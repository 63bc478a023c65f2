//! A planning writer, which collects records until a block is full, plans every leaf, and writes the block.

use super::Options;
use super::block::Block;
use super::block_writer::BlockWriter;
use super::item_row::ItemRow;
use super::write_block::Report;
use metatf::Row;
use metatf::container::{Error, ErrorKind, Result, Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf::format::Interpretation;

/// A writer for the records of a trace that plans their encoding. Without planning, use
/// [`RecordWriter`](metatf::RecordWriter).
///
/// # Examples
///
/// ```
/// use metatf::container::WriteOptions;
/// use metatf::dynamic::{OwnedRecord, Schema, Trace};
/// use metatf_tools::recode::{Options, PlannedWriter};
///
/// let dtd = b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }";
/// let schema = Schema::parse("ticks.dtd", dtd)?;
/// let mut writer = PlannedWriter::new(Vec::new(), &schema, &WriteOptions::default(), Options::default())?;
/// for n in 0..100 {
///     let mut owned = OwnedRecord::default();
///     owned.push_number(n * 10);
///     writer.record(1, 3, &owned)?; // Section 0 and records 0 to 2 are predefined.
/// }
/// let (file, report) = writer.finish()?;
///
/// let mut sum = 0;
/// Trace::from_slice(&file)?.for_each(|record| sum += record.numbers()[1])?;
/// assert_eq!((report.records, sum), (100, 49_500));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PlannedWriter<S: Sink> {
    block: Block,
    writer: BlockWriter<S>,
}

/// Returns a block and a block writer for a trace with this schema.
pub(super) fn begin<S: Sink>(
    sink: S,
    schema: &Schema,
    write: &WriteOptions,
    options: &Options,
) -> Result<(Block, BlockWriter<S>)> {
    if super::unknown_field(&schema.format, &options.fields).is_some() {
        return Err(Error::at(0, ErrorKind::Usage("one of the fields to plan is not a numeric field of the DTD")));
    }
    Ok((Block::new(&schema.format, options), BlockWriter::new(sink, schema, write, options)?))
}

impl<S: Sink> PlannedWriter<S> {
    /// Starts a trace with this schema.
    ///
    /// # Errors
    /// Returns an error if the sink fails, or if the DTD lacks a requested field ([`super::unknown_field`] returns its
    /// name).
    pub fn new(sink: S, schema: &Schema, write: &WriteOptions, options: Options) -> Result<Self> {
        let (block, writer) = begin(sink, schema, write, &options)?;
        Ok(Self { block, writer })
    }

    /// Adds a record or comment. The row provides its values in order.
    ///
    /// # Errors
    /// Returns an error of the row or of the sink.
    pub fn row<'r>(&mut self, section: usize, record: u16, row: &mut impl Row<'r>) -> Result<()> {
        if self.block.push(section, record, row)? { self.flush() } else { Ok(()) }
    }

    /// Adds a record or comment from an owned record.
    ///
    /// # Errors
    /// Returns an error if the values do not match the record or the sink fails.
    pub fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()> {
        self.row(section, record, &mut ItemRow::new(owned.iter()))
    }

    /// Makes the leaf keep this interpretation from here on if it is more than an encoding of numbers (`sectionOffset`,
    /// `sectionStride`). Any other interpretation allows the leaf to be planned. At the start of the trace and of each
    /// group, this is set to the leaf's interpretation in the DTD.
    pub fn keep(&mut self, section: usize, record: u16, leaf: u8, interpretation: Interpretation) {
        self.block.keep(section, record, leaf, interpretation);
    }

    /// Makes every leaf of a section keep its interpretation in the DTD.
    pub fn keep_declared(&mut self, section: usize) {
        self.block.keep_declared(section);
    }

    /// Appends an element to a stream section after the records so far, and returns its offset. An element of a shared
    /// table has no offset yet, because it is written with the next data, or after the last group if no data follows.
    ///
    /// # Errors
    /// Returns the same errors as [`Writer::element`].
    pub fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<Option<u64>> {
        self.flush()?;
        self.writer.element(section, shared, owned)
    }

    /// Starts a group (version 1).
    ///
    /// # Errors
    /// Returns the sink's error.
    pub fn start_group(&mut self) -> Result<()> {
        self.flush()?;
        self.writer.start_group()?;
        self.block.start_group();
        Ok(())
    }

    /// Resets the state of a stream section.
    ///
    /// # Errors
    /// Returns the sink's error.
    pub fn reset_stream(&mut self, section: usize) -> Result<()> {
        self.flush()?;
        self.writer.reset_stream(section)
    }

    /// Adds user metadata, a JSON object.
    ///
    /// # Errors
    /// Returns the same errors as [`RecordWriter::user_metadata`](metatf::RecordWriter::user_metadata).
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.user_metadata(json)
    }

    /// Returns the underlying writer.
    pub(super) fn beneath(&mut self) -> &mut Writer<S> {
        self.writer.beneath()
    }

    /// Abandons the trace without a message. The content of the sink remains incomplete.
    pub fn abandon(self) {
        self.writer.abandon();
    }

    /// Writes the remaining records and returns the sink.
    ///
    /// # Errors
    /// Returns an error if the sink fails, or if the last block's records lack elements in their stream sections.
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
