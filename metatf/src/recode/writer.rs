//! A writer that plans: it holds records until a block is full, plans every leaf, and writes the block.

use super::columns::{SectionColumns, TapeRow};
use super::leaf::Setting;
use super::leaves::{Due, LeafPlan, LeafToPlan};
use super::pinned::pinned;
use super::planners::Planners;
use super::{Groups, Options, Plan};
use crate::container::{Sink, WriteOptions};
use crate::dynamic::{Line, Schema, Tape, Writer};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, Interpretation, LeafKind};
use crate::reader::Metadata;
use crate::row::Row;
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
    sections: Vec<SectionPlans>,
    /// Sections of the records held, in order, with how many follow one another.
    order: Vec<(usize, u32)>,
    held: usize,
    size: usize,
    group_bytes: usize,
    report: Report,
    planners: Planners,
}

/// A section of the block in progress.
struct SectionPlans {
    columns: SectionColumns,
    /// By kind and leaf: the encoding at the start of the block (in version 0 what the last one left), what the leaf keeps,
    /// and whether the plan is for it.
    leaves: Vec<Vec<LeafPlan>>,
    /// Which kind a record of the format is; by index in the format.
    reset: bool,
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
        self.size += plans.columns.size - before;
        self.held += 1;
        match self.order.last_mut() {
            Some((last, count)) if *last == section => *count += 1,
            _ => self.order.push((section, 1)),
        }
        Ok(self.held >= self.options.block.max(1) || self.size >= BLOCK_SIZE)
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

    fn write(&mut self, order: &[(usize, u32)], plans: &[Vec<Due>]) -> Result<()> {
        let mut players: Vec<_> = self.sections.iter().map(|s| s.columns.players()).collect();
        let mut at = vec![(0_usize, 0_usize); self.sections.len()];
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
                player.advance();
                self.report.records += u64::from(record != crate::format::COMMENT);
            }
        }
        self.group_bytes += self.sections.iter().map(|s| s.columns.size).sum::<usize>();
        Ok(())
    }
}

impl SectionPlans {
    fn new(format: &Format, section: usize, options: &Options) -> Self {
        let columns = SectionColumns::new(format, section);
        let records = format.sections.get(section).map_or(&[][..], |s| &s.records);
        let leaves = records.iter().zip(&columns.kinds).map(|(&record, kind)| {
            let record = format.records.get(usize::from(record));
            let leaves = record.map_or(&[][..], |r| &r.leaves).iter().take(kind.columns.len());
            leaves.map(move |leaf| {
                let declared = Setting::of(leaf);
                let pin = pinned(declared.interpretation);
                LeafPlan {
                    settable: leaf.is_settable() && matches!(leaf.kind, LeafKind::Number { .. }),
                    chosen: record.is_some_and(|r| super::is_chosen(r, leaf, &options.fields)),
                    declared,
                    start: declared,
                    pin,
                    pins: vec![(0, pin)],
                }
            })
        });
        let leaves = leaves.map(Iterator::collect).collect();
        Self { columns, leaves, reset: false }
    }

    /// The changes that stand in the block, by record; before one record those of its last leaf first, so that a leaf that
    /// sets a shared previous value is the first to look at it.
    fn plan(&mut self, header: u32, plan: Plan, planners: &mut Planners) -> Vec<Due> {
        let mut leaves = Vec::new();
        for (kind, (records, plans)) in self.columns.kinds.iter().zip(&mut self.leaves).enumerate() {
            let columns = records.columns.iter().zip(&records.traits);
            for (leaf, ((column, traits), plan)) in columns.zip(plans).enumerate() {
                if plan.settable && !column.values().is_empty() {
                    leaves.push(LeafToPlan { kind, leaf, records, column, traits, plan });
                }
            }
        }
        let cells = &self.columns.start_cells;
        let dues = planners.each(leaves, |leaf, scratch| leaf.plan(cells, header, plan, scratch));
        let mut dues: Vec<Due> = dues.into_iter().flatten().collect();
        dues.sort_by_key(|due| (due.row, std::cmp::Reverse(due.leaf)));
        dues
    }

    fn next_block(&mut self, format: &Format, resets: bool) {
        if resets {
            self.columns.reset(format);
        } else {
            self.columns.clear();
        }
        for leaf in self.leaves.iter_mut().flatten() {
            if resets {
                leaf.start = leaf.declared;
            }
            leaf.pins.clear();
            leaf.pins.push((0, leaf.pin));
        }
    }
}
