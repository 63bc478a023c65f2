//! Locations in a DTD's text.

use std::ops::Range;

/// A byte range in the text, which is at most 4 MiB long. This type is small because every token contains a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The span of predefined records (spec 3.6), which are not defined in the text. This span is never shown; see
    /// [`Span::or`].
    pub(crate) const PREDEFINED: Span = Span { start: u32::MAX, end: u32::MAX };

    pub(crate) fn new(start: usize, end: usize) -> Span {
        let offset = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: offset(start), end: offset(end) }
    }

    /// Returns the offset of the first byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the offset after the last byte.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    /// Returns an empty span.
    pub(crate) fn at(offset: usize) -> Span {
        Span::new(offset, offset)
    }

    /// Returns the span from the start of this span to the end of `other`.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }

    pub(crate) fn is_predefined(self) -> bool {
        self == Span::PREDEFINED
    }

    /// Returns this span, or `other` if this span is in a predefined record.
    pub(crate) fn or(self, other: Span) -> Span {
        if self.is_predefined() { other } else { self }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start()..self.end()
    }
}

/// A text with the offsets of its lines, which converts offsets to lines and columns.
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    line_starts: Vec<u32>,
    /// The start of the text, after any byte-order mark (spec 2).
    pub(crate) start: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Source<'a> {
        let start = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        // Search for line breaks, because a loop over all bytes would be slower.
        let mut line_starts = vec![u32::try_from(start).unwrap_or(0)];
        let mut at = 0;
        while let Some(line) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'\n')) {
            at += line + 1;
            line_starts.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        Source { bytes, line_starts, start }
    }

    /// Returns the whole text, unless it is not valid UTF-8.
    pub(crate) fn all(&self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes).ok()
    }

    /// Returns the text at a location, unless the text is not valid UTF-8.
    pub(crate) fn text(&self, span: Span) -> Option<&'a str> {
        std::str::from_utf8(self.bytes.get(span.range())?).ok()
    }

    /// Returns the text after an offset, at most `most` bytes, up to the first invalid character.
    pub(crate) fn following(&self, offset: usize, most: usize) -> &'a str {
        let rest = self.bytes.get(offset..).unwrap_or_default();
        rest.get(..most).unwrap_or(rest).utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }

    /// Returns the index of the line that contains an offset, counted from 0.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start as usize <= offset).saturating_sub(1)
    }

    /// Returns the line and column, counted from 1; columns are Unicode code points (spec 3.5).
    pub(crate) fn position(&self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.bytes.len());
        let line = self.line_of(offset);
        let start = self.line_starts.get(line).map_or(0, |start| *start as usize).min(offset);
        let before = self.bytes.get(start..offset).unwrap_or_default();
        // Skipping continuation bytes is correct for UTF-8, and harmless for invalid text.
        let column = before.iter().filter(|b| **b & 0xC0 != 0x80).count() + 1;
        (u32::try_from(line + 1).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}
