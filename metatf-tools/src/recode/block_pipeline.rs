//! A block sink that plans and writes in a separate thread while the caller's thread keeps reading.
//!
//! There are two blocks, one of which is filled while the other is written. Steps between blocks are passed on with the
//! following block.

use super::block::Block;
use super::block_sink::BlockSink;
use super::block_writer::BlockWriter;
use super::{Failure, Options};
use crate::pipeline::{Feed, beside, pipe};
use metatf::container::{Error, ErrorKind, Sink};
use metatf::dynamic::OwnedRecord;

/// Maximum number of batches waiting to be written.
const WAITING: usize = 8;
/// Maximum number of steps in a batch without a block.
const STEPS: usize = 1024;

/// Runs `read` in this thread while another thread writes its blocks. Returns the writer, and the reading or writing
/// error that comes first in trace order.
pub(super) fn write_beside<S: Sink + Send>(
    mut writer: BlockWriter<S>,
    options: &Options,
    read: impl FnOnce(&mut BlockFeed) -> Result<(), Failure>,
) -> (BlockWriter<S>, Result<(), Failure>) {
    let (feed, batches) = pipe(WAITING);
    let spare = Some(Block::new(writer.format(), options));
    let to = &mut writer;
    let writing = move || batches.each(|batch: &mut Handover| batch.write(to));
    let reading = move || {
        let mut blocks = BlockFeed { feed, batch: Handover::default(), spare, spent: Vec::new() };
        read(&mut blocks).and_then(|()| blocks.hand_over())
    };
    let result = match beside("metatf-write", writing, reading) {
        Ok((written, read)) => written.and(read),
        Err(error) => Err(Failure::Write(error.into())),
    };
    (writer, result)
}

/// A batch for the writing thread, which consists of steps and the block after them.
#[derive(Default)]
struct Handover {
    /// The first `count` entries are steps; the rest is spare memory.
    steps: Vec<(Boundary, OwnedRecord)>,
    count: usize,
    block: Option<Block>,
}

/// A step between blocks. The values of an element are stored next to the step.
enum Boundary {
    /// The section, whether the section is a shared table, and the required offset of the element.
    Element((usize, bool), Option<u64>),
    Group,
    ResetStream(usize),
    UserMetadata(String),
}

impl Handover {
    /// Adds a step. The caller sets its values.
    fn push(&mut self, step: Boundary) -> Option<&mut OwnedRecord> {
        match self.steps.get_mut(self.count) {
            Some((place, _)) => *place = step,
            None => self.steps.push((step, OwnedRecord::default())),
        }
        self.count += 1;
        self.steps.get_mut(self.count - 1).map(|(_, owned)| owned)
    }

    fn write(&mut self, to: &mut impl BlockSink) -> Result<(), Failure> {
        for (step, owned) in self.steps.iter().take(self.count) {
            match step {
                Boundary::Element(of, offset) => to.element(*of, *offset, owned)?,
                Boundary::Group => to.start_group()?,
                Boundary::ResetStream(section) => to.reset_stream(*section)?,
                Boundary::UserMetadata(json) => to.user_metadata(json)?,
            }
        }
        self.count = 0;
        self.block.as_mut().map_or(Ok(()), |block| to.block(block))
    }
}

/// The block sink that feeds the writing thread.
pub(super) struct BlockFeed {
    feed: Feed<Handover>,
    /// The steps that have not been sent yet.
    batch: Handover,
    /// The block that is neither being filled nor being written.
    spare: Option<Block>,
    /// Batches that have been written.
    spent: Vec<Handover>,
}

/// Returns a placeholder error for the case that the writing thread has ended with its own error.
#[cold]
fn ended() -> Failure {
    Failure::Write(Error::at(0, ErrorKind::Usage("the writer has stopped")))
}

impl BlockFeed {
    /// Sends the batch to the writing thread.
    fn hand_over(&mut self) -> Result<(), Failure> {
        while let Some(batch) = self.feed.spent() {
            self.take_back(batch);
        }
        let full = std::mem::replace(&mut self.batch, self.spent.pop().unwrap_or_default());
        if self.feed.give(full) { Ok(()) } else { Err(ended()) }
    }

    fn take_back(&mut self, mut batch: Handover) {
        self.spare = batch.block.take().or(self.spare.take());
        self.spent.push(batch);
    }

    fn step(&mut self, step: Boundary) -> Result<(), Failure> {
        self.batch.push(step);
        if self.batch.count < STEPS { Ok(()) } else { self.hand_over() }
    }
}

impl BlockSink for BlockFeed {
    fn block(&mut self, block: &mut Block) -> Result<(), Failure> {
        if block.is_empty() {
            return Ok(());
        }
        let mut next = loop {
            if let Some(spare) = self.spare.take() {
                break spare;
            }
            let batch = self.feed.wait_for_spent().ok_or_else(ended)?;
            self.take_back(batch);
        };
        next.go_on(block);
        self.batch.block = Some(std::mem::replace(block, next));
        self.hand_over()
    }

    fn element(&mut self, of: (usize, bool), offset: Option<u64>, owned: &OwnedRecord) -> Result<(), Failure> {
        if let Some(place) = self.batch.push(Boundary::Element(of, offset)) {
            place.copy(owned);
        }
        if self.batch.count < STEPS { Ok(()) } else { self.hand_over() }
    }

    fn start_group(&mut self) -> Result<(), Failure> {
        self.step(Boundary::Group)
    }

    fn reset_stream(&mut self, section: usize) -> Result<(), Failure> {
        self.step(Boundary::ResetStream(section))
    }

    fn user_metadata(&mut self, json: &str) -> Result<(), Failure> {
        self.step(Boundary::UserMetadata(json.to_owned()))
    }
}
