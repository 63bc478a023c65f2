//! Splits Rust source into tokens, which are names and punctuation. Comments and literals are omitted.

/// A token and its line number, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// Returns the tokens of a file. `::` is one token; any other punctuation character is a separate token.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = ignored(rest).unwrap_or_else(|| {
            let word = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            let length = if word > 0 { word } else { first.len_utf8() + usize::from(rest.starts_with("::")) };
            tokens.push(Token { text: rest[..length].to_owned(), line });
            length
        });
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of whitespace, a comment or a literal at the start of a string.
fn ignored(rest: &str) -> Option<usize> {
    let up_to = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    let first = rest.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if rest.starts_with("//") {
        return Some(up_to("\n"));
    }
    if rest.starts_with("/*") {
        return Some(comment(rest));
    }
    // `b""`, `c""`, `r#""#` and similar literals; `r#name` is a name.
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    let raw = rest[..prefix].ends_with('r');
    let hashes = rest[prefix..].len() - rest[prefix..].trim_start_matches('#').len();
    if prefix <= 2 && rest[prefix + hashes..].starts_with('"') && (raw || hashes == 0) {
        let begin = prefix + hashes + 1;
        if raw {
            let end = format!("\"{}", "#".repeat(hashes));
            return Some(rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()));
        }
        return Some(begin + quoted(&rest[begin..], '"'));
    }
    if let Some(after) = rest.strip_prefix('\'') {
        // A lifetime has no quote after its first character.
        let mut chars = after.chars();
        let escaped = chars.next() == Some('\\');
        return (escaped || chars.next() == Some('\'')).then(|| 1 + quoted(after, '\''));
    }
    None
}

/// Returns the length of the rest of a literal, including its closing quote.
fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a block comment, which may contain other block comments.
fn comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let begin = rest[at..].find("/*").unwrap_or(usize::MAX);
        let Some(end) = rest[at..].find("*/") else { return rest.len() };
        (at, depth) = if begin < end { (at + begin + 2, depth + 1) } else { (at + end + 2, depth - 1) };
        if depth == 0 {
            return at;
        }
    }
}

#[test]
fn comments_and_literals_are_left_out() {
    let source = r###"
        /* a /* b */ c */ use r#type; // d
        f("e\"", 'f', '\'', b"g", r#"h"i"#, br"j", &'k m::n)
    "###;
    let found: Vec<_> = tokens(source).into_iter().map(|token| (token.text, token.line)).collect();
    let expected = "use r # type ; f ( , , , , , , & ' k m :: n )".split(' ');
    assert_eq!(found.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!((found[0].1, found[5].1), (2, 3));
}
