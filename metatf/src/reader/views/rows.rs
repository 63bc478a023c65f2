//! Rows for the values of the records of one type.

use crate::format::Record;
use crate::formula::{Plan, eight, plain};
use crate::reader::batch::{Batch, Take, Type};

/// Number of words in a row before its values: the start of the record within the part, and its head.
pub(super) const HEAD: usize = 2;

/// Maximum number of rows per type, which is also the maximum number of records decoded in a batch. Long records have
/// fewer rows.
pub(super) const ROWS: usize = 128;
const FEWEST: usize = 8;
const WORDS: usize = 2048;

/// The description of a record without its values: its index in the format, the position of its type in the section,
/// and its number of values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head(pub(super) u64);

/// The position of the bytes of a place, relative to the start of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// The place contains a number, not bytes.
    Number,
    /// This many bytes at an offset.
    At(usize, usize),
    /// Bytes at an offset. The preceding number is their length.
    Counted(usize),
}

/// The rows of one type.
#[derive(Debug)]
pub(super) struct TypeRows {
    head: Head,
    /// The spans by leaf.
    pub(super) spans: Vec<Span>,
    /// The leaves that are decoded for each record. The values of the remaining leaves are constant and already in the
    /// rows.
    numbers: Vec<usize>,
    /// The leaves of the constants that have changed, each with the number of rows that already contain the new value.
    fresh: Vec<(usize, usize)>,
    /// Number of rows that contain all constants.
    filled: usize,
    /// The leaf that contains the length of the byte array at the end of the record. In a batch in which all these
    /// arrays are empty, it is treated as the constant 0.
    length: usize,
    /// Whether decoding records of the type changes cells.
    pub(super) has_cells: bool,
}

impl Head {
    /// Positions that mark a record, or a catch-all record, that was decoded individually and has its own row. No
    /// record type has a position this large.
    pub(super) const SINGLE: u16 = u16::MAX;
    pub(super) const CATCH_ALL: u16 = u16::MAX - 1;

    pub(super) fn new(record: u16, position: u16, len: usize) -> Self {
        Self(u64::from(record) | u64::from(position) << 16 | (len as u64) << 32)
    }

    #[allow(clippy::cast_possible_truncation, reason = "only the bits of the record are kept")]
    #[inline(always)]
    pub(super) fn record(self) -> u16 {
        self.0 as u16
    }

    #[allow(clippy::cast_possible_truncation, reason = "only the bits of the position are kept")]
    #[inline(always)]
    pub(super) fn position(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns whether the record has its own row.
    #[inline(always)]
    pub(super) fn is_single(self) -> bool {
        self.position() >= Self::CATCH_ALL
    }

    #[inline(always)]
    pub(super) fn len(self) -> usize {
        (self.0 >> 32) as usize
    }
}

impl TypeRows {
    pub(super) fn new(index: u16, position: u16, record: Option<&Record>) -> Self {
        let len = record.map_or(0, |record| record.leaves.len());
        let (head, spans) = (Head::new(index, position, len), vec![Span::Number; len]);
        let (numbers, fresh) = (Vec::new(), Vec::new());
        Self { head, spans, numbers, fresh, filled: 0, length: 0, has_cells: false }
    }

    /// Creates rows for a type that has no rows yet.
    pub(super) fn allot(&self, known: &mut Type, batch: &mut Batch) -> Option<()> {
        let stride = HEAD + self.spans.len();
        let (rows, first) = ((WORDS / stride).clamp(FEWEST, ROWS), batch.places.len());
        known.allot(first, stride, rows)?;
        batch.places.resize(first + rows * stride, 0);
        let all = batch.places.get_mut(first..).unwrap_or_default();
        all.chunks_exact_mut(stride).filter_map(|row| row.get_mut(1)).for_each(|head| *head = self.head.0);
        Some(())
    }

