//! Texts with wildcards.

/// Which characters of a pattern stand for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wildcards {
    /// `*` for any text and `?` for any character.
    StarAndQuestion,
    /// `*` alone.
    Star,
}

/// Returns whether all of a text is as a pattern says, in time that is at most their product.
pub(super) fn matches(pattern: &str, text: &str, wildcards: Wildcards) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut place) = (0, 0);
    // Behind the last star, and where in the text it was tried last.
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
