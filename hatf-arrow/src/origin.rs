//! Where a trace comes from, by its beginning.

use std::path::Path;

use hatf_trace::event::UserMetadata;
use hatf_trace::forms::TraceReader;
use hatf_trace::stacks::Modules;
use hatf_trace::{Event, EventKind, EventSink};

use crate::scan::place;

/// Where a trace comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The build id of its first program in hexadecimal digits; empty: not known.
    pub build_id: String,
    /// When recording began, as RFC 3339; empty: not known.
    pub start: String,
}

/// Finds an [`Origin`], until the program is known.
#[derive(Default)]
struct Finding {
    origin: Origin,
    modules: Modules,
    records: u64,
    stopped: bool,
}

/// Records before which a program is loaded, if the trace says so.
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

/// Reads where a trace comes from: its beginning alone.
///
/// # Errors
/// It cannot be opened, or is damaged at its beginning.
pub fn origin(path: &Path) -> metatf_arrow::Result<Origin> {
    let mut finding = Finding::default();
    let given = TraceReader::open(path).and_then(|mut trace| trace.give(&mut finding));
    match given {
        Err(error) if !finding.stopped => Err(place(path, &error)),
        _ => Ok(finding.origin),
    }
}
