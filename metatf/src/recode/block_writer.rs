//! Writes blocks: plans their leaves, and encodes their records.

use super::block::Block;
use super::leaf::MetadataBytes;
use super::leaves::Due;
use super::plan_trial::PlanTrial;
use super::planners::Planners;
use super::rehearsal::Rehearsal;
use super::section_plans::SectionPlans;
use super::{Groups, Options, Plan};
use crate::dynamic::{Line, OwnedRecord, Schema, Writer};
use crate::format::Format;
use crate::reader::Metadata;
use metatf_container::{Codec, Filter, FlushEvery, Result, Sink, WriteOptions};
use std::sync::Arc;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Data records.
    pub records: u64,
    /// Metadata records planned.
    pub metadata: u64,
}

/// Writes blocks, and what stands between them.
pub(super) struct BlockWriter<S: Sink> {
    writer: Writer<S>,
    format: Arc<Format>,
    trial: PlanTrial,
    groups: Groups,
    /// A block starts from the DTD's state: not in version 0, which cannot say so.
    resets: bool,
    /// Codes of models get the widths they need: where a codec follows, a row of zeros is as good as none, and metadata is not.
    narrow: bool,
    argument_bytes: u8,
    group_bytes: usize,
    report: Report,
    planners: Planners,
}

impl<S: Sink> BlockWriter<S> {
    pub(super) fn new(sink: S, schema: &Schema, write: &WriteOptions, options: &Options) -> Result<Self> {
        // Groups come whole, and the bytes are the same each time.
        let write = &write.clone().flush_every(FlushEvery::NEVER);
        Ok(Self {
            writer: Writer::new(sink, schema, write)?,
            format: Arc::clone(&schema.format),
            trial: PlanTrial::new(schema, write, options),
            groups: options.groups,
            resets: write.version != 0,
            narrow: options.plan == Plan::Optimal && is_stored(write),
            argument_bytes: options.argument_bytes,
            group_bytes: 0,
            report: Report::default(),
            planners: Planners::new(write.threads),
        })
    }

    pub(super) fn format(&self) -> &Arc<Format> {
        &self.format
    }

    /// Appends an element to a stream section: see [`PlannedWriter::element`](super::PlannedWriter::element). No record is held.
    pub(super) fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<Option<u64>> {
        if shared {
            return self.writer.write(&Line::Element(section, true), owned).map(|()| None);
        }
        self.writer.settle()?;
        self.writer.element(section, false, owned).map(Some)
    }

    /// Starts a group. No record is held.
    pub(super) fn start_group(&mut self) -> Result<()> {
        self.group_bytes = 0;
        self.writer.write(&Line::Group, &OwnedRecord::default())
    }

    /// Resets the state of a stream section. No record is held.
    pub(super) fn reset_stream(&mut self, section: usize) -> Result<()> {
        self.writer.write(&Line::Reset(section), &OwnedRecord::default())
    }

