//! Which plan a block takes, found by trying: the fewest bytes are not always the fewest compressed bytes, as metadata in the
//! middle of regular records disturbs a compressor.
//!
//! A block is encoded by each plan and compressed, as a trial; the shortest is taken for it and for some blocks behind it. What a
//! block comes to depends on the block alone, so the same records always take the same plans.

use super::block::Block;
use super::leaf_plan::PlannedChange;
use super::write_block::{is_stored, put};
use super::{Options, Plan};
use metatf::container::{Codec, Result, Sink, WriteOptions};
use metatf::dynamic::{Schema, Writer};
use std::io::{self, Write};

/// BlockSink from one on which plans are tried to the next.
const RETRY: u8 = 16;

/// The greatest level of zstd that plans are compared by: the order is the same with a higher one.
const LEVEL: i32 = 3;

/// The plans there are, and which one is best now.
pub(super) struct PlanTrial {
    plans: Vec<Plan>,
    schema: Schema,
    write: WriteOptions,
    best: Plan,
    argument_bytes: u8,
    /// BlockSink until plans are tried again.
    left: u8,
}

impl PlanTrial {
    /// Where nothing is compressed the first plan needs no trial.
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

    /// The plan for the next block; `None` where [all](Self::plans) are to be tried.
    pub(super) fn next(&mut self) -> Option<Plan> {
        if self.plans.len() > 1 {
            self.left = self.left.checked_sub(1)?;
        }
        Some(self.best)
    }

    /// All plans.
    pub(super) fn plans(&self) -> Vec<Plan> {
        self.plans.clone()
    }

    /// Takes the plan that made a block shortest.
    pub(super) fn settle(&mut self, plan: Plan) {
        (self.best, self.left) = (plan, RETRY - 1);
    }

    /// Bytes of a trace of this block alone, with these changes.
    ///
    /// # Errors
    /// What encoding the block will end in, too; or elements that the block's records take are in the trace before it.
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

/// A sink that keeps nothing but how much it took.
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
