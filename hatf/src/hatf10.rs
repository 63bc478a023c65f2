//! From the recorder's events to the records of HATF 1.0.
//!
//! | event | record | attributes |
//! | --- | --- | --- |
//! | malloc | alloc | none |
//! | calloc, memalign and the like | alloc | `calloc count=4`, `memalign align=64` |
//! | realloc, reallocarray | realloc (old, new) | `size=100`, `reallocarray count=4 size=100` |
//! | the same, of no block | alloc | `realloc` |
//! | the same, to size 0 and no block | free | `realloc` |
//! | free | free | none |
//! | a call that failed | a comment | |
//! | a program image begins | createHeap, the image's number | `time=..` |
//! | it ends, or execs another | destroyHeap | `exit=0 time=..`, `signal=9 ..`, `exec ..` |
//! | a thread begins, ends | createThread, destroyThread | `time=..` |
//!
//! *Realloc across threads.* Its old block ends before the call returns, its new one begins after:
//! another thread may be given the old address before the record of this one is made. Then a `free` with the
//! attributes `realloc` stands before that other thread's `alloc`, and the realloc becomes an `alloc`
//! with the attributes `realloc`. So in a trace no address is allocated while it is live.

use std::collections::HashMap;
use std::io::Write as _;

use hatf_record::{Event, Flags, Kind};

use crate::{EventSink, Record, Result, What};

/// A realloc that began and has not ended.
struct Pending {
    old: u64,
    /// Its old block was already recorded as freed.
    taken: bool,
}

/// The image whose path is still being read.
struct Arriving {
    path: Vec<u8>,
    length: usize,
    event: Event,
}

/// Says events as records.
#[derive(Default)]
pub struct Mapper {
    /// The number of the image, which is its heap's; 0 before the first.
    heap: u64,
    time: u64,
    main_known: bool,
    pending: HashMap<u32, Pending>,
    arriving: Option<Arriving>,
    attributes: Vec<u8>,
}

impl Mapper {
    /// Takes an event, and gives the sink the records it makes.
    ///
    /// # Errors
    /// The sink's.
    pub fn event(&mut self, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        if event.kind == Kind::Text {
            return self.text(event, sink);
        }
        if self.arriving.is_some() {
            self.image(sink)?;
        }
        self.time = event.time;
        self.attributes.clear();
        match event.kind {
            Kind::Free => self.give(event, What::Free { address: event.address }, sink),
            Kind::ReallocBegin => {
                let pending = Pending { old: event.old, taken: false };
                self.pending.insert(event.thread, pending);
                Ok(())
            }
            Kind::ThreadStart => {
                let _ = write!(self.attributes, "time={}", event.time);
                if event.flags.has(Flags::FIRST_SEEN) {
                    self.attributes.extend_from_slice(b" first-seen");
                } else {
                    let _ = write!(self.attributes, " by={}", event.extra);
                }
                self.give(event, What::CreateThread, sink)
            }
            Kind::ThreadEnd => {
                let _ = write!(self.attributes, "time={}", event.time);
                self.give(event, What::DestroyThread, sink)
            }
            Kind::Image => {
                let length = usize::try_from(event.size).unwrap_or(0);
                self.arriving = Some(Arriving { path: Vec::new(), length, event: *event });
                if length == 0 { self.image(sink) } else { Ok(()) }
            }
            Kind::Text => Ok(()),
            Kind::Realloc | Kind::Reallocarray => self.realloc(event, sink),
            Kind::Malloc
            | Kind::Calloc
            | Kind::Memalign
            | Kind::PosixMemalign
            | Kind::AlignedAlloc
            | Kind::Valloc
            | Kind::Pvalloc => self.alloc(event, sink),
        }
    }

