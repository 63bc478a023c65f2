//! Reads CSV (RFC 4180) line by line, and reports whether a cell was quoted.

use std::io::{self, BufRead};

/// Maximum length of a line in bytes, the same as for JSON lines.
const MOST: usize = 64 << 20;

/// The lines of a CSV file.
pub(crate) struct CsvLines<R> {
    input: R,
    /// The current line number. If a cell spans several lines, each line counts.
    pub(crate) line: u64,
    text: Vec<u8>,
}

/// A cell. A quoted empty cell is an empty string, and an unquoted empty cell is a missing value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextCell {
    pub(crate) text: String,
    pub(crate) is_quoted: bool,
}

impl<R: BufRead> CsvLines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, line: 0, text: Vec::new() }
    }

    /// Returns the cells of the next line, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<TextCell>>> {
        self.text.clear();
        // A line ends only outside quotes.
        loop {
            let before = self.text.len();
            let room = (MOST - before) as u64 + 1;
            if io::Read::take(&mut self.input, room).read_until(b'\n', &mut self.text)? == 0 {
                if before == 0 {
                    return Ok(None);
                }
                return Err(invalid("the file ends inside a quoted cell"));
            }
            self.line += 1;
            if self.text.len() > MOST {
                return Err(invalid("the line is longer than 64 MiB"));
            }
            if self.text.iter().filter(|&&byte| byte == b'"').count() % 2 == 0 {
                break;
            }
        }
        let text = std::str::from_utf8(&self.text).map_err(|_| invalid("the line is not valid UTF-8"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        cells(text.strip_suffix('\r').unwrap_or(text)).map(Some)
    }
}

fn cells(line: &str) -> io::Result<Vec<TextCell>> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, behind) = unquote(quoted).ok_or_else(|| invalid("a quoted cell is not closed"))?;
                (TextCell { text, is_quoted: true }, behind)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (text, behind) = rest.split_at(end);
                (TextCell { text: text.to_owned(), is_quoted: false }, behind)
            }
        };
        cells.push(cell);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(cells),
            None => return Err(invalid("unexpected text between a closing quote and a comma")),
        }
    }
}

/// Returns the text up to the closing quote, and the rest after it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('"')?;
        out.push_str(before);
        match behind.strip_prefix('"') {
            Some(next) => {
                out.push('"');
                rest = next;
            }
            None => return Some((out, behind)),
        }
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<Vec<Vec<TextCell>>> {
        let mut lines = CsvLines::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(cells) = lines.next()? {
            all.push(cells);
        }
        Ok(all)
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn cells_are_split_where_rfc_4180_splits_them() {
        let plain = |text: &str| TextCell { text: text.to_owned(), is_quoted: false };
        let quoted = |text: &str| TextCell { text: text.to_owned(), is_quoted: true };
        for (text, cells) in [
            ("a,b\n", vec![vec![plain("a"), plain("b")]]),
            ("a,\r\n,b", vec![vec![plain("a"), plain("")], vec![plain(""), plain("b")]]),
            ("\"a,\"\"\nb\",\"\"\n", vec![vec![quoted("a,\"\nb"), quoted("")]]),
            ("", vec![]),
        ] {
            assert_eq!(read(text).unwrap(), cells, "{text:?}");
        }
        for text in ["\"a", "\"a\"b\n", "\"a\"\"\n"] {
            assert!(read(text).is_err(), "{text:?}");
        }
        assert!(CsvLines::new(&b"\xff\n"[..]).next().is_err());
    }
}
