//! Writes blocks, by planning their leaves and encoding their records.

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

/// A writer of blocks and of the steps between them.
pub(super) struct BlockWriter<S: Sink> {
    writer: Writer<S>,
    format: Arc<Format>,
    trial: PlanTrial,
    groups: Groups,
    /// Whether a block starts from the DTD's state, which is not possible in version 0.
    resets: bool,
    /// Whether to minimize the widths of model codes. This is turned off if a codec is used, because a row of zeros
    /// compresses to almost nothing, whereas metadata does not compress well.
    narrow: bool,
    argument_bytes: u8,
    group_bytes: usize,
    report: Report,
    planners: Planners,
}

impl<S: Sink> BlockWriter<S> {
    pub(super) fn new(sink: S, schema: &Schema, write: &WriteOptions, options: &Options) -> Result<Self> {
        // Write complete groups, so that the output is reproducible.
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

    /// Appends an element to a stream section; see [`PlannedWriter::element`](super::PlannedWriter::element). The block
    /// must be empty.
    pub(super) fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<Option<u64>> {
        if shared {
            return self.writer.write(&Line::Element(section, true), owned).map(|()| None);
        }
        self.writer.settle()?;
        self.writer.element(section, false, owned).map(Some)
    }

    /// Starts a group. The block must be empty.
    pub(super) fn start_group(&mut self) -> Result<()> {
        self.group_bytes = 0;
        self.writer.write(&Line::Group, &OwnedRecord::default())
    }

    /// Resets the state of a stream section. The block must be empty.
    pub(super) fn reset_stream(&mut self, section: usize) -> Result<()> {
        self.writer.write(&Line::Reset(section), &OwnedRecord::default())
    }

    pub(super) fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.inner().user_metadata(json)
    }

    /// Returns the underlying writer.
    pub(super) fn beneath(&mut self) -> &mut Writer<S> {
        &mut self.writer
    }

    /// Abandons the trace without a message. The content of the sink remains incomplete.
    pub(super) fn abandon(self) {
        self.writer.abandon();
    }

    /// Completes the trace and returns the sink.
    pub(super) fn finish(mut self) -> Result<(S, Report)> {
        if let Err(error) = self.writer.end_before_tables() {
            self.writer.abandon();
            return Err(error);
        }
        Ok((self.writer.finish()?, self.report))
    }

    /// Plans and writes a block, and empties it.
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

    /// Returns the changes that a plan makes in a block, by section.
    fn plan(&mut self, block: &mut Block, plan: Plan) -> Vec<Vec<PlannedChange>> {
        let header = 2 * u32::from(self.format.tag_width) + 2;
        let metadata = MetadataBytes { header, argument: self.argument_bytes };
        let of = |section: &mut SectionPlans| match section.columns.order.is_empty() {
            true => Vec::new(),
            false => section.plan(metadata, plan, &mut self.planners),
        };
        block.sections.iter_mut().map(of).collect()
    }

    /// Encodes the block with each plan, and returns the changes of the plan with the shortest result. The block starts
    /// from the DTD's state.
    fn plan_by_trial(&mut self, block: &mut Block) -> Vec<Vec<PlannedChange>> {
        let mut best: Option<(u64, Plan, Vec<Vec<PlannedChange>>)> = None;
        for plan in self.trial.plans() {
            block.sections.iter_mut().for_each(SectionPlans::begin_again);
            let changes = self.plan(block, plan);
            // Planning is done, so release its memory before encoding.
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

    /// Returns whether the block must be encoded as a trial, because the plan needs the codes of models, or because
    /// stream sections may have no room for misses. The room for misses determines which leaves can remain predicted.
    fn needs_trial_encoding(&self, block: &Block) -> bool {
        let takers = |target: u8| block.sections.iter().map(|s| s.takers(&self.format, target)).sum::<usize>();
        let needed = self.narrow || !self.resets;
        let models = &self.format.models;
        !models.is_empty() && (needed || models.iter().any(|model| takers(model.section) > 1))
    }
}
