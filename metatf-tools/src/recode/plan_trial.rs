//! Chooses the plan of a block by trial. A shorter block does not always compress better, because metadata between
//! regular records disturbs the compressor.
//!
//! A block is encoded with each plan and compressed. The plan with the shortest result is used for this block and for
//! several blocks after it. The result depends only on the block, so the same records always get the same plans.

use super::block::Block;
use super::leaf_plan::PlannedChange;
use super::write_block::{is_stored, put};
use super::{Options, Plan};
use metatf::container::{Codec, Result, Sink, WriteOptions};
use metatf::dynamic::{Schema, Writer};
use std::io::{self, Write};

/// Number of blocks from one trial to the next.
const RETRY: u8 = 16;

/// Maximum zstd level for comparing plans. Higher levels would rank the plans in the same order.
const LEVEL: i32 = 3;

/// The plans to try, and the currently best plan.
pub(super) struct PlanTrial {
    plans: Vec<Plan>,
    schema: Schema,
    write: WriteOptions,
    best: Plan,
    argument_bytes: u8,
    /// Number of blocks before the next trial.
    left: u8,
}

impl PlanTrial {
    /// Creates the trial. Without compression, the first plan is used without a trial.
    pub(super) fn new(schema: &Schema, write: &WriteOptions, options: &Options) -> Self {
        let others = if is_stored(write) { &[][..] } else { &options.others };
        let codec = match write.codec {
            Codec::Zstd(level) => Codec::Zstd(level.min(LEVEL)),
            codec => codec,
        };
        Self {
            plans: [options.plan].into_iter().chain(others.iter().copied()).collect(),
            schema: schema.clone(),
            write: WriteOptions { codec, trial: None, embed_dtd: false, threads: 1, ..write.clone() },
            best: options.plan,
            argument_bytes: options.argument_bytes,
            left: 0,
        }
    }

    /// Returns the plan for the next block, or `None` if [all plans](Self::plans) should be tried.
    pub(super) fn next(&mut self) -> Option<Plan> {
        if self.plans.len() > 1 {
            self.left = self.left.checked_sub(1)?;
        }
        Some(self.best)
    }

    /// Returns all plans.
    pub(super) fn plans(&self) -> Vec<Plan> {
        self.plans.clone()
    }

    /// Sets the plan that made a block shortest.
    pub(super) fn settle(&mut self, plan: Plan) {
        (self.best, self.left) = (plan, RETRY - 1);
    }

    /// Returns the size of a trace that contains only this block, encoded with these changes.
    ///
    /// # Errors
    /// Returns the error that writing the block would return, or an error if the block's records consume elements of
    /// earlier parts of the trace.
    pub(super) fn length(&self, block: &mut Block, changes: &[Vec<PlannedChange>]) -> Result<u64> {
        let mut writer = Writer::new(Length(0), &self.schema, &self.write)?;
        match put(&mut writer, &self.schema.format, block, changes, (true, self.argument_bytes)) {
            Ok(_) => Ok(writer.finish()?.0),
            Err(error) => {
                writer.abandon();
                Err(error)
            }
        }
    }
}

/// A sink that only counts bytes.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Length {
    fn is_volatile(&self) -> bool {
        true
    }
}
