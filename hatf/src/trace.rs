//! Trace files: a sink that writes `dtds/HATF10.dtd`, and a source that reads it.

use std::path::Path;

use crate::{Error, EventSink, EventSource, Record, Result};

/// What a finished trace is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Bytes in the file.
    pub bytes: u64,
}

/// Writes a trace.
pub struct TraceWriter(());

/// Reads a trace.
pub struct TraceReader(());

fn not_yet<T>() -> Result<T> {
    Err(Error::Trace("this build of hatf cannot read or write trace files".into()))
}

impl TraceWriter {
    /// A new trace in a new file; one that is there is replaced.
    ///
    /// # Errors
    /// The file could not be made.
    pub fn create(_path: &Path) -> Result<Self> {
        not_yet()
    }

    /// Finishes the trace.
    ///
    /// # Errors
    /// The rest could not be written.
    pub fn finish(self) -> Result<Written> {
        not_yet()
    }
}

impl EventSink for TraceWriter {
    fn record(&mut self, _record: &Record<'_>) -> Result<()> {
        not_yet()
    }

    fn comment(&mut self, _text: &str) -> Result<()> {
        not_yet()
    }
}

impl TraceReader {
    /// Opens a trace.
    ///
    /// # Errors
    /// There is none, or it is damaged at its head.
    pub fn open(_path: &Path) -> Result<Self> {
        not_yet()
    }
}

impl EventSource for TraceReader {
    fn next(&mut self) -> Result<Option<crate::Item<'_>>> {
        not_yet()
    }
}
