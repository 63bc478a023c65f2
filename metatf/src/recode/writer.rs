//! A writer that plans: it holds records until a block is full, plans every leaf, and writes the block.

use super::leaves::Due;
use super::pinned::pinned;
use super::planners::Planners;
use super::rehearsal::Rehearsal;
use super::section_plans::SectionPlans;
use super::tape_row::TapeRow;
use super::{Groups, Options, Plan};
use crate::container::{Codec, Filter, Sink, WriteOptions};
use crate::dynamic::{Line, Schema, Tape, Writer};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, Interpretation};
use crate::reader::{Metadata, RecordReader};
use crate::row::Row;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Values and eighths of bytes that a block holds at most, whatever its records.
const BLOCK_SIZE: usize = 4 << 20;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Data records.
    pub records: u64,
    /// Metadata records planned.
    pub metadata: u64,
}

/// Writes the records of a trace by a plan. What [`RecordWriter`](crate::RecordWriter) is without one.
pub struct PlannedWriter<S: Sink> {
    writer: Writer<S>,
    format: Arc<Format>,
    options: Options,
    /// A block starts from the DTD's state: not in version 0, which cannot say so.
    resets: bool,
    /// Codes of models get the widths they need: where a codec follows, a row of zeros is as good as none, and metadata is not.
    narrow: bool,
    sections: Vec<SectionPlans>,
    /// Sections of the records held, in order, with how many follow one another.
    order: Vec<(usize, usize)>,
    held: usize,
    size: usize,
    group_bytes: usize,
    report: Report,
    planners: Planners,
}

impl<S: Sink> PlannedWriter<S> {
    /// Starts a trace of this schema.
    ///
    /// # Errors
    /// The sink's; a field the DTD does not have ([`super::unknown_field`] names it).
    pub fn new(sink: S, schema: &Schema, write: &WriteOptions, options: Options) -> Result<Self> {
        let format = Arc::clone(&schema.format);
        if super::unknown_field(&format, &options.fields).is_some() {
            return Err(Error::at(0, ErrorKind::Usage("the DTD has no numeric field of a name that is to be planned")));
        }
        let sections = (0..format.sections.len()).map(|s| SectionPlans::new(&format, s, &options)).collect();
        Ok(Self {
            writer: Writer::new(sink, schema, write)?,
            format,
            resets: write.version != 0,
            narrow: options.plan == Plan::Optimal && is_stored(write),
            options,
            sections,
            order: Vec::new(),
            held: 0,
            size: 0,
            group_bytes: 0,
            report: Report::default(),
            planners: Planners::new(write.threads),
        })
    }

