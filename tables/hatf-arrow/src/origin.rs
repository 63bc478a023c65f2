//! The origin of a trace, read from its beginning.

use std::path::Path;

use hatf_trace::event::UserMetadata;
use hatf_trace::forms::TraceReader;
use hatf_trace::stacks::Modules;
use hatf_trace::{Event, EventKind, EventSink};

use crate::scan::place;

/// The origin of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Build id of the first program in hexadecimal digits, or empty if it is not known.
    pub build_id: String,
    /// Start of the recording in RFC 3339 format, or empty if it is not known.
    pub start: String,
}

/// A collector of an [`Origin`] that stops when the program is known.
#[derive(Default)]
struct Finding {
    origin: Origin,
    modules: Modules,
    records: u64,
    stopped: bool,
}

/// Maximum number of records to read. If the trace records that the program was loaded, this record is among them.
const SOON: u64 = 4096;

impl EventSink for Finding {
    fn event(&mut self, event: &Event<'_>) -> hatf_trace::Result<()> {
        self.records += 1;
        if let EventKind::Image { .. } | EventKind::ModuleLoad { .. } = event.kind
            && self.modules.note(&event.kind)
            && let Some(module) = self.modules.last().filter(|module| module.is_program)
        {
            self.origin.build_id.clone_from(&module.build_id);
            self.stopped = true;
        }
        self.stopped |= self.records >= SOON;
        if self.stopped { Err(hatf_lab::Error::Stopped.into()) } else { Ok(()) }
    }

    fn comment(&mut self, _: &[u8]) -> hatf_trace::Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> hatf_trace::Result<()> {
        if let Some(start) = user_metadata.get("start").and_then(|start| start.as_str()) {
            start.clone_into(&mut self.origin.start);
        }
        Ok(())
    }
}

/// Returns the origin of a trace, reading only the beginning of the trace.
///
/// # Errors
/// Returns an error if the trace cannot be opened, or if its beginning is corrupt.
pub fn origin(path: &Path) -> metatf_arrow::Result<Origin> {
    let mut finding = Finding::default();
    let given = TraceReader::open(path).and_then(|mut trace| trace.give(&mut finding));
    match given {
        Err(error) if !finding.stopped => Err(place(path, &error)),
        _ => Ok(finding.origin),
    }
}
