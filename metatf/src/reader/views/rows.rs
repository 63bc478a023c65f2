//! Rows for the values of the records of one type.

use crate::format::Record;
use crate::formula::{Plan, eight, plain};
use crate::reader::batch::{Batch, Take, Type};

/// Words of a row before its values: where the record begins in the part, and what it is.
pub(super) const HEAD: usize = 2;

/// Rows of a type: as many as records are decoded at once, fewer where they are long.
pub(super) const ROWS: usize = 128;
const FEWEST: usize = 8;
const WORDS: usize = 2048;

/// What a record is, beside its values: its index in the format, the position of its type in the section, and how many values it has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head(pub(super) u64);

/// Where the bytes of a place lie, from where the record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Nowhere: it has a number.
    Number,
    /// At a distance, this many.
    At(usize, usize),
    /// At a distance, as many as the number before it says.
    Counted(usize),
}

/// The rows of one type.
#[derive(Debug)]
pub(super) struct TypeRows {
    head: Head,
    /// By leaf.
    pub(super) spans: Vec<Span>,
    /// Leaves that are decoded for each record. What others are stands in the rows already,
    numbers: Vec<usize>,
    /// except for constants that have changed: leaves, and in how many rows they stand.
    fresh: Vec<(usize, usize)>,
    /// In how many rows all constants stand.
    filled: usize,
    /// The leaf that tells how many bytes are at the end: the constant 0 in a batch without such bytes.
    length: usize,
    /// Decoding its records changes cells.
    pub(super) has_cells: bool,
}

impl Head {
    /// The position of a record whose row is its own, and that of one that is a catch-all record. No type has one as great.
    pub(super) const SINGLE: u16 = u16::MAX;
    pub(super) const CATCH_ALL: u16 = u16::MAX - 1;

    pub(super) fn new(record: u16, position: u16, len: usize) -> Self {
        Self(u64::from(record) | u64::from(position) << 16 | (len as u64) << 32)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the part of it that holds the record")]
    #[inline(always)]
    pub(super) fn record(self) -> u16 {
        self.0 as u16
    }

    #[allow(clippy::cast_possible_truncation, reason = "the part of it that holds the position")]
    #[inline(always)]
    pub(super) fn position(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Whether its row is its own.
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

    /// Makes rows for a type that has none.
    pub(super) fn allot(&self, known: &mut Type, batch: &mut Batch) -> Option<()> {
        let stride = HEAD + self.spans.len();
        let (rows, first) = ((WORDS / stride).clamp(FEWEST, ROWS), batch.places.len());
        known.allot(first, stride, rows)?;
        batch.places.resize(first + rows * stride, 0);
        let all = batch.places.get_mut(first..).unwrap_or_default();
        all.chunks_exact_mut(stride).filter_map(|row| row.get_mut(1)).for_each(|head| *head = self.head.0);
        Some(())
    }

    /// A leaf is decoded in another way.
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

    /// What stands in the rows for a leaf is of no use.
    fn refresh(&mut self, leaf: usize) {
        self.filled = 0;
        match self.fresh.iter_mut().find(|(fresh, _)| *fresh == leaf) {
            Some((_, rows)) => *rows = 0,
            None => self.fresh.push((leaf, 0)),
        }
    }

    /// Decodes the leaves of the records that were noted.
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

    /// Puts constants into the rows that are in use for the first time since they have changed.
    #[cold]
    fn fill(&mut self, known: &Type, rows: &mut [u64]) {
        let (stride, count) = (HEAD + self.spans.len(), known.count());
        for (leaf, filled) in self.fresh.iter_mut().filter(|(_, filled)| *filled < count) {
            let value = match known.layout.takes.get(*leaf) {
                Some(Take::Number(value)) => *value,
                Some(Take::Stored(..)) if *leaf != self.length || known.has_bytes => continue,
                // 0 bytes, and 0 for bytes.
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
        #[allow(clippy::cast_possible_truncation, reason = "a place in memory")]
        let start = row.first().copied().unwrap_or(0) as usize;
        let raw = eight(data, start).map_or(0, u64::from_le_bytes);
        if let Some(slot) = row.get_mut(word) {
            *slot = decode(raw);
        }
    }
}