    /// Changes the decoding method of a leaf.
    pub(super) fn change(&mut self, leaf: usize, take: Take) {
        let Some(span) = self.spans.get_mut(leaf) else { return };
        *span = match take {
            Take::Array(at, length) => Span::At(at, length),
            Take::Rest(at, ..) => Span::Counted(at),
            Take::Unknown | Take::Number(_) | Take::Stored(..) | Take::Element(_) => Span::Number,
        };
        if let Take::Rest(..) = take {
            self.length = leaf.saturating_sub(1);
        }
        self.numbers.retain(|&number| number != leaf);
        self.refresh(leaf);
        if let Take::Stored(..) | Take::Element(_) = take {
            self.numbers.push(leaf);
        }
    }

    /// Marks the values of a constant leaf in the rows as out of date.
    fn refresh(&mut self, leaf: usize) {
        self.filled = 0;
        match self.fresh.iter_mut().find(|(fresh, _)| *fresh == leaf) {
            Some((_, rows)) => *rows = 0,
            None => self.fresh.push((leaf, 0)),
        }
    }

    /// Decodes the leaves of the located records.
    #[inline(never)]
    pub(super) fn decode(&mut self, known: &Type, data: &[u8], places: &mut [u64], cells: &mut [u64]) {
        let stride = HEAD + self.spans.len();
        let Some(rows) = places.get_mut(known.slots()) else { return };
        if self.filled < known.count() {
            self.fill(known, rows);
        }
        if known.has_bytes {
            self.refresh(self.length);
        }
        for &leaf in &self.numbers {
            let word = HEAD + leaf;
            let Some(take) = known.layout.takes.get(leaf) else { continue };
            match take {
                Take::Stored(..) if leaf == self.length && !known.has_bytes => {}
                Take::Stored(at, plan) => {
                    let data = data.get(*at..).unwrap_or_default();
                    if let Some(cell) = take.cell().and_then(|cell| cells.get_mut(cell)) {
                        each(rows, stride, data, word, |raw| {
                            *cell = cell.wrapping_add(plain(raw & plan.mask, plan));
                            *cell
                        });
                    } else if plan.sign | plan.base == 0 {
                        let Plan { mask, .. } = *plan;
                        each(rows, stride, data, word, |raw| raw & mask);
                    } else {
                        let plan = *plan;
                        each(rows, stride, data, word, |raw| plain(raw & plan.mask, &plan));
                    }
                }
                Take::Element(_) => {
                    let elements = known.elements.get(leaf).into_iter().flatten();
                    for (row, element) in rows.chunks_exact_mut(stride).zip(elements) {
                        row.get_mut(word).into_iter().for_each(|slot| *slot = *element);
                    }
                }
                Take::Unknown | Take::Number(_) | Take::Array(..) | Take::Rest(..) => {}
            }
        }
    }

    /// Stores constants in the rows used for the first time since these constants changed.
    #[cold]
    fn fill(&mut self, known: &Type, rows: &mut [u64]) {
        let (stride, count) = (HEAD + self.spans.len(), known.count());
        for (leaf, filled) in self.fresh.iter_mut().filter(|(_, filled)| *filled < count) {
            let value = match known.layout.takes.get(*leaf) {
                Some(Take::Number(value)) => *value,
                Some(Take::Stored(..)) if *leaf != self.length || known.has_bytes => continue,
                // The length of an absent byte array is 0, and so is the number at the place of a byte array.
                _ => 0,
            };
            for row in rows.chunks_exact_mut(stride).skip(*filled) {
                row.get_mut(HEAD + *leaf).into_iter().for_each(|slot| *slot = value);
            }
            *filled = count;
        }
        self.filled = count;
    }
}

/// Decodes one leaf of all rows.
#[inline(always)]
fn each(rows: &mut [u64], stride: usize, data: &[u8], word: usize, mut decode: impl FnMut(u64) -> u64) {
    for row in rows.chunks_exact_mut(stride) {
        #[allow(clippy::cast_possible_truncation, reason = "an offset in memory")]
        let start = row.first().copied().unwrap_or(0) as usize;
        let raw = eight(data, start).map_or(0, u64::from_le_bytes);
        if let Some(slot) = row.get_mut(word) {
            *slot = decode(raw);
        }
    }
}
