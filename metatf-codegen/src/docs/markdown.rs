//! Converts DTD comments to Markdown that rustdoc and Clippy accept: identifiers and addresses are marked, and
//! characters that would begin a link or an HTML tag are escaped.

/// Words that look like identifiers but are not.
const WORDS: [&str; 10] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "MHz", "GHz", "THz", "NaN"];

/// Converts a text. Code between backticks stays the same.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::new();
    for paragraph in text.split_inclusive("\n\n") {
        let mut rest = paragraph;
        while let Some(at) = rest.find('`') {
            let (before, from) = rest.split_at(at);
            words(before, &mut out);
            let run = from.len() - from.trim_start_matches('`').len();
            let (marks, after) = from.split_at(run);
            match end_of_code(after, run) {
                Some(end) => {
                    out.push_str(&from[..run + end]);
                    rest = &after[end..];
                }
                None => {
                    marks.chars().for_each(|mark| out.extend(['\\', mark]));
                    rest = after;
                }
            }
        }
        words(rest, &mut out);
    }
    out
}

/// Marks a text as code.
pub(crate) fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Returns the end of the code before `text` ends: the index after the next run of `marks` backticks.
fn end_of_code(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        at = start + text[start..].len() - text[start..].trim_start_matches('`').len();
        if at - start == marks {
            return Some(at);
        }
    }
    None
}

/// Converts text without code.
fn words(text: &str, out: &mut String) {
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == '\'') {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = word.rfind(is_part).map_or(0, |at| at + word[at..].chars().next().map_or(0, char::len_utf8));
        let end = if word[end..].starts_with("()") { end + 2 } else { end };
        let start = word.find(is_part).unwrap_or(0).min(end);
        let (before, body, after) = (&word[..start], &word[start..end], &word[end..]);
        escape(before, out);
        if body.starts_with("http://") || body.starts_with("https://") {
            out.extend(["<", body, ">"]);
        } else if is_identifier(body) {
            out.extend(["`", body, "`"]);
        } else {
            escape(body, out);
        }
        escape(after, out);
    }
}

fn is_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let upper = word.chars().filter(|c| c.is_uppercase()).count();
    let begins_lower = word.starts_with(char::is_lowercase);
    let is_mixed = word.chars().all(char::is_alphanumeric)
        && word.contains(char::is_lowercase)
        && (upper > 1 || begins_lower && upper > 0);
    // The plural of an abbreviation, such as `IDs`.
    let is_plural = word.strip_suffix('s').is_some_and(|one| one.chars().all(char::is_uppercase));
    !inner.is_empty() && (word.contains('_') || word.contains("::") || word.ends_with("()"))
        || is_mixed && !is_plural && !WORDS.contains(&word)
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '[' | ']' | '<') {
            out.push('\\');
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::{code, markdown};

    #[test]
    fn identifiers_and_addresses_are_marked() {
        let text = "old_size of createHeap's block (see https://example.org/a_b), in MiB; IDs: __x, f(), a::b.";
        assert_eq!(
            markdown(text),
            "`old_size` of `createHeap`'s block (see <https://example.org/a_b>), in MiB; IDs: `__x`, `f()`, `a::b`."
        );
    }

    #[test]
    fn code_stays_the_same() {
        for text in ["`a_b` and ``c`d_e``", "`{\"clock\": [1]}`, `Vec<u8>`", "plain text, with 2 * 3 = 6"] {
            assert_eq!(markdown(text), text);
        }
    }

    #[test]
    fn links_and_tags_are_escaped() {
        assert_eq!(markdown("a[0], <b> and a lone ` mark_x"), r"a\[0\], \<b> and a lone \` `mark_x`");
        assert_eq!(markdown("`a\n\nb` c"), "\\`a\n\nb\\` c");
        assert_eq!((code("a"), code("a`b")), ("`a`".to_owned(), "`` a`b ``".to_owned()));
    }
}
