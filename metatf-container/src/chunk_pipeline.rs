//! Threads that compress chunks (feature `parallel`).
//!
//! The writer hands chunks to threads and receives them back in order. The encoding of a chunk may depend on trials
//! with earlier chunks of its section (see `trial`), so a chunk waits while a trial for its section is running. This
//! makes the output independent of the number of threads. The number of chunks in flight is limited, which also limits
//! memory use. Dropping the writer drops its pipeline, and chunks that no thread has started are not compressed. Small
//! chunks are compressed on the writer's own thread, because waking another thread takes longer.

use super::chunk::{self, ChunkHeader};
use super::columns::Rows;
use super::encode::{Encoded, Encoder};
use super::raw_content::RawContent;
use super::trial::{Found, How};
use crate::{Error, ErrorKind, Result, memory};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Maximum content size that does not justify waking a thread, in bytes.
const SMALL: usize = 4 << 10;

/// The threads and the chunks in flight.
pub(super) struct ChunkPipeline {
    pool: ThreadPool,
    chunks: VecDeque<Slot>,
    /// Number of the first chunk in `chunks`.
    first: u64,
    most: usize,
    sender: Sender<Done>,
    receiver: Receiver<Done>,
    shared: Arc<Shared>,
    /// The buffer pool: chunks that have been written.
    written: Vec<PipelinedChunk>,
    found: Box<[Found; 256]>,
}

/// The state shared by the threads.
#[derive(Default)]
struct Shared {
    /// Idle encoders.
    encoders: Mutex<Vec<Encoder>>,
    /// Whether the pipeline was dropped, so that chunks that no thread has started need not be compressed.
    given_up: AtomicBool,
}

impl Shared {
    /// Compresses a chunk, given the findings about its section.
    fn encode(&self, chunk: &mut PipelinedChunk, found: &mut Found) {
        let idle = self.encoders.lock().ok().and_then(|mut encoders| encoders.pop());
        let mut encoder = idle.unwrap_or_else(Encoder::new);
        chunk.encoded = encoder.encode(found, &chunk.how, &chunk.content());
        if chunk.encoded.as_ref().is_ok_and(|encoded| !encoded.is_plain()) {
            chunk.packed = encoder.take_payload(std::mem::take(&mut chunk.packed));
        }
        if let Ok(mut encoders) = self.encoders.lock() {
            encoders.push(encoder);
        }
    }
}

/// A chunk in flight.
enum Slot {
    /// A chunk that waits because a trial for its section is running.
    Waiting(PipelinedChunk),
    /// A chunk being compressed. The value is its section if the chunk is a trial for the section.
    Running(Option<u8>),
    Done(PipelinedChunk),
}

/// A chunk and, once a thread has compressed it, its payload.
pub(super) struct PipelinedChunk {
    pub(super) header: ChunkHeader,
    how: How,
    raw: Vec<u8>,
    pub(super) element: u8,
    ends: Vec<u32>,
    rows: Option<Rows>,
    pub(super) encoded: Result<Encoded>,
    packed: Vec<u8>,
}

/// A thread's result, which consists of the number of the chunk, the chunk, and the findings.
type Done = (u64, PipelinedChunk, Found);

impl ChunkPipeline {
    /// Starts the threads. Returns `None` if `threads` is less than 2 or the system cannot start them.
    pub(super) fn new(threads: usize) -> Option<Self> {
        if threads < 2 {
            return None;
        }
        let name = |n| format!("metatf-pack-{n}");
        let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?;
        let (sender, receiver) = channel();
        Some(Self {
            pool,
            chunks: VecDeque::new(),
            first: 0,
            most: threads + 2,
            sender,
            receiver,
            shared: Arc::default(),
            written: Vec::new(),
            found: Box::new([Found::default(); 256]),
        })
    }

    /// Returns whether the maximum number of chunks is in flight.
    pub(super) fn is_full(&self) -> bool {
        self.chunks.len() >= self.most
    }

    /// Hands a chunk to a thread.
    pub(super) fn give(&mut self, header: ChunkHeader, how: &How, content: &RawContent<'_>) {
        let written = memory::fitting(&mut self.written, content.raw.len(), usize::MAX, |chunk| chunk.raw.capacity());
        let mut chunk = written.unwrap_or_else(|| PipelinedChunk::new(how));
        chunk.header = header;
        chunk.how.clone_from(how);
        memory::copy(&mut chunk.raw, content.raw);
        memory::copy(&mut chunk.ends, content.ends);
        chunk.rows = content.rows.cloned();
        chunk.element = content.element;
        self.chunks.push_back(Slot::Waiting(chunk));
        self.start();
    }