    /// Says that the last image ended, with the attributes `how`, such as `exit=0`.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(&mut self, how: &str, sink: &mut dyn EventSink) -> Result<()> {
        if self.arriving.is_some() {
            self.image(sink)?;
        }
        self.end_image(how, sink)
    }

    /// The number of images so far.
    #[must_use]
    pub fn images(&self) -> u64 {
        self.heap
    }

    fn alloc(&mut self, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        if event.address == 0 {
            return self.failed(event, sink);
        }
        self.address_is_free(event.address, event, sink)?;
        let name = call_name(event.kind);
        let _ = match event.kind {
            Kind::Calloc => write!(self.attributes, "{name} count={}", event.extra),
            Kind::Memalign | Kind::PosixMemalign | Kind::AlignedAlloc => {
                write!(self.attributes, "{name} align={}", event.extra)
            }
            Kind::Valloc | Kind::Pvalloc => write!(self.attributes, "{name}"),
            _ => Ok(()),
        };
        self.give(event, What::Alloc { size: event.size, address: event.address }, sink)
    }

    fn realloc(&mut self, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        let begun = self.pending.remove(&event.thread).filter(|begun| begun.old == event.old);
        let taken = begun.is_some_and(|begun| begun.taken);
        if event.address == 0 && !event.old_is_gone() {
            return self.failed(event, sink);
        }
        if event.address != event.old {
            self.address_is_free(event.address, event, sink)?;
        }
        let _ = match (event.kind, event.old != 0 && !taken && event.address != 0) {
            (Kind::Realloc, true) => write!(self.attributes, "size={}", event.size),
            (Kind::Realloc, false) => write!(self.attributes, "realloc"),
            (_, true) => {
                write!(self.attributes, "reallocarray count={} size={}", event.extra, event.size)
            }
            (_, false) => write!(self.attributes, "reallocarray count={}", event.extra),
        };
        let Event { size, address, old, .. } = *event;
        match (old, address) {
            (0, 0) => Ok(()),
            (_, 0) if taken => Ok(()),
            (old, 0) => self.give(event, What::Free { address: old }, sink),
            (0, address) => self.give(event, What::Alloc { size, address }, sink),
            (_, address) if taken => self.give(event, What::Alloc { size, address }, sink),
            (old, address) => self.give(event, What::Realloc { old, address }, sink),
        }
    }

    /// The allocator gives out `address`. Where that is the old block of a realloc that another
    /// thread is in the middle of, that block was freed: a record says so.
    fn address_is_free(&mut self, address: u64, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        let other = self
            .pending
            .iter_mut()
            .find(|(thread, pending)| **thread != event.thread && pending.old == address && !pending.taken);
        let Some((thread, pending)) = other else { return Ok(()) };
        pending.taken = true;
        sink.record(&Record {
            what: What::Free { address },
            time: event.time,
            thread: u64::from(*thread),
            heap: self.heap,
            attributes: b"realloc",
        })
    }

    fn failed(&mut self, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        let name = call_name(event.kind);
        let Event { size, old, thread, time, .. } = event;
        sink.comment(&match old {
            0 => format!("{name} of {size} bytes failed: thread {thread}, time {time}"),
            _ => format!("{name} of 0x{old:x} to {size} bytes failed: thread {thread}, time {time}"),
        })
    }

    fn give(&mut self, event: &Event, what: What, sink: &mut dyn EventSink) -> Result<()> {
        sink.record(&Record {
            what,
            time: event.time,
            thread: u64::from(event.thread),
            heap: self.heap,
            attributes: &self.attributes,
        })
    }

    fn text(&mut self, event: &Event, sink: &mut dyn EventSink) -> Result<()> {
        let Some(arriving) = &mut self.arriving else { return Ok(()) };
        let left = arriving.length - arriving.path.len();
        arriving.path.extend(event.text_bytes().iter().take(left));
        if arriving.path.len() == arriving.length { self.image(sink) } else { Ok(()) }
    }

    /// A new image begins; the one before ended by exec.
    fn image(&mut self, sink: &mut dyn EventSink) -> Result<()> {
        let Some(Arriving { path, event, .. }) = self.arriving.take() else { return Ok(()) };
        self.end_image("exec", sink)?;
        self.heap += 1;
        let (number, process) = (self.heap, event.extra);
        let path = String::from_utf8_lossy(&path);
        sink.comment(&format!("image {number}: {path} (process {process})"))?;
        self.attributes.clear();
        let _ = write!(self.attributes, "time={}", event.time);
        if !std::mem::replace(&mut self.main_known, true) {
            self.give(&event, What::CreateThread, sink)?;
        }
        self.give(&event, What::CreateHeap, sink)
    }

    fn end_image(&mut self, how: &str, sink: &mut dyn EventSink) -> Result<()> {
        if self.heap == 0 {
            return Ok(());
        }
        for (thread, pending) in self.pending.drain() {
            let old = pending.old;
            sink.comment(&format!("a realloc of 0x{old:x} by thread {thread} did not return"))?;
        }
        self.attributes.clear();
        let _ = write!(self.attributes, "{how} time={}", self.time);
        let event = Event::new(Kind::Image, 1, self.time);
        self.give(&event, What::DestroyHeap, sink)
    }
}

fn call_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Calloc => "calloc",
        Kind::Realloc | Kind::ReallocBegin => "realloc",
        Kind::Reallocarray => "reallocarray",
        Kind::Memalign => "memalign",
        Kind::PosixMemalign => "posix_memalign",
        Kind::AlignedAlloc => "aligned_alloc",
        Kind::Valloc => "valloc",
        Kind::Pvalloc => "pvalloc",
        _ => "malloc",
    }
}

#[cfg(test)]
mod tests;
