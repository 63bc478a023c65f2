//! Texts and bytes of an event: how long they may be, and how they are marked where they were cut.

/// Most bytes of a text in an event; what is longer is cut and marked.
pub(crate) const TEXT_MOST: usize = 255;
/// Most bytes of another byte array in an event.
pub(crate) const BYTES_MOST: usize = 1024;
/// `…`, which marks a text that was cut.
pub(crate) const MARK: &[u8] = "…".as_bytes();
/// The bit of a length that says that there was more.
pub(crate) const CUT: u64 = 0x8000;

/// Prepares a text: its length, with a mark if it is cut, and its bytes.
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

/// Prepares bytes: their length, with a mark if they are cut, and what is left of them.
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
