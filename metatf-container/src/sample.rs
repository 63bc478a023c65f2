//! Samples of long content. Codecs and filters are tried on a sample instead of the complete content.

use super::raw_content::RawContent;
use crate::memory;

/// Number of pieces.
const PIECES: usize = 4;
/// Ratio of the size of the content to the total size of the pieces.
const PART: usize = 16;
/// Minimum size of a piece in bytes.
const PIECE: usize = 16 << 10;
/// Content shorter than this is tried completely.
const LEAST: usize = 4 * PIECES * PIECE;

/// The concatenated pieces, in reusable memory.
#[derive(Default)]
pub(super) struct Sample {
    raw: Vec<u8>,
    ends: Vec<u32>,
}

impl Sample {
    /// Returns pieces taken from each quarter of the content. Each piece consists of complete records or elements.
    /// Returns `None` if the content is short or its records are too long for pieces.
    pub(super) fn of(&mut self, content: &RawContent<'_>) -> Option<RawContent<'_>> {
        if content.raw.len() < LEAST {
            return None;
        }
        let piece = PIECE.max(content.raw.len() / (PART * PIECES));
        memory::reserve(&mut self.raw, PIECES * piece);
        self.ends.clear();
        for quarter in 0..PIECES {
            // Take the middle of each quarter.
            let middle = (2 * quarter + 1) * (content.raw.len() / (2 * PIECES));
            if content.ends.is_empty() {
                self.elements(content, middle, piece);
            } else {
                self.records(content, middle, piece);
            }
        }
        let enough = self.raw.len() >= PIECES * piece / 2;
        enough.then_some(RawContent { raw: &self.raw, element: content.element, ends: &self.ends, rows: None })
    }

    /// Adds elements, starting near `from`.
    fn elements(&mut self, content: &RawContent<'_>, from: usize, length: usize) {
        let element = usize::from(content.element).max(1);
        let whole = |at: usize| at - at % element;
        let piece = content.raw.get(whole(from)..whole(from + length)).unwrap_or_default();
        self.raw.extend_from_slice(piece);
    }

    /// Adds records, starting near `from`.
    fn records(&mut self, content: &RawContent<'_>, from: usize, length: usize) {
        let ends = content.ends;
        let record = ends.partition_point(|&end| (end as usize) < from);
        let Some((&start, ends)) = ends.get(record..).and_then(<[u32]>::split_first) else { return };
        let count = ends.partition_point(|&end| end as usize <= start as usize + length);
        let ends = ends.get(..count).unwrap_or_default();
        let piece = ends.last().and_then(|&end| content.raw.get(start as usize..end as usize)).unwrap_or_default();
        // The sample is smaller than a chunk, so its length fits.
        let before = u32::try_from(self.raw.len()).unwrap_or(0);
        self.raw.extend_from_slice(piece);
        self.ends.extend(ends.iter().map(|end| end - start + before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_records_or_elements() {
        let raw: Vec<u8> = (0..LEAST).map(|n| u8::try_from(n % 7).unwrap()).collect();
        let mut sample = Sample::default();
        assert!(sample.of(&RawContent { raw: &raw[1..], element: 7, ends: &[], rows: None }).is_none());
        let elements = sample.of(&RawContent { raw: &raw, element: 7, ends: &[], rows: None }).unwrap();
        assert!(elements.raw.len() > PIECES * (PIECE - 7) && elements.raw.len().is_multiple_of(7));
        assert!(elements.raw.chunks(7).all(|element| element == [0, 1, 2, 3, 4, 5, 6]));
        let mut ends: Vec<u32> = (1..=u32::try_from(LEAST).unwrap() / 7).map(|n| n * 7).collect();
        ends.extend(u32::try_from(LEAST));
        let records = sample.of(&RawContent { raw: &raw, element: 0, ends: &ends, rows: None }).unwrap();
        assert!(records.raw.len() > PIECES * (PIECE - 7) && records.raw.len() <= PIECES * PIECE);
        assert!(records.raw.chunks(7).all(|element| element == [0, 1, 2, 3, 4, 5, 6]));
        assert_eq!(records.ends, &ends[..records.ends.len()]);
        // A record longer than a piece.
        let long = [u32::try_from(LEAST).unwrap()];
        assert!(sample.of(&RawContent { raw: &raw, element: 0, ends: &long, rows: None }).is_none());
    }
}
