//! Where a trace is written to. Some sinks can be patched: `nrecords` is filled in on closing (spec 5.2).

use std::io::{Seek, SeekFrom, Write};

use crate::Result;

/// A writer, and how to change what it has written, if it can.
pub(crate) struct Sink<W> {
    pub(crate) inner: W,
    /// Where the trace begins in it, and what overwrites bytes there.
    patch: Option<(u64, Patch<W>)>,
}

type Patch<W> = fn(&mut W, u64, &[u8]) -> std::io::Result<()>;

impl<W: Write> Sink<W> {
    /// A sink that takes bytes in order only.
    pub(crate) fn forward(inner: W) -> Self {
        Self { inner, patch: None }
    }

    /// A sink that can be patched, unless it turns out that it cannot (a pipe opened as a file).
    pub(crate) fn seekable(mut inner: W) -> Self
    where
        W: Seek,
    {
        let start = inner.stream_position().ok();
        Self { inner, patch: start.map(|start| (start, overwrite::<W> as Patch<W>)) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.inner.write_all(bytes)?)
    }

    /// Overwrites bytes of the trace; `false` if the sink cannot.
    pub(crate) fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<bool> {
        match self.patch {
            Some((start, patch)) => patch(&mut self.inner, start + at, bytes).map(|()| true).map_err(Into::into),
            None => Ok(false),
        }
    }
}

fn overwrite<W: Write + Seek>(sink: &mut W, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    let end = sink.stream_position()?;
    sink.seek(SeekFrom::Start(at))?;
    sink.write_all(bytes)?;
    sink.seek(SeekFrom::Start(end)).map(|_| ())
}
