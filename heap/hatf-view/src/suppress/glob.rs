//! Pattern matching with wildcards.

/// The characters that are wildcards in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcards {
    /// `*` matches any string and `?` any character.
    StarAndQuestion,
    /// Only `*` is a wildcard.
    Star,
}

/// Returns whether `pattern` matches all of `text`, in time proportional to at most the product of their lengths.
///
/// # Examples
///
/// ```
/// use hatf_view::suppress::{Wildcards, matches};
///
/// assert!(matches("redis-*", "redis-server", Wildcards::StarAndQuestion));
/// assert!(!matches("redis-?", "redis-server", Wildcards::StarAndQuestion));
/// ```
#[must_use]
pub fn matches(pattern: &str, text: &str, wildcards: Wildcards) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut place) = (0, 0);
    // The position after the last star, and the last text position from which a match was tried there.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), text.get(place)) {
            (Some(b'*'), _) => {
                star = Some((at + 1, place));
                at += 1;
            }
            (None, None) => return true,
            (Some(expected), Some(byte))
                if expected == byte || (*expected == b'?' && wildcards == Wildcards::StarAndQuestion) =>
            {
                (at, place) = (at + 1, place + 1);
            }
            _ => match star {
                Some((behind, tried)) if tried < text.len() => {
                    star = Some((behind, tried + 1));
                    (at, place) = (behind, tried + 1);
                }
                _ => return false,
            },
        }
    }
}
