//! Writes blocks: plans their leaves, and encodes their records.

use super::block::Block;
use super::leaf_plan::PlannedChange;
use super::plan_trial::PlanTrial;
use super::planners::Planners;
use super::section_plans::SectionPlans;
use super::setting::MetadataBytes;
use super::trial_encoding::encode_as_trial;
use super::write_block::{Report, is_stored, put};
use super::{Groups, Options, Plan};
use metatf::container::{FlushEvery, Result, Sink, WriteOptions};
use metatf::dynamic::{Line, OwnedRecord, Schema, Writer};
use metatf::format::Format;
use std::sync::Arc;

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
        if self.needs_trial_encoding(block) {
            let writer = self.writer.inner();
            let records = (&mut block.sections[..], &block.order[..]);
            encode_as_trial(&self.format, writer, records, (self.resets, self.narrow))?;
        }
        let changes = match self.trial.next() {
            Some(plan) => self.plan(block, plan),
            None => self.plan_by_trial(block),
        };
        let written = put(&mut self.writer, &self.format, block, &changes, (self.resets, self.argument_bytes))?;
        self.report.records += written.records;
        self.report.metadata += written.metadata;
        self.group_bytes += block.sections.iter().map(|s| s.columns.size).sum::<usize>();
        block.clear(self.resets);
        Ok(())
    }

    /// The changes that a plan makes in a block, by section.
    fn plan(&mut self, block: &mut Block, plan: Plan) -> Vec<Vec<PlannedChange>> {
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
    fn plan_by_trial(&mut self, block: &mut Block) -> Vec<Vec<PlannedChange>> {
        let mut best: Option<(u64, Plan, Vec<Vec<PlannedChange>>)> = None;
        for plan in self.trial.plans() {
            block.sections.iter_mut().for_each(SectionPlans::begin_again);
            let changes = self.plan(block, plan);
            // What encoding takes comes in place of what planning took.
            self.planners.give_up();
            let length = self.trial.length(block, &changes).unwrap_or(u64::MAX);
            if best.as_ref().is_none_or(|best| length < best.0) {
                best = Some((length, plan, changes));
            }
        }
        let Some((_, plan, changes)) = best else { return Vec::new() };
        self.trial.settle(plan);
        changes
    }

    /// Whether the plan looks at the codes of models; or they may find no room for what they leave to stream sections, which
    /// leaves have to be known of.
    fn needs_trial_encoding(&self, block: &Block) -> bool {
        let takers = |target: u8| block.sections.iter().map(|s| s.takers(&self.format, target)).sum::<usize>();
        let needed = self.narrow || !self.resets;
        let models = &self.format.models;
        !models.is_empty() && (needed || models.iter().any(|model| takers(model.section) > 1))
    }
}