    pub(super) fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.inner().user_metadata(json)
    }

    /// The writer that takes the blocks.
    pub(super) fn beneath(&mut self) -> &mut Writer<S> {
        &mut self.writer
    }

    /// Gives up: what is in the sink is not a whole trace, and there is no message.
    pub(super) fn abandon(self) {
        self.writer.abandon();
    }

    /// The trace is whole; gives the sink back.
    pub(super) fn finish(mut self) -> Result<(S, Report)> {
        if let Err(error) = self.writer.end_before_tables() {
            self.writer.abandon();
            return Err(error);
        }
        Ok((self.writer.finish()?, self.report))
    }

    /// Plans and writes a block, which holds nothing afterwards.
    pub(super) fn block(&mut self, block: &mut Block) -> Result<()> {
        if block.is_empty() {
            return Ok(());
        }
        if let Groups::Bytes(most) = self.groups
            && self.resets
            && self.group_bytes >= most
        {
            self.group_bytes = 0;
            self.writer.write(&Line::Group, &OwnedRecord::default())?;
        }
        self.writer.settle()?;
        if self.is_to_be_rehearsed(block) {
            let writer = self.writer.inner();
            let rehearsal = Rehearsal::new(&self.format, writer);
            rehearsal.run(writer, (&mut block.sections, &block.order), (self.resets, self.narrow))?;
        }
        let dues = match self.trial.next() {
            Some(plan) => self.plan(block, plan),
            None => self.plan_by_trial(block),
        };
        let written = put(&mut self.writer, &self.format, block, &dues, (self.resets, self.argument_bytes))?;
        self.report.records += written.records;
        self.report.metadata += written.metadata;
        self.group_bytes += block.sections.iter().map(|s| s.columns.size).sum::<usize>();
        block.clear(self.resets);
        Ok(())
    }

    /// The changes that a plan makes in a block, by section.
    fn plan(&mut self, block: &mut Block, plan: Plan) -> Vec<Vec<Due>> {
        let header = 2 * u32::from(self.format.tag_width) + 2;
        let metadata = MetadataBytes { header, argument: self.argument_bytes };
        let of = |section: &mut SectionPlans| match section.columns.order.is_empty() {
            true => Vec::new(),
            false => section.plan(metadata, plan, &mut self.planners),
        };
        block.sections.iter_mut().map(of).collect()
    }

    /// Those of the plan by which the block is shortest in the file, the first of those that are equal. The block begins
    /// as the DTD says.
    fn plan_by_trial(&mut self, block: &mut Block) -> Vec<Vec<Due>> {
        let mut best: Option<(u64, Plan, Vec<Vec<Due>>)> = None;
        for plan in self.trial.plans() {
            block.sections.iter_mut().for_each(SectionPlans::begin_again);
            let dues = self.plan(block, plan);
            // What encoding takes comes in place of what planning took.
            self.planners.give_up();
            let length = self.trial.length(block, &dues).unwrap_or(u64::MAX);
            if best.as_ref().is_none_or(|best| length < best.0) {
                best = Some((length, plan, dues));
            }
        }
        let Some((_, plan, dues)) = best else { return Vec::new() };
        self.trial.settle(plan);
        dues
    }

    /// Whether the plan looks at the codes of models; or they may find no room for what they leave to stream sections, which
    /// leaves have to be known of.
    fn is_to_be_rehearsed(&self, block: &Block) -> bool {
        let takers = |target: u8| block.sections.iter().map(|s| s.takers(&self.format, target)).sum::<usize>();
        let needed = self.narrow || !self.resets;
        let models = &self.format.models;
        !models.is_empty() && (needed || models.iter().any(|model| takers(model.section) > 1))
    }
}

/// Encodes a block's records, with the changes of each section (by `plans`) before them; `resets`: each section begins again;
/// `argument_bytes`: see [`Options`].
/// Gives what was written.
pub(super) fn put<S: Sink>(
    writer: &mut Writer<S>,
    format: &Format,
    block: &mut Block,
    plans: &[Vec<Due>],
    (resets, argument_bytes): (bool, u8),
) -> Result<Report> {
    let Block { sections, order, .. } = block;
    sections.iter_mut().for_each(|section| section.reset = resets);
    let mut report = Report::default();
    let mut players: Vec<_> = sections.iter().zip(plans).map(|(s, dues)| s.players(format, dues)).collect();
    let mut at = vec![(0_usize, 0_usize); sections.len()];
    // A section with models may begin again, as its DTD says, wherever they are too large.
    let narrows = format.models.is_empty();
    for &(section, count) in order.iter() {
        let (Some(plan), Some(players), Some(at), Some(dues), Some(s)) = (
            sections.get_mut(section),
            players.get_mut(section),
            at.get_mut(section),
            plans.get(section),
            format.sections.get(section),
        ) else {
            continue;
        };
        let inner = writer.inner();
        if std::mem::take(&mut plan.reset) {
            inner.reset(section)?;
        }
        for _ in 0..count {
            while let Some(due) = dues.get(at.1).filter(|d| d.row as usize == at.0) {
                let record = s.records.get(due.kind).and_then(|&r| format.records.get(usize::from(r)));
                let leaf = u8::try_from(due.leaf).unwrap_or(u8::MAX);
                let metadata = Metadata::new(record.map_or(0, |r| r.tag), leaf, due.change);
                inner.metadata(section, &metadata.with_arguments(argument_bytes))?;
                report.metadata += 1;
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
                && let Some(r) = format.records.get(usize::from(record))
                && let Some(state) = inner.state(section, record)
            {
                player.narrow(records, r, state);
            }
            report.records += u64::from(record != crate::format::COMMENT);
        }
    }
    Ok(report)
}

/// Whether chunks of records stay as they are encoded.
pub(super) fn is_stored(write: &WriteOptions) -> bool {
    let filtered = !matches!(write.filter, Filter::None | Filter::Auto);
    write.version == 0 || (write.codec == Codec::Stored && write.trial.is_none() && !filtered)
}
