//! Converts byte offsets to the lines and columns of an editor, and back.

/// The unit in which an editor counts columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// UTF-8 bytes.
    Utf8,
    /// UTF-16 code units; a character above U+FFFF counts as two.
    Utf16,
}

impl Columns {
    /// Returns the number of columns of a character.
    fn of(self, c: char) -> usize {
        match self {
            Columns::Utf8 => c.len_utf8(),
            Columns::Utf16 => c.len_utf16(),
        }
    }
}

/// The lines of a text. Lines and columns are counted from 0. As in editors, a line ends with `\n`, `\r\n` or `\r`;
/// diagnostics count only `\n`.
///
/// # Examples
///
/// ```
/// use metatf_parser::{Columns, Lines};
///
/// let text = "// \u{e9}\ntag.width = 2;\n";
/// let lines = Lines::new(text, Columns::Utf16);
/// assert_eq!(lines.position(6), (1, 0));
/// assert_eq!(lines.offset(1, 4), 10);
/// // The letter `é` has two bytes but a single UTF-16 code unit.
/// assert_eq!(lines.position(5), (0, 4));
/// assert_eq!(Lines::new(text, Columns::Utf8).position(5), (0, 5));
/// ```
#[derive(Clone, Debug)]
pub struct Lines<'t> {
    text: &'t str,
    /// The offset at which each line starts.
    starts: Vec<usize>,
    columns: Columns,
}

impl<'t> Lines<'t> {
    /// Finds the lines of a text.
    #[must_use]
    pub fn new(text: &'t str, columns: Columns) -> Lines<'t> {
        let bytes = text.as_bytes();
        let ends = |at: usize| match bytes.get(at) {
            Some(b'\n') => true,
            Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(|at| ends(*at)).map(|at| at + 1)).collect();
        Lines { text, starts, columns }
    }

    /// Returns the line and column of an offset. An offset past the end is clamped to the end, and an offset within a
    /// character is moved to the character's start.
    #[must_use]
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let offset = self.boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        let column = match self.columns {
            Columns::Utf8 => before.len(),
            Columns::Utf16 => before.chars().map(char::len_utf16).sum(),
        };
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }

    /// Returns the offset of a position. A line past the end of the text is clamped to the end of the text, and a
    /// column past the end of a line to the end of the line. A position within a character is moved to the character's
    /// start.
    #[must_use]
    pub fn offset(&self, line: u32, column: u32) -> usize {
        let (line, column) = (line as usize, column as usize);
        let Some(start) = self.starts.get(line).copied() else { return self.text.len() };
        let end = self.starts.get(line.saturating_add(1)).copied().unwrap_or(self.text.len());
        let content = self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
        let mut passed = 0;
        for (at, c) in content.char_indices() {
            passed += self.columns.of(c);
            if passed > column {
                return start + at;
            }
        }
        start + content.len()
    }

    /// Returns the position after the last character.
    #[must_use]
    pub fn end(&self) -> (u32, u32) {
        self.position(self.text.len())
    }

    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let text = "a\u{e9}\u{1f600}b\r\nc\rd\n";
        for columns in [Columns::Utf8, Columns::Utf16] {
            let lines = Lines::new(text, columns);
            for (at, _) in text.char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n')) {
                let (line, column) = lines.position(at);
                assert_eq!(lines.offset(line, column), at, "{columns:?} {line}:{column}");
            }
        }
        let utf16 = Lines::new(text, Columns::Utf16);
        assert_eq!(utf16.position(7), (0, 4));
        assert_eq!((utf16.offset(0, 3), utf16.offset(0, 99), utf16.offset(9, 0)), (3, 8, text.len()));
        assert_eq!((utf16.position(10), utf16.position(12), utf16.end()), ((1, 0), (2, 0), (3, 0)));
        assert_eq!(Lines::new(text, Columns::Utf8).position(7), (0, 7));
    }
}
