//! Escaping of control and invisible characters.

use std::borrow::Cow;

/// Returns whether a character may control a terminal, or may be displayed as something else. These are C0, DEL, C1,
/// changes of the text direction, other line separators, and invisible characters.
#[must_use]
pub fn is_control(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Escapes control characters, including line feeds and tabs, so that the text stays on one line.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_control(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

/// Escapes text for SVG and HTML, between tags and in attributes.
#[must_use]
pub fn markup(text: &str) -> String {
    shown(text).chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
        out
    })
}

/// Escapes the characters that would start emphasis, code, a link or a tag in Markdown, or end a cell.
pub(crate) fn markdown(text: &str) -> String {
    shown(text).chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '@') {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        let text = "a<b> & \"c\" | *d* \x1b[31m\n\u{202e}e";
        assert_eq!(shown(text), "a<b> & \"c\" | *d* \\u{1b}[31m\\n\\u{202e}e");
        assert_eq!(markup(text), "a&lt;b&gt; &amp; &quot;c&quot; | *d* \\u{1b}[31m\\n\\u{202e}e");
        assert_eq!(markdown("a|b_c <d>"), "a\\|b\\_c \\<d\\>");
    }
}
