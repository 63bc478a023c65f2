//! How the records of one type are decoded now, and rows for their values.
//!
//! Where all leaves follow the formula, and nothing repeats, places are noted first, each in a row; then leaf by leaf is decoded for
//! all rows, in a loop that has but one plan. What is the same number in all records stands in the rows already. Records whose leaves
//! depend on others are decoded row by row.

use super::HEAD;
use super::lane::{Lane, row_of};
use super::sequence::Sequence;
use super::spans::Span;
use super::view::What;
use crate::format::{ExprOp, Leaf, LeafKind, Record, Step};
use crate::formula::{HISTORY, LAST, PREVIOUS, Plan, REFERENCED, SPECIAL, eight, plain};
use crate::state::State;

/// Rows for a type that was met for the first time.
const ROWS: usize = 8;

/// Words that the rows of a type have at most, where that is more than [`ROWS`].
const WORDS: usize = 2048;

/// Records of more bytes, slow from byte arrays whose length they tell, are not decoded ahead.
const BYTES: usize = 1 << 30;

/// The records of one type in a section.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) way: Way,
    pub(super) lane: Lane,
    /// By place.
    pub(super) spans: Vec<Span>,
    /// Leaves, and cells to note their values in.
    pub(super) notes: Vec<(u8, u32)>,
    shapes: Vec<Shape>,
    tag_width: usize,
    numbers: Vec<Number>,
    sequence: Sequence,
    /// What a row starts with.
    template: Vec<u64>,
    /// By word of a row: the same number stands there in all rows.
    is_constant: Vec<bool>,
    /// Constants that do not stand in all rows yet.
    fresh: Vec<Fresh>,
    /// Where its rows begin, and how many there are.
    first: usize,
    pub(super) rows: usize,
}

/// How records are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// Leaf by leaf, by others.
    #[default]
    LeafByLeaf,
    /// For all rows at once.
    Rows,
    /// Row by row.
    Sequence,
}

/// A number that is stored, or goes by the one before.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// From the beginning of the record.
    at: usize,
    /// Word of the row.
    word: usize,
    mask: u64,
    sign: u64,
    base: u64,
    /// The cell of the previous value, where that is added.
    cell: Option<u32>,
}

/// What a leaf is by the DTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Tag,
    Number,
    /// So many bytes.
    Array(usize),
    /// As many bytes as an earlier leaf says.
    Counted(u8),
    /// What is decoded leaf by leaf.
    Other,
}

/// A constant that stands in the first rows only.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    word: usize,
    value: u64,
    rows: usize,
}

impl Kind {
    pub(super) fn new(record: &Record, index: u16, position: u16, tag_width: u8) -> Self {
        let mut template = vec![0; HEAD + record.leaves.len()];
        for (slot, value) in template.iter_mut().zip([0, What::new(index, position).0, record.tag.into()]) {
            *slot = value;
        }
        let repeats = record.steps.iter().any(|step| matches!(step, Step::Repeat { .. }));
        let shape = |(at, leaf): (usize, &Leaf)| match &leaf.kind {
            _ if repeats => Shape::Other,
            LeafKind::Tag if at == 0 => Shape::Tag,
            LeafKind::Number { .. } => Shape::Number,
            LeafKind::Array(length) => usize::try_from(*length).map_or(Shape::Other, Shape::Array),
            LeafKind::Variable(program) => match **program {
                [ExprOp::Leaf(length)] if usize::from(length) < at => Shape::Counted(length),
                _ => Shape::Other,
            },
            LeafKind::Tag => Shape::Other,
        };
        let is_constant = vec![false; template.len()];
        let lane = Lane { tag: record.tag, ..Lane::NONE };
        let shapes: Vec<_> = record.leaves.iter().enumerate().map(shape).collect();
        let spans = vec![Span::Number; shapes.len()];
        Self { lane, template, is_constant, shapes, spans, tag_width: tag_width.into(), ..Self::default() }
    }

    /// Decodes by the plans in force from now on, the first of which is that of the tag.
    pub(super) fn learn(&mut self, record: &Record, state: &State, first: usize) {
        let plans = first.checked_add(record.leaves.len()).and_then(|end| state.plans.get(first..end));
        let plans = plans.unwrap_or_default();
        self.way = if self.learn_rows(plans, state, first).is_some() {
            Way::Rows
        } else if self.learn_sequence(record, plans).is_some() {
            Way::Sequence
        } else {
            self.notes.clear();
            Way::LeafByLeaf
        };
    }

