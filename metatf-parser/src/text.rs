//! Decodes bytes to text (spec 2, 7).

use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::changes_direction;
use crate::span::Span;

/// Maximum length of a text, so that hostile input costs little (spec 7). Real DTDs are a few KiB long.
pub const MOST_BYTES: usize = 4 << 20;

/// Maximum length of an embedded DTD that readers accept by default. A trace of a few hundred bytes can contain
/// megabytes of compressed text.
pub const MOST_EMBEDDED_BYTES: usize = 256 << 10;

/// Warns about characters that make the text look different from what it says, once for each kind. Comments and strings
/// may contain any character.
pub(crate) fn misleading(text: &str, report: &mut Reporter) {
    let misleading = |text: &str| text.char_indices().find(|(_, c)| changes_direction(*c));
    if let Some((at, c)) = Some(text).filter(|text| !text.is_ascii()).and_then(misleading) {
        let message = format!("U+{:04X} changes the text direction", u32::from(c));
        report.add(
            Draft::new(Code::MisleadingText, Span::new(at, at + c.len_utf8()), message)
                .help("remove the character, because it makes the text look different from what it means")
                .replace(Span::new(at, at + c.len_utf8()), ""),
        );
    }
    let bare = |(at, _): &(usize, _)| !text.get(at + 1..).is_some_and(|rest| rest.starts_with('\n'));
    if let Some((at, _)) = text.match_indices('\r').find(bare) {
        report.add(
            Draft::new(Code::MisleadingText, Span::new(at, at + 1), "carriage return without a line feed")
                .label("a `//` comment continues after the carriage return")
                .help("end lines with `\\n` or `\\r\\n`"),
        );
    }
}

/// Returns the text if the bytes are valid UTF-8 and not too long. Otherwise, reports an error.
pub(crate) fn decode<'t>(text: &'t [u8], report: &mut Reporter) -> Option<&'t str> {
    if text.len() > MOST_BYTES {
        report.add(
            Draft::new(Code::TooLarge, Span::at(0), "the DTD is too long")
                .help(format!("a DTD may contain at most {MOST_BYTES} bytes")),
        );
        return None;
    }
    match std::str::from_utf8(text) {
        Ok(text) => Some(text),
        Err(error) => {
            let at = error.valid_up_to();
            let place = Span::new(at, at + error.error_len().unwrap_or(1));
            report.add(
                Draft::new(Code::NotUtf8, place, "the text is not valid UTF-8")
                    .label("this byte is not part of a UTF-8 character")
                    .help("save the file as UTF-8"),
            );
            None
        }
    }
}
