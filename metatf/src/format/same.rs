//! Compares two DTD texts, ignoring whitespace and comments.

use super::Format;

impl Format {
    /// Returns whether the text of a DTD has the same meaning as this format (spec 5.3). Without the feature `dynamic`,
    /// annotations must be the same, too.
    pub(crate) fn is_same(&self, dtd: &[u8]) -> bool {
        std::str::from_utf8(dtd).is_ok_and(|text| same_text(text, &self.dtd) || self.has_meaning(text))
    }

    #[cfg(feature = "dynamic")]
    fn has_meaning(&self, text: &str) -> bool {
        let is_short = text.len() <= metatf_parser::MOST_EMBEDDED_BYTES;
        let dtd = is_short.then(|| metatf_parser::parse("trace.dtd", text.as_bytes()).dtd).flatten();
        dtd.is_some_and(|dtd| dtd.fingerprint() == self.fingerprint)
    }

    #[cfg(not(feature = "dynamic"))]
    fn has_meaning(&self, _: &str) -> bool {
        false
    }
}

/// Compares the texts token by token.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    a == b || tokens(a).eq(tokens(b))
}

/// Returns the tokens of a text: words and numbers, strings, and single characters.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start_matches('\u{feff}');
    std::iter::from_fn(move || {
        rest = skip(rest);
        let first = rest.chars().next()?;
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if first == '"' {
            string(rest)
        } else if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// Skips whitespace and comments (spec 2).
fn skip(mut rest: &str) -> &str {
    loop {
        rest = rest.trim_start();
        if let Some(line) = rest.strip_prefix("//") {
            rest = line.find('\n').map_or("", |end| &line[end..]);
        } else if let Some(block) = rest.strip_prefix("/*") {
            rest = block.find("*/").map_or("", |end| &block[end + 2..]);
        } else {
            return rest;
        }
    }
}

/// Returns the length of a string, including its quotes.
fn string(rest: &str) -> usize {
    let mut escaped = true; // The opening quote.
    let end = rest.char_indices().find(|&(_, c)| {
        let closes = c == '"' && !escaped;
        escaped = !escaped && c == '\\';
        closes
    });
    end.map_or(rest.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::same_text;

    #[test]
    fn white_space_and_comments_do_not_count() {
        assert!(same_text("a:(tag,x){/* no */ }// end", "\u{feff}a : ( tag , x ) // x\n{ }"));
        assert!(same_text(r#"x.doc = "a // \" b"; y"#, r#"x.doc="a // \" b";y"#));
    }

    #[test]
    fn all_else_counts() {
        assert!(!same_text("a b", "ab"));
        assert!(!same_text(r#"x.doc = "a  b";"#, r#"x.doc = "a b";"#));
        assert!(!same_text("size.width = 4;", "size.width = 8;"));
    }
}