    /// None where records are not decoded for all rows at once.
    fn learn_rows(&mut self, plans: &[Plan], state: &State, first: usize) -> Option<()> {
        self.numbers.clear();
        self.notes.clear();
        if plans.len() != self.shapes.len() {
            return None;
        }
        let mut lane = Lane { fixed: self.tag_width, length: 0, mask: 0, ..self.lane };
        for (at, plan) in plans.iter().enumerate() {
            let word = HEAD + at;
            match *self.shapes.get(at)? {
                Shape::Number if plan.flags & !LAST == 0 && plan.mask == 0 => self.is_constant(word, plan.base),
                Shape::Number => {
                    let is_alone = plan.flags & (HISTORY | PREVIOUS) == 0
                        || plan.is(HISTORY) && plan.read == plan.write && state.is_alone(first + at);
                    // Nothing stands behind a byte array whose length differs from record to record.
                    if plan.is(SPECIAL | REFERENCED) || !is_alone || lane.mask != 0 && plan.width > 0 {
                        return None;
                    }
                    let cell = plan.is(HISTORY).then_some(plan.write);
                    if let Some(cell) = cell {
                        self.notes.push((u8::try_from(at).ok()?, cell));
                    }
                    self.is_stored(word);
                    let Plan { mask, sign, base, .. } = *plan;
                    self.numbers.push(Number { at: lane.fixed, word, mask, sign, base, cell });
                    lane.fixed += usize::from(plan.width);
                }
                Shape::Array(length) => {
                    if lane.mask != 0 {
                        return None;
                    }
                    self.set_span(at, Span::At(lane.fixed, length));
                    lane.fixed += length;
                }
                Shape::Counted(length) => {
                    let span = self.counted(&mut lane, length)?;
                    self.set_span(at, span);
                }
                Shape::Tag => self.is_constant(word, self.lane.tag.into()),
                Shape::Other => return None,
            }
        }
        if lane.fixed > BYTES {
            return None;
        }
        self.is_constant(1, self.template.get(1).copied()?);
        self.lane = lane;
        Some(())
    }

    /// A byte array, as long as an earlier leaf says.
    fn counted(&mut self, lane: &mut Lane, length: u8) -> Option<Span> {
        let (word, distance) = (HEAD + usize::from(length), lane.fixed);
        if self.shapes.get(usize::from(length)) != Some(&Shape::Number) {
            return None;
        }
        if self.is_constant.get(word) == Some(&true) {
            let length = usize::try_from(*self.template.get(word)?).ok()?;
            if length > BYTES || lane.mask != 0 && length > 0 {
                return None;
            }
            lane.fixed += length;
            return Some(Span::At(distance, length));
        }
        let index = self.numbers.iter().rposition(|number| number.word == word)?;
        let number = *self.numbers.get(index)?;
        if lane.mask != 0 || number.sign | number.base != 0 || number.cell.is_some() {
            return None;
        }
        (lane.length, lane.mask, lane.word) = (number.at, number.mask, word);
        // It is read to find the next record.
        self.numbers.remove(index);
        Some(Span::Counted(distance, length))
    }

    fn set_span(&mut self, at: usize, span: Span) {
        if let Some(slot) = self.spans.get_mut(at) {
            *slot = span;
        }
        self.is_constant(HEAD + at, 0);
    }

    /// None where records are not decoded row by row.
    fn learn_sequence(&mut self, record: &Record, plans: &[Plan]) -> Option<()> {
        self.sequence.learn(record, plans)?;
        (1..self.template.len()).for_each(|word| self.is_stored(word));
        let constants = std::mem::take(&mut self.sequence.constants);
        constants.iter().for_each(|&(leaf, value)| self.is_constant(HEAD + usize::from(leaf), value));
        self.sequence.constants = constants;
        self.is_constant(HEAD, record.tag.into());
        self.notes.clone_from(&self.sequence.notes);
        self.spans.clone_from(&self.sequence.spans);
        Some(())
    }

    /// A word is the same number in all rows.
    #[inline]
    fn is_constant(&mut self, word: usize, value: u64) {
        if self.is_constant.get(word) != Some(&true) || self.template.get(word) != Some(&value) {
            self.set_constant(word, value);
        }
    }

    #[inline(never)]
    fn set_constant(&mut self, word: usize, value: u64) {
        if let (Some(known), Some(is_constant)) = (self.template.get_mut(word), self.is_constant.get_mut(word)) {
            (*known, *is_constant) = (value, true);
            self.fresh.retain(|fresh| fresh.word != word);
            self.fresh.push(Fresh { word, value, rows: 0 });
        }
    }

