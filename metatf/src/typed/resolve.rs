//! Chooses the format used to read a trace, and maps the trace's records to the reader's (spec 5.3).

use super::OpenError;
use super::map::Map;
#[cfg(feature = "dynamic")]
use super::unmatched::Unmatched;
use crate::format::{Format, FormatRef, same_text};
use crate::reader::RecordReader;
use crate::record::Protocol;
#[cfg(feature = "dynamic")]
use metatf_parser::schema::{Dtd, Version};
use std::sync::Arc;

/// The trace's format, and its mapping to the reader's format if the two differ.
pub(crate) struct Choice {
    pub(crate) format: FormatRef,
    pub(crate) map: Option<Arc<Map>>,
}

/// An open trace and the mapping of its format to the reader's, if the formats differ.
pub(super) type Opened<'t> = (RecordReader<'t>, Option<Arc<Map>>);

/// The format of the generated types, and the name of its DTD.
#[derive(Clone, Copy)]
pub(super) struct Own {
    source: &'static str,
    pub(super) format: &'static Format,
}

impl Own {
    pub(super) fn of<P: Protocol>() -> Self {
        Self { source: P::SOURCE, format: P::FORMAT }
    }
}

/// Chooses the format based on the text of the trace's DTD or, without a text, on the URL in its header. If `trusted`
/// is set, the caller supplied the text, so its length is not limited. If `by_name` is set, any version is accepted.
pub(super) fn choose(
    own: Own,
    text: Option<&[u8]>,
    (trusted, by_name): (bool, bool),
    url: &str,
) -> Result<Choice, OpenError> {
    let direct = Choice { format: FormatRef::Static(own.format), map: None };
    let Some(text) = text else {
        let name = url.rsplit(['/', '\\']).next().unwrap_or(url);
        let source = own.source;
        if name.is_empty() || name == source {
            return Ok(direct);
        }
        return Err(OpenError::mismatch(format!(
            "the trace embeds no DTD, and its header names `{url}`, but the reader was generated from `{source}`; \
             supply the text of `{url}` with `TraceOptions::dtd`"
        )));
    };
    let text = std::str::from_utf8(text).map_err(|e| OpenError::dtd(format!("the text is not valid UTF-8: {e}")))?;
    if same_text(text, &own.format.dtd) {
        return Ok(direct);
    }
    other(own, text, (trusted, by_name), direct)
}

#[cfg(feature = "dynamic")]
fn other(own: Own, text: &str, (trusted, by_name): (bool, bool), direct: Choice) -> Result<Choice, OpenError> {
    if text.len() > metatf_parser::MOST_EMBEDDED_BYTES && !trusted {
        let bytes = text.len();
        return Err(OpenError::dtd(format!(
            "the text has {bytes} bytes, more than readers accept from a trace; to use this DTD, supply its text with \
             `TraceOptions::force_dtd`"
        )));
    }
    let Own { source, format: own } = own;
    let parsed = metatf_parser::parse("trace.dtd", text.as_bytes());
    let Some(dtd) = &parsed.dtd else {
        let one = |d| metatf_parser::render(d, &parsed.name, text.as_bytes(), false);
        return Err(OpenError::dtd(parsed.diagnostics.iter().map(one).collect::<Vec<_>>().join("\n")));
    };
    if let Some((ours, theirs)) = other_version(&own.dtd, dtd).filter(|_| !by_name) {
        return Err(OpenError::mismatch(format!(
            "the trace has version {theirs} of `{source}`, but the reader has version {ours}; to match fields by name \
             despite the difference, use `TraceOptions::by_name`"
        )));
    }
    if dtd.fingerprint() == own.fingerprint {
        return Ok(direct);
    }
    let theirs = Format::from_dtd(dtd);
    let map = Map::new(own, &theirs).map_err(OpenError::mismatch)?;
    Ok(Choice { format: FormatRef::Shared(Arc::new(theirs)), map: Some(Arc::new(map)) })
}

/// Returns the versions of the reader's DTD and the trace's DTD if a reader of the former cannot read the latter (spec
/// 5.3).
#[cfg(feature = "dynamic")]
fn other_version(own: &str, theirs: &Dtd) -> Option<(Version, Version)> {
    // An invalid version is treated as no version.
    let theirs = theirs.version().ok()??;
    let ours = metatf_parser::parse("", own.as_bytes()).dtd?.version().ok()??;
    (!ours.understands(theirs)).then_some((ours, theirs))
}

/// Returns the differences between a trace's format and a generated reader's.
/// [`Trace::unmatched`](super::Trace::unmatched) returns the same for an open trace.
///
/// # Errors
/// Returns a description of the first difference that would make the reader reject the trace.
#[cfg(feature = "dynamic")]
pub fn unmatched(reader: &Format, trace: &Format) -> Result<Unmatched, String> {
    if reader.fingerprint == trace.fingerprint {
        return Ok(Unmatched::default());
    }
    Map::new(reader, trace).map(|map| map.unmatched)
}

#[cfg(not(feature = "dynamic"))]
fn other(own: Own, _: &str, _: (bool, bool), _: Choice) -> Result<Choice, OpenError> {
    Err(OpenError::mismatch(format!(
        "the trace embeds a different DTD from `{}`; to match fields by name, enable the feature `dynamic` of `metatf`",
        own.source
    )))
}
