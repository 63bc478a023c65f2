//! Blocks that a thread of its own plans and writes, while the caller's reads on.
//!
//! Blocks that were written go back to be filled again: there are two of them, one that is filled and one that is written.

use super::block::Block;
use super::block_writer::BlockWriter;
use super::copy::Blocks;
use super::{Failure, Options};
use crate::container::Sink;
use crate::dynamic::OwnedRecord;
use crate::error::{Error, ErrorKind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// What may wait to be written, beside a block.
const WAITING: usize = 8;
/// Elements that go over at once.
const ELEMENTS: usize = 1024;

/// Runs `read` in this thread, whose blocks another writes. Gives the writer back, and what came first in the order of the trace: an
/// error of writing, or that of reading.
pub(super) fn relay<S: Sink + Send>(
    mut writer: BlockWriter<S>,
    options: &Options,
    read: impl FnOnce(&mut Relay) -> Result<(), Failure>,
) -> (BlockWriter<S>, Result<(), Failure>) {
    let second = Block::new(writer.format(), options);
    let result = thread::scope(|scope| {
        let (sender, steps) = sync_channel(WAITING);
        let (spent, empty) = channel();
        let (spent_elements, empty_elements) = channel();
        let _ = spent.send(second);
        let mut relay = Relay { to: sender, empty, empty_elements, elements: Elements::default() };
        let to = &mut writer;
        let writing = thread::Builder::new().name("metatf-write".to_owned());
        let writing = writing.spawn_scoped(scope, move || write(to, steps, &spent, &spent_elements));
        let writing = match writing {
            Ok(writing) => writing,
            Err(error) => return Err(Failure::Write(error.into())),
        };
        let read = read(&mut relay).and_then(|()| relay.hand_over());
        // Nothing more comes.
        drop(relay);
        let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(read)
    });
    (writer, result)
}

/// Takes all steps. On an error `steps` is gone, which tells the other thread.
fn write(
    to: &mut impl Blocks,
    steps: Receiver<Step>,
    spent: &Sender<Block>,
    spent_elements: &Sender<Elements>,
) -> Result<(), Failure> {
    for step in steps {
        match step {
            Step::Block(mut block) => {
                to.block(&mut block)?;
                // The other thread may have ended.
                let _ = spent.send(block);
            }
            Step::Elements(mut elements) => {
                for Element { of, offset, owned } in elements.all.iter().take(elements.count) {
                    to.element(*of, *offset, owned)?;
                }
                elements.count = 0;
                let _ = spent_elements.send(elements);
            }
            Step::Group => to.start_group()?,
            Step::ResetStream(section) => to.reset_stream(section)?,
            Step::UserMetadata(json) => to.user_metadata(&json)?,
        }
    }
    Ok(())
}

/// What goes from the thread that reads to the one that writes.
enum Step {
    Block(Block),
    Elements(Elements),
    Group,
    ResetStream(usize),
    UserMetadata(String),
}

/// Elements one after the other; behind the first `count` is memory for more.
#[derive(Default)]
struct Elements {
    all: Vec<Element>,
    count: usize,
}

#[derive(Default)]
struct Element {
    /// The section, and whether it is of a shared table.
    of: (usize, bool),
    offset: Option<u64>,
    owned: OwnedRecord,
}

/// Where blocks go that another thread writes.
pub(super) struct Relay {
    to: SyncSender<Step>,
    /// Blocks that were written.
    empty: Receiver<Block>,
    empty_elements: Receiver<Elements>,
    /// What is not handed over yet.
    elements: Elements,
}

/// The thread that writes has ended, with an error of its own.
#[cold]
fn ended() -> Failure {
    Failure::Write(Error::at(0, ErrorKind::Usage("nothing is written any more")))
}

impl Relay {
    fn send(&mut self, step: Step) -> Result<(), Failure> {
        self.hand_over()?;
        self.to.send(step).map_err(|_| ended())
    }

    /// Hands elements over.
    fn hand_over(&mut self) -> Result<(), Failure> {
        if self.elements.count == 0 {
            return Ok(());
        }
        let empty = self.empty_elements.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.elements, empty);
        self.to.send(Step::Elements(full)).map_err(|_| ended())
    }
}

impl Blocks for Relay {
    fn block(&mut self, block: &mut Block) -> Result<(), Failure> {
        if block.is_empty() {
            return Ok(());
        }
        let mut next = self.empty.recv().map_err(|_| ended())?;
        next.go_on(block);
        self.send(Step::Block(std::mem::replace(block, next)))
    }

    fn element(&mut self, of: (usize, bool), offset: Option<u64>, owned: &OwnedRecord) -> Result<(), Failure> {
        let Elements { all, count } = &mut self.elements;
        if *count == all.len() {
            all.push(Element::default());
        }
        if let Some(element) = all.get_mut(*count) {
            (element.of, element.offset) = (of, offset);
            element.owned.copy(owned);
        }
        *count += 1;
        if *count < ELEMENTS { Ok(()) } else { self.hand_over() }
    }

    fn start_group(&mut self) -> Result<(), Failure> {
        self.send(Step::Group)
    }

    fn reset_stream(&mut self, section: usize) -> Result<(), Failure> {
        self.send(Step::ResetStream(section))
    }

    fn user_metadata(&mut self, json: &str) -> Result<(), Failure> {
        self.send(Step::UserMetadata(json.to_owned()))
    }
}