    /// Adds a record or comment: the row gives its values in order.
    ///
    /// # Errors
    /// The row's, then the sink's.
    pub fn row<'r>(&mut self, section: usize, record: u16, row: &mut impl Row<'r>) -> Result<()> {
        if self.push(section, record, row)? { self.flush() } else { Ok(()) }
    }

    /// Adds a record to the block; true where the block is full, and is to be [flushed](Self::flush).
    pub(crate) fn push<'r>(&mut self, section: usize, record: u16, row: &mut impl Row<'r>) -> Result<bool> {
        let listed = self.format.sections.get(section).filter(|s| !s.stream).map(|s| &s.records);
        let kind = listed.and_then(|r| r.iter().position(|&r| r == record));
        let (Some(kind), Some(plans)) = (kind, self.sections.get_mut(section)) else {
            return Err(Error::at(0, ErrorKind::Usage("the section has no such record")));
        };
        let before = plans.columns.size;
        plans.columns.push(&self.format, kind, row)?;
        let size = plans.columns.size - before;
        Ok(self.note(section, 1, size))
    }

    /// Adds the records that the reader can give [in a run](RecordReader::run); true where the block is full, and is to be
    /// flushed. `step` is called for every record. What [`forget_recipes`](Self::forget_recipes) says is to be heeded.
    pub(crate) fn push_run(&mut self, reader: &mut RecordReader<'_>, step: &mut impl FnMut()) -> Result<bool> {
        let most = self.options.block.max(1).saturating_sub(self.held);
        let room = BLOCK_SIZE.saturating_sub(self.size);
        let (format, sections) = (&self.format, &mut self.sections);
        let added = reader.run(|section, run| {
            let Some(columns) = sections.get_mut(section).map(|plans| &mut plans.columns) else {
                return ControlFlow::Break((section, 0, 0));
            };
            let (before, size) = (columns.order.len(), columns.size);
            run.rows(|kind, row| {
                columns.push_row(format, kind.into(), row)?;
                step();
                let full = columns.order.len() - before >= most || columns.size - size >= room;
                Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            // Not on behind metadata, which changes the recipes.
            ControlFlow::Break((section, columns.order.len() - before, columns.size - size))
        });
        if let Some(error) = reader.stopped() {
            return Err(error);
        }
        let Some(ControlFlow::Break((section, count, size))) = added else { return Ok(false) };
        Ok(count > 0 && self.note(section, count, size))
    }

    /// The trace may store records otherwise than those that came in runs before.
    pub(crate) fn forget_recipes(&mut self) {
        for plans in &mut self.sections {
            plans.columns.forget_recipes();
        }
    }

    /// Records of a section were added, of this size; true where the block is full.
    fn note(&mut self, section: usize, count: usize, size: usize) -> bool {
        self.size += size;
        self.held += count;
        match self.order.last_mut() {
            Some((last, all)) if *last == section => *all += count,
            _ => self.order.push((section, count)),
        }
        self.held >= self.options.block.max(1) || self.size >= BLOCK_SIZE
    }

    /// Adds a record or comment from a tape.
    ///
    /// # Errors
    /// A tape that does not hold the record's values; the sink's.
    pub fn record(&mut self, section: usize, record: u16, tape: &Tape) -> Result<()> {
        self.row(section, record, &mut TapeRow::new(tape))
    }

    /// From here on the leaf keeps this interpretation, if it is one that says more than how a number is stored
    /// (`sectionOffset`, `sectionStride`); any other sets the leaf free to be planned. At the start, and at the start of
    /// a group, each leaf keeps what the DTD says.
    pub fn keep(&mut self, section: usize, record: u16, leaf: u8, interpretation: Interpretation) {
        let kind = self.format.sections.get(section).and_then(|s| s.records.iter().position(|&r| r == record));
        let Some(plans) = self.sections.get_mut(section) else { return };
        let row = u32::try_from(plans.columns.order.len()).unwrap_or(u32::MAX);
        let leaf = kind.and_then(|k| plans.leaves.get_mut(k)).and_then(|l| l.get_mut(usize::from(leaf)));
        if let Some(leaf) = leaf.filter(|l| l.settable) {
            leaf.keep(row, pinned(interpretation));
        }
    }

    /// Every leaf of a section keeps what the DTD says.
    pub fn keep_declared(&mut self, section: usize) {
        let Some(plans) = self.sections.get_mut(section) else { return };
        let row = u32::try_from(plans.columns.order.len()).unwrap_or(u32::MAX);
        for leaf in plans.leaves.iter_mut().flatten() {
            leaf.keep(row, pinned(leaf.declared.interpretation));
        }
    }

    /// Appends an element to a stream section, behind the records so far; gives its offset. An element of a shared table
    /// is written with what follows it, and has none yet; where nothing follows it stands behind the last group.
    ///
    /// # Errors
    /// As [`Writer::element`].
    pub fn element(&mut self, section: usize, shared: bool, tape: &Tape) -> Result<Option<u64>> {
        self.flush()?;
        if shared {
            return self.writer.write(&Line::Element(section, true), tape).map(|()| None);
        }
        self.writer.settle()?;
        self.writer.element(section, false, tape).map(Some)
    }

    /// Starts a group (version 1).
    ///
    /// # Errors
    /// The sink's.
    pub fn start_group(&mut self) -> Result<()> {
        self.flush()?;
        self.group_bytes = 0;
        self.writer.write(&Line::Group, &Tape::default())?;
        for section in 0..self.sections.len() {
            self.keep_declared(section);
        }
        Ok(())
    }

    /// Resets the state of a stream section.
    ///
    /// # Errors
    /// The sink's.
    pub fn reset_stream(&mut self, section: usize) -> Result<()> {
        self.flush()?;
        self.writer.write(&Line::Reset(section), &Tape::default())
    }

    /// Adds user metadata, a JSON object.
    ///
    /// # Errors
    /// As [`RecordWriter::user_metadata`](crate::RecordWriter::user_metadata).
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.inner().user_metadata(json)
    }

    /// The writer that takes the blocks.
    pub(super) fn beneath(&mut self) -> &mut Writer<S> {
        &mut self.writer
    }

    /// Gives up: what is in the sink is no whole trace, and nobody is told.
    pub fn abandon(self) {
        self.writer.abandon();
    }

    /// Writes what is left; gives the sink back.
    ///
    /// # Errors
    /// The sink's; what the last block's records ask of their stream sections.
    pub fn finish(mut self) -> Result<(S, Report)> {
        if let Err(error) = self.flush().and_then(|()| self.writer.end_before_tables()) {
            self.writer.abandon();
            return Err(error);
        }
        Ok((self.writer.finish()?, self.report))
    }

    /// Plans and writes the block.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.held == 0 {
            return Ok(());
        }
        if let Groups::Bytes(most) = self.options.groups
            && self.resets
            && self.group_bytes >= most
        {
            self.group_bytes = 0;
            self.writer.write(&Line::Group, &Tape::default())?;
        }
        self.writer.settle()?;
        let order = std::mem::take(&mut self.order);
        for plan in &mut self.sections {
            plan.columns.settle();
        }
        if self.is_to_be_rehearsed() {
            let writer = self.writer.inner();
            let rehearsal = Rehearsal::new(&self.format, writer);
            rehearsal.run(writer, (&mut self.sections, &order), (self.resets, self.narrow))?;
        }
        let mut plans = Vec::new();
        let header = 2 * u32::from(self.format.tag_width) + 2;
        for plan in &mut self.sections {
            plans.push(if plan.columns.order.is_empty() {
                Vec::new()
            } else {
                plan.plan(header, self.options.plan, &mut self.planners)
            });
            plan.reset = self.resets;
        }
        self.write(&order, &plans)?;
        for plan in &mut self.sections {
            plan.next_block(&self.format, self.resets);
        }
        self.order = order;
        self.order.clear();
        self.held = 0;
        self.size = 0;
        Ok(())
    }

    /// Whether the plan looks at the codes of models; or they may find no room for what they leave to stream sections, which
    /// leaves have to be known of.
    fn is_to_be_rehearsed(&self) -> bool {
        let takers = |target: u8| self.sections.iter().map(|s| s.takers(&self.format, target)).sum::<usize>();
        let needed = self.narrow || !self.resets;
        let models = &self.format.models;
        !models.is_empty() && (needed || models.iter().any(|model| takers(model.section) > 1))
    }

    fn write(&mut self, order: &[(usize, usize)], plans: &[Vec<Due>]) -> Result<()> {
        let mut players: Vec<_> =
            self.sections.iter().zip(plans).map(|(s, dues)| s.players(&self.format, dues)).collect();
        let mut at = vec![(0_usize, 0_usize); self.sections.len()];
        // A section with models may begin anew, as its DTD says, wherever they are too large.
        let narrows = self.format.models.is_empty();
        for &(section, count) in order {
            let (Some(plan), Some(players), Some(at), Some(dues), Some(s)) = (
                self.sections.get_mut(section),
                players.get_mut(section),
                at.get_mut(section),
                plans.get(section),
                self.format.sections.get(section),
            ) else {
                continue;
            };
            let inner = self.writer.inner();
            if std::mem::take(&mut plan.reset) {
                inner.reset(section)?;
            }
            for _ in 0..count {
                while let Some(due) = dues.get(at.1).filter(|d| d.row as usize == at.0) {
                    let record = s.records.get(due.kind).and_then(|&r| self.format.records.get(usize::from(r)));
                    let leaf = u8::try_from(due.leaf).unwrap_or(u8::MAX);
                    inner.metadata(section, &Metadata::new(record.map_or(0, |r| r.tag), leaf, due.change))?;
                    self.report.metadata += 1;
                    at.1 += 1;
                }
                let kind = plan.columns.order.get(at.0).map_or(0, |&k| usize::from(k));
                at.0 += 1;
                let (Some(player), Some(records), Some(&record)) =
                    (players.get_mut(kind), plan.columns.kinds.get(kind), s.records.get(kind))
                else {
                    continue;
                };
                inner.record(section, record, |row| player.play(records, row))?;
                if player.advance(records)
                    && narrows
                    && let Some(r) = self.format.records.get(usize::from(record))
                    && let Some(state) = inner.state(section, record)
                {
                    player.narrow(records, r, state);
                }
                self.report.records += u64::from(record != crate::format::COMMENT);
            }
        }
        self.group_bytes += self.sections.iter().map(|s| s.columns.size).sum::<usize>();
        Ok(())
    }
}

/// Whether chunks of records stay as they are encoded.
fn is_stored(write: &WriteOptions) -> bool {
    let filtered = !matches!(write.filter, Filter::None | Filter::Auto);
    write.version == 0 || (write.codec == Codec::Stored && write.trial.is_none() && !filtered)
}