    /// A word is written anew in each row.
    #[inline]
    fn is_stored(&mut self, word: usize) {
        if let Some(is_constant) = self.is_constant.get_mut(word).filter(|is_constant| **is_constant) {
            *is_constant = false;
            self.fresh.retain(|fresh| fresh.word != word);
        }
    }

    /// Sees to it that there are `rows`, or as many as it has at most. The rows it had are given up.
    pub(super) fn make_rows(&mut self, rows: usize, values: &mut Vec<u64>) -> Option<()> {
        let stride = self.template.len();
        let rows = rows.clamp(ROWS, (WORDS / stride).max(ROWS));
        if rows <= self.rows {
            return Some(());
        }
        let first = values.len();
        // Entries count words in 32 bits.
        u32::try_from(first + rows * stride).ok()?;
        (0..rows).for_each(|_| values.extend_from_slice(&self.template));
        (self.first, self.rows) = (first, rows);
        self.fresh.clear();
        self.lane.stride = stride as u64;
        self.lane.entry = first as u64 | ((stride - HEAD) as u64) << 32;
        Some(())
    }

    /// Whether no row is in use.
    pub(super) fn is_empty(&self) -> bool {
        row_of(self.lane.entry).0 == self.first
    }

    /// Whether all rows are in use.
    pub(super) fn is_full(&self) -> bool {
        row_of(self.lane.entry).0 >= self.first + self.rows * self.template.len()
    }

    /// Decodes the record at a place at once. Gives its row, and where the next record begins.
    pub(super) fn decode(
        &mut self,
        data: &[u8],
        at: usize,
        tag_width: usize,
        values: &mut [u64],
        spans: &mut Vec<Span>,
        cells: &mut [u64],
    ) -> Option<(u64, usize)> {
        let (entry, own) = (self.lane.entry, spans.len());
        let (first, length) = row_of(entry);
        let row = values.get_mut(first..first + HEAD + length)?;
        for fresh in &self.fresh {
            *row.get_mut(fresh.word)? = fresh.value;
        }
        let next = self.sequence.fill(data, at, at + tag_width, row, spans, cells);
        let (Some(next), [start, what, ..]) = (next, row) else {
            spans.truncate(own);
            return None;
        };
        let constant = self.template.get(1).copied().unwrap_or(0);
        (*start, *what) = (at as u64, What(constant).with_spans(own).0);
        self.lane.entry += self.lane.stride;
        Some((entry, next))
    }

    /// Decodes the leaves of the records that were noted, and begins with the first row again.
    pub(super) fn decode_rows(&mut self, data: &[u8], values: &mut [u64], cells: &mut [u64]) {
        let end = row_of(self.lane.entry).0;
        let Some(rows) = values.get_mut(self.first..end).filter(|rows| !rows.is_empty()) else { return };
        let stride = self.template.len();
        self.lane.entry = self.first as u64 | ((stride - HEAD) as u64) << 32;
        if !self.fresh.is_empty() {
            let count = rows.len() / stride;
            for Fresh { word, value, rows: filled } in &mut self.fresh {
                for row in rows.chunks_exact_mut(stride).skip(*filled) {
                    row.get_mut(*word).into_iter().for_each(|slot| *slot = *value);
                }
                *filled = count.max(*filled);
            }
        }
        if self.way != Way::Rows {
            return;
        }
        for &Number { at, word, mask, sign, base, cell } in &self.numbers {
            if let Some(cell) = cell.and_then(|cell| cells.get_mut(cell as usize)) {
                column(rows, stride, data, at, word, |raw| {
                    *cell = cell.wrapping_add((raw & mask ^ sign).wrapping_sub(sign).wrapping_add(base));
                    *cell
                });
            } else if sign | base == 0 {
                column(rows, stride, data, at, word, |raw| raw & mask);
            } else {
                let plan = Plan { mask, sign, base, ..Plan::default() };
                column(rows, stride, data, at, word, |raw| plain(raw & mask, &plan));
            }
        }
    }
}

/// Decodes one leaf of all rows.
#[inline(always)]
fn column(rows: &mut [u64], stride: usize, data: &[u8], at: usize, word: usize, mut decode: impl FnMut(u64) -> u64) {
    for row in rows.chunks_exact_mut(stride) {
        #[allow(clippy::cast_possible_truncation, reason = "a place in memory")]
        let start = row.first().copied().unwrap_or(0) as usize;
        let raw = eight(data, start + at).map_or(0, u64::from_le_bytes);
        if let Some(slot) = row.get_mut(word) {
            *slot = decode(raw);
        }
    }
}
