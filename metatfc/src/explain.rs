//! Messages for errors of the runtime.

use metatf::format::Format;
use metatf::{Error, ErrorKind};

/// Formats an error: `offset 1208: message (section heap, record alloc, leaf address, record begins at 1207)`; without the offset
/// where no byte of the trace is at fault.
pub(crate) fn explain(format: &Format, error: &Error) -> String {
    let text = metatf::explain(format, error).to_string();
    let placeless = matches!(
        error.kind,
        ErrorKind::Io(_) | ErrorKind::Usage(_) | ErrorKind::DoesNotFit { .. } | ErrorKind::Limit(_)
    );
    match text.strip_prefix("offset 0: ") {
        Some(rest) if placeless => rest.to_owned(),
        _ => text,
    }
}
