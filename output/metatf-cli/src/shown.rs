//! Escapes control and invisible characters, which names and strings in a trace may contain. All output of the commands
//! passes through [`Shown`], so that no part of it remains unescaped.

use std::borrow::Cow;
use std::io::{self, Write};

use metatf_page::is_control;

/// The kind of output, and how control characters are escaped in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text for people, with Rust escapes such as `\u{1b}`. Line feeds and tabs are kept.
    Text,
    /// Like [`Text`](Self::Text), but color sequences (`ESC [ numbers m`) are also kept. Use this for output that the
    /// command itself colors; names in such output must be escaped with [`metatf_page::shown`].
    Coloured,
    /// JSON, with JSON escapes, so that values are unchanged.
    Json,
    /// Data for programs, unchanged.
    Data,
}

/// A writer that escapes control characters and bytes that are not valid UTF-8.
#[derive(Debug)]
pub struct Shown<W: Write> {
    out: W,
    style: Style,
    /// The beginning of an incomplete character.
    begun: Vec<u8>,
    /// A reusable buffer for escaped text.
    escaped: Vec<u8>,
}

impl<W: Write> Shown<W> {
    /// Creates a writer at the beginning of a text.
    pub fn new(out: W, style: Style) -> Self {
        Self { out, style, begun: Vec::new(), escaped: Vec::new() }
    }

    fn write_shown(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.style == Style::Data || self.begun.is_empty() && bytes.iter().all(|byte| plain(*byte)) {
            return self.out.write_all(bytes);
        }
        let whole = match std::mem::take(&mut self.begun) {
            begun if begun.is_empty() => Cow::Borrowed(bytes),
            begun => Cow::Owned([&begun, bytes].concat()),
        };
        self.escaped.clear();
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid());
            if chunks.peek().is_none() && begins_character(chunk.invalid()) {
                self.begun = chunk.invalid().to_vec();
            } else {
                self.no_text(chunk.invalid());
            }
        }
        self.out.write_all(&self.escaped)
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(|c| is_control(c) && c != '\n' && c != '\t') {
            let (before, from) = rest.split_at(at);
            self.escaped.extend_from_slice(before.as_bytes());
            let colour = if self.style == Style::Coloured { colour(from) } else { 0 };
            let mut chars = from.chars();
            if colour > 0 {
                let (colour, after) = from.split_at(colour);
                self.escaped.extend_from_slice(colour.as_bytes());
                rest = after;
            } else {
                let c = chars.next().unwrap_or_default();
                self.escape(c);
                rest = chars.as_str();
            }
        }
        self.escaped.extend_from_slice(rest.as_bytes());
    }

    fn escape(&mut self, c: char) {
        if self.style == Style::Json {
            for unit in c.encode_utf16(&mut [0; 2]) {
                self.escaped.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        } else {
            self.escaped.extend(c.escape_default().map(|c| c as u8));
        }
    }

    fn no_text(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // JSON cannot contain invalid bytes, and a correct printer never writes them.
            let escape = if self.style == Style::Json { "\\ufffd".to_owned() } else { format!("\\x{byte:02x}") };
            self.escaped.extend_from_slice(escape.as_bytes());
        }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_shown(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            self.escaped.clear();
            self.no_text(&begun);
            self.out.write_all(&self.escaped)?;
        }
        self.out.flush()
    }
}

/// Returns whether a byte represents itself in any context.
fn plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Returns whether bytes are the beginning of a character that may be completed later.
fn begins_character(bytes: &[u8]) -> bool {
    !bytes.is_empty() && matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

/// Returns the length of a color sequence at the start of the text, or 0 if there is none.
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let numbers = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
    if rest.as_bytes().get(numbers) == Some(&b'm') { numbers + 3 } else { 0 }
}

/// Returns a line of another program's output without color sequences.
pub fn without_colours(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let length = colour(from);
        text.push_str(if length == 0 { "\x1b" } else { "" });
        rest = &from[length.max(1)..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use metatf_page::shown;
    use proptest::prelude::*;

    fn print(style: Style, parts: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut shown = Shown::new(&mut out, style);
        parts.iter().for_each(|part| shown.write_all(part).unwrap());
        shown.flush().unwrap();
        out
    }

    #[test]
    fn controls_are_shown() {
        let text = "a\tb\n\x1b[31mred\r\x07\u{9b}2J\u{202e}\u{e0041}\u{7f}é▁";
        let escaped = "a\tb\n\\u{1b}[31mred\\r\\u{7}\\u{9b}2J\\u{202e}\\u{e0041}\\u{7f}é▁";
        assert_eq!(print(Style::Text, &[text.as_bytes()]), escaped.as_bytes());
        assert_eq!(shown(text), escaped.replace('\t', "\\t").replace('\n', "\\n"));
        let coloured = escaped.replace("\\u{1b}[31m", "\x1b[31m");
        assert_eq!(print(Style::Coloured, &[text.as_bytes()]), coloured.as_bytes());
        assert_eq!(print(Style::Coloured, &[b"\x1b[1;2H\x1b]0;t\x07\x1b["]), b"\\u{1b}[1;2H\\u{1b}]0;t\\u{7}\\u{1b}[");
        assert_eq!(print(Style::Data, &[b"\x1b\xff"]), b"\x1b\xff");
        // Covers invalid bytes, a character split across two writes, and a character that is never completed.
        assert_eq!(
            print(Style::Text, &[b"\xc3\x28\x9b", b"\xe2\x96", b"\x81", b"\xc2", b"\x9b", b"\xe2"]),
            "\\xc3(\\x9b▁\\u{9b}\\xe2".as_bytes()
        );
    }

    #[test]
    fn colours_are_left_out() {
        for (line, expected) in [
            ("plain", "plain"),
            ("\u{1b}[1;32mok\u{1b}[0m done\u{1b}[m", "ok done"),
            ("\u{1b}[2Jx\u{1b}[", "\u{1b}[2Jx\u{1b}["),
            ("\u{1b}[\u{e9}\u{1b}[3", "\u{1b}[\u{e9}\u{1b}[3"),
        ] {
            assert_eq!(without_colours(line), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_comes_through(text: Vec<u8>, cut: usize) {
            let (first, second) = text.split_at(cut % (text.len() + 1));
            for style in [Style::Text, Style::Json] {
                let out = String::from_utf8(print(style, &[first, second])).unwrap();
                prop_assert!(!out.contains(|c| is_control(c) && c != '\n' && c != '\t'), "{out:?}");
            }
        }

        #[test]
        fn json_keeps_its_values(text: String, odd in "[\u{1b}\u{7f}-\u{9f}\u{202e}\u{e0041}\n\ta\"\\\\]*") {
            let value = serde_json::json!({ text: odd });
            let out = print(Style::Json, &[format!("{value:#}").as_bytes()]);
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), value);
        }
    }
}
