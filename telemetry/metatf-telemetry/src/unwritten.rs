//! The data left behind by programs that use the C header. Each buffer contains a chunk that was not written to the
//! trace.

use std::path::Path;

use metatf::container::{Class, Order, Reader};
use metatf::dynamic::Trace;
use metatf::reader::Event;

use crate::encode::Encoder;
use crate::error::Error;
use crate::image::{Image, ImageChunk};

/// Buffered chunks, and warnings about invalid chunks.
pub(crate) struct Unwritten {
    chunks: Vec<ImageChunk>,
    pub(crate) warnings: Vec<String>,
    pub(crate) lost: Vec<String>,
}

impl Unwritten {
    /// Reads the chunks in the buffers that are missing from the trace. `trace` is the trace of the process, which has
    /// already been read, or `None`.
    pub(crate) fn of(image: &Image, trace: Option<&Path>) -> Self {
        let (mut chunks, mut warnings, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        if image.is_live() {
            warnings.push(
                "the process is still running, so events that it has just written to its trace may be missing"
                    .to_owned(),
            );
        }
        for index in 0..image.rings {
            match image.chunk(index) {
                Ok(Some(chunk)) => chunks.push(chunk),
                Ok(None) => {}
                Err(error) => lost.push(error.to_string()),
            }
        }
        // A chunk that was being written may already be in the trace.
        let length = trace.and_then(|path| path.metadata().ok()).map_or(0, |about| about.len());
        chunks.retain(|chunk| chunk.sent == 0 || length < chunk.sent);
        Self { chunks, warnings, lost }
    }

    /// Returns the numbers of the emitters that the chunks belong to.
    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        self.chunks.iter().map(|chunk| chunk.thread)
    }

    /// Writes the records of the chunks.
    pub(crate) fn write(&mut self, encoder: &mut Encoder) -> Result<(), Error> {
        for chunk in &self.chunks {
            if let Err(message) = write(chunk, encoder)? {
                let thread = chunk.thread;
                self.lost
                    .push(format!("the buffer of thread {thread} is corrupt, and later events are lost: {message}"));
            }
        }
        Ok(())
    }
}

/// Writes the records of a chunk, which is a separate group. Returns a message if the chunk's bytes are invalid.
fn write(chunk: &ImageChunk, encoder: &mut Encoder) -> Result<Result<(), String>, Error> {
    let schema = encoder.schema().clone();
    let explained = |error: &metatf::Error| metatf::explain(&schema.format, error).to_string();
    let reader = Reader::raw_from_slice(&chunk.content, Class::Bits64, Order::Little, chunk.section);
    let mut trace = match reader.and_then(|reader| Trace::new(schema.clone(), reader)) {
        Ok(trace) => trace,
        Err(error) => return Ok(Err(explained(&error))),
    };
    loop {
        match trace.next_entry() {
            Ok(Some(entry)) => {
                if let Event::Record(at) | Event::Comment(at) = entry.event {
                    encoder.copy(at.section, at.record, entry.record)?;
                }
            }
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(explained(&error))),
        }
    }
}