    /// Returns the first chunk if it is finished. If `wait` is set, waits until it is finished. Returns `None` if there
    /// are no chunks.
    pub(super) fn first(&mut self, wait: bool) -> Option<PipelinedChunk> {
        while let Ok(done) = self.receiver.try_recv() {
            self.note(done);
        }
        loop {
            match self.chunks.front()? {
                Slot::Done(_) => {}
                _ if !wait => return None,
                _ => {
                    // The pipeline's own sender keeps the channel open.
                    let done = self.receiver.recv().ok()?;
                    self.note(done);
                    continue;
                }
            }
            self.first += 1;
            match self.chunks.pop_front()? {
                Slot::Done(chunk) => return Some(chunk),
                _ => return None,
            }
        }
    }

    /// Reuses the buffers of a written chunk for another chunk.
    pub(super) fn reuse(&mut self, chunk: PipelinedChunk) {
        self.written.push(chunk);
    }

    fn note(&mut self, (number, chunk, found): Done) {
        let slot = number.checked_sub(self.first).and_then(|n| usize::try_from(n).ok());
        let Some(slot) = slot.and_then(|n| self.chunks.get_mut(n)) else { return };
        if let Slot::Running(Some(section)) = slot {
            self.found[usize::from(*section)] = found;
        }
        *slot = Slot::Done(chunk);
        self.start();
    }

    /// Starts compressing all chunks that need not wait for a trial. Small chunks are compressed immediately.
    fn start(&mut self) {
        let mut tried = [false; 256];
        for (number, slot) in (self.first..).zip(&mut self.chunks) {
            match slot {
                Slot::Running(Some(section)) => tried[usize::from(*section)] = true,
                Slot::Waiting(chunk) if !chunk.is_data() || !tried[usize::from(chunk.header.section)] => {
                    let section = chunk.header.section;
                    let mut found = Found::default();
                    let mut tries = None;
                    if chunk.is_data() {
                        let known = &mut self.found[usize::from(section)];
                        found = *known;
                        match known.predict(&chunk.how, &chunk.content()) {
                            Some(next) => *known = next,
                            None => {
                                tried[usize::from(section)] = true;
                                tries = Some(section);
                            }
                        }
                    }
                    if chunk.raw.len() <= SMALL {
                        self.shared.encode(chunk, &mut found);
                        if let Some(section) = tries {
                            tried[usize::from(section)] = false;
                            self.found[usize::from(section)] = found;
                        }
                        if let Slot::Waiting(chunk) = std::mem::replace(slot, Slot::Running(None)) {
                            *slot = Slot::Done(chunk);
                        }
                    } else if let Slot::Waiting(chunk) = std::mem::replace(slot, Slot::Running(tries)) {
                        run(&self.pool, &self.shared, &self.sender, (number, chunk, found));
                    }
                }
                _ => {}
            }
        }
    }
}

impl Drop for ChunkPipeline {
    fn drop(&mut self) {
        self.shared.given_up.store(true, Ordering::Relaxed);
    }
}

/// Compresses a chunk on another thread.
fn run(pool: &ThreadPool, shared: &Arc<Shared>, sender: &Sender<Done>, chunk: Done) {
    let (shared, sender) = (Arc::clone(shared), sender.clone());
    pool.spawn(move || {
        if shared.given_up.load(Ordering::Relaxed) {
            return;
        }
        let (number, mut chunk, mut found) = chunk;
        shared.encode(&mut chunk, &mut found);
        // Sending fails if the pipeline was dropped.
        let _ = sender.send((number, chunk, found));
    });
}

impl PipelinedChunk {
    fn new(how: &How) -> Self {
        Self {
            header: ChunkHeader::default(),
            how: how.clone(),
            raw: Vec::new(),
            element: 0,
            ends: Vec::new(),
            rows: None,
            encoded: Err(Error::at(0, ErrorKind::Usage("the chunk was not encoded"))),
            packed: Vec::new(),
        }
    }

    fn is_data(&self) -> bool {
        self.header.kind == chunk::DATA
    }

    fn content(&self) -> RawContent<'_> {
        RawContent { raw: &self.raw, element: self.element, ends: &self.ends, rows: self.rows.as_ref() }
    }

    /// Returns the payload to be written to the file.
    pub(super) fn payload(&self) -> &[u8] {
        match &self.encoded {
            Ok(encoded) if !encoded.is_plain() => &self.packed,
            _ => &self.raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, Filter, Trial};

    /// Small chunks are compressed on the calling thread, because waking another thread and waiting for it takes tens
    /// of microseconds.
    #[test]
    fn small_chunks_wake_no_thread() {
        let mut pipeline = ChunkPipeline::new(2).unwrap();
        let trial = Some(Trial { codecs: vec![Codec::Stored], slack: 2 });
        for (trial, length) in [(None, SMALL), (trial, 10)] {
            let how = How { codec: Codec::Stored, filter: Filter::None, trial };
            for n in 0..20 {
                let raw = vec![n; length];
                let header = ChunkHeader { section: 1, ..ChunkHeader::default() };
                pipeline.give(header, &how, &RawContent { raw: &raw, element: 0, ends: &[], rows: None });
                let done = pipeline.first(false).unwrap();
                assert_eq!(done.payload(), raw);
                pipeline.reuse(done);
            }
        }
    }
}
