//! From events to the records of HATF 1.0.

use super::{Dialect, Record, What as Word, words};
use crate::Result;
use crate::event::{Call, Event, UNKNOWN_SIZE, What};
use crate::loss::{Loss, Losses};

/// Says events as records, in a dialect of HATF 1.0.
#[derive(Debug)]
pub struct Speaker {
    dialect: Dialect,
    /// The image in progress; 0 before the first.
    image: u64,
    attributes: Vec<u8>,
    /// What could not be said.
    pub losses: Losses,
}

/// What a speaker says.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// A record.
    Record(Record<'a>),
    /// A comment.
    Comment(&'a str),
}

impl Speaker {
    /// One that has said nothing.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, image: 0, attributes: Vec::new(), losses: Losses::default() }
    }

    /// Says an event: in a record as a rule, sometimes in none, or in two.
    ///
    /// # Errors
    /// What `give` returns.
    pub fn say(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Said<'_>) -> Result<()>) -> Result<()> {
        self.losses.note_if(!event.stack.is_empty(), Loss::Stack);
        let word = match event.what {
            What::Call(ref call) => {
                self.losses.note_if(call.usable != 0, Loss::Usable);
                if call.address == 0 && !call.old_is_gone() {
                    return self.failed(event, call, give);
                }
                self.word_of(call)
            }
            What::Free { address } => Word::Free { address },
            What::ReallocBegin { old } => Word::Free { address: old },
            What::ReallocEnd(Call { usable, address: 0, .. }) => {
                self.losses.note(Loss::Halves);
                self.losses.note_if(usable != 0, Loss::Usable);
                return Ok(());
            }
            What::ReallocEnd(Call { size, address, usable, .. }) => {
                self.losses.note_if(usable != 0, Loss::Usable);
                Word::Alloc { size, address }
            }
            What::Failed(ref call) => return self.failed(event, call, give),
            What::CreateHeap => Word::CreateHeap,
            What::DestroyHeap | What::Exit { .. } | What::Killed { .. } => Word::DestroyHeap,
            What::ThreadStart { .. } => Word::CreateThread,
            What::ThreadEnd => Word::DestroyThread,
            What::Image { .. } => {
                self.end_image(event, give)?;
                self.image += 1;
                Word::CreateHeap
            }
            What::Mark { name } => return self.comment("mark", name, event, give),
            What::PhaseBegin { name } => return self.comment("phase begins:", name, event, give),
            What::PhaseEnd { name } => return self.comment("phase ends:", name, event, give),
            What::Lost { events } => {
                self.losses.note(Loss::Lost);
                return give(Said::Comment(&format!("{events} events were lost: time {}", event.time)));
            }
        };
        self.attributes.clear();
        words::write(event, self.dialect, &mut self.attributes);
        if matches!(event.what, What::Exit { .. } | What::Killed { .. }) {
            self.image = 0;
        }
        self.give(word, event, give)
    }

    fn word_of(&mut self, call: &Call) -> Word {
        let Call { function, mut size, old, address, .. } = *call;
        if self.dialect == Dialect::Native && function.is_realloc() {
            if size == UNKNOWN_SIZE {
                self.losses.note(Loss::Size);
                size = 0;
            }
            return Word::Realloc { old, address, size };
        }
        match (old, address) {
            (0, _) => Word::Alloc { size, address },
            (old, 0) => Word::Free { address: old },
            _ => Word::Realloc { old, address, size },
        }
    }

    /// An image that turns into another.
    fn end_image(&mut self, event: &Event<'_>, give: &mut dyn FnMut(Said<'_>) -> Result<()>) -> Result<()> {
        if self.image == 0 {
            return Ok(());
        }
        self.attributes.clear();
        self.attributes.extend_from_slice(b"exec");
        if self.dialect == Dialect::MetaTf {
            self.attributes.extend_from_slice(format!(" time={}", event.time).as_bytes());
        }
        let heap = event.heap.saturating_sub(1);
        self.give(Word::DestroyHeap, &Event { heap, ..*event }, give)
    }

    fn give(&self, what: Word, event: &Event<'_>, give: &mut dyn FnMut(Said<'_>) -> Result<()>) -> Result<()> {
        let Event { time, thread, heap, .. } = *event;
        give(Said::Record(Record { what, time, thread, heap, attributes: &self.attributes }))
    }

    fn failed(&mut self, event: &Event<'_>, call: &Call, give: &mut dyn FnMut(Said<'_>) -> Result<()>) -> Result<()> {
        self.losses.note(Loss::Failed);
        let Event { thread, time, .. } = event;
        let (name, Call { size, old, .. }) = (call.function.name(), call);
        give(Said::Comment(&match old {
            0 => format!("{name} of {size} bytes failed: thread {thread}, time {time}"),
            _ => format!("{name} of 0x{old:x} to {size} bytes failed: thread {thread}, time {time}"),
        }))
    }

    fn comment(
        &mut self,
        what: &str,
        name: &[u8],
        event: &Event<'_>,
        give: &mut dyn FnMut(Said<'_>) -> Result<()>,
    ) -> Result<()> {
        self.losses.note(Loss::Marks);
        let name = String::from_utf8_lossy(name);
        give(Said::Comment(&format!("{what} {name}: thread {}, time {}", event.thread, event.time)))
    }
}
