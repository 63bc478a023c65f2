//! The text that the recorder puts into the `attributes` of a record.

/// Attributes as the recorder writes them: words with a space between them, the name of the call
/// first where it is not the record's own, then `key=value`. Attributes of other origin are bytes in
/// which these look-ups find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The words.
    pub fn words(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
    }

    /// Whether there is such a word.
    #[must_use]
    pub fn has(self, word: &str) -> bool {
        self.words().any(|other| other == word.as_bytes())
    }

    /// The number after `key=`.
    #[must_use]
    pub fn number(self, key: &str) -> Option<u64> {
        let value = self.words().find_map(|word| {
            let rest = word.strip_prefix(key.as_bytes())?;
            rest.strip_prefix(b"=")
        })?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_up() {
        let attributes = Attributes(b"reallocarray count=4 size=64");
        assert!(attributes.has("reallocarray") && !attributes.has("realloc"));
        assert_eq!(attributes.number("size"), Some(64));
        assert_eq!(attributes.number("siz"), None);
        assert_eq!(Attributes(b"\xff=\xfe size=x").number("size"), None);
    }
}
