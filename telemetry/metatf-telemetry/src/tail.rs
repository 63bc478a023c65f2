//! The maximum length of strings and byte arrays in an event, and the mark of truncation.

/// Maximum length in bytes of a string in an event. A longer string is truncated and marked.
pub(crate) const TEXT_MOST: usize = 255;
/// Maximum length in bytes of any other byte array in an event.
pub(crate) const BYTES_MOST: usize = 1024;
/// `…`, which marks a truncated string.
pub(crate) const MARK: &[u8] = "…".as_bytes();
/// The bit of a length that indicates truncation.
pub(crate) const CUT: u64 = 0x8000;

/// Prepares a string. Returns its bytes and its length, which includes a mark if the string is truncated.
#[inline(always)]
#[must_use]
pub fn text(text: &str) -> (u64, &[u8]) {
    if text.len() <= TEXT_MOST { (text.len() as u64, text.as_bytes()) } else { cut(text) }
}

#[cold]
fn cut(text: &str) -> (u64, &[u8]) {
    let end = text.floor_char_boundary(TEXT_MOST - MARK.len());
    (end as u64 | CUT, &text.as_bytes()[..end])
}

/// Prepares bytes. Returns their length, which is marked if they are truncated, and the bytes that are kept.
#[inline(always)]
#[must_use]
pub fn array(bytes: &[u8]) -> (u64, &[u8]) {
    match bytes.get(..BYTES_MOST) {
        Some(cut) if bytes.len() > BYTES_MOST => (BYTES_MOST as u64 | CUT, cut),
        _ => (bytes.len() as u64, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let fits = "x".repeat(TEXT_MOST);
        assert_eq!(text(&fits), (255, fits.as_bytes()));
        let long = format!("{}\u{e9}\u{e9}", "x".repeat(251));
        assert_eq!(text(&long), (255, long.as_bytes()), "251 and two of two bytes");
        let longer = format!("{long}!");
        assert_eq!(text(&longer), (251 | CUT, &longer.as_bytes()[..251]));
        assert_eq!(array(&[7; 1025]), (1024 | CUT, &[7; 1024][..]));
        assert_eq!(array(&[7; 1024]).0, 1024);
    }
}
