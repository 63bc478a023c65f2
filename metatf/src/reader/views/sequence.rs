//! Records that are decoded one after the other, by lists: where values lie depends on others of the record, or what they are on
//! other records.
//!
//! Nothing is noted for other records before all of the record is decoded: where that is not possible nothing has happened, and the
//! record can be decoded in another way.

use super::HEAD;
use super::spans::Span;
use crate::format::{ExprOp, LeafKind, Record, Step};
use crate::formula::{HISTORY, PREVIOUS, Plan, REFERENCED, SPECIAL, eight, history, plain};

/// What a record stores: up to the first byte array whose length it tells, up to the next, and so on.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    segments: Vec<Segment>,
    /// How many there are; those behind them are room.
    count: usize,
    /// Constants: places and values.
    pub(super) constants: Vec<(u8, u64)>,
    /// By place.
    pub(super) spans: Vec<Span>,
    /// Leaves, and cells to note their values in.
    pub(super) notes: Vec<(u8, u32)>,
}

/// What lies at known distances from its start, and a byte array behind it.
#[derive(Debug, Default)]
struct Segment {
    numbers: Vec<(u8, usize, Plan)>,
    /// Byte arrays of fixed length: distance and length.
    arrays: Vec<(usize, usize)>,
    /// Bytes.
    fixed: usize,
    /// The leaf that tells the length of the byte array behind it.
    length: Option<u8>,
}

impl Sequence {
    /// Decodes by these plans from now on. None where the formula is not all, or not yet: a leaf that goes by another of its record.
    pub(super) fn learn(&mut self, record: &Record, plans: &[Plan]) -> Option<()> {
        self.count = 0;
        self.constants.clear();
        self.spans.clear();
        self.notes.clear();
        if record.steps.iter().any(|step| matches!(step, Step::Repeat { .. })) {
            return None;
        }
        let mut arrays = 0;
        self.begin_segment();
        self.spans.push(Span::Number);
        for (leaf, (declared, plan)) in (0..=u8::MAX).zip(record.leaves.iter().zip(plans)).skip(1) {
            let segment = self.segments.get_mut(self.count.checked_sub(1)?)?;
            match &declared.kind {
                LeafKind::Tag => return None,
                LeafKind::Number { .. } => {
                    if plan.is(SPECIAL) || plan.is(HISTORY) && self.notes.iter().any(|&(_, cell)| cell == plan.read) {
                        return None;
                    }
                    if plan.mask == 0 && plan.history == 0 {
                        self.constants.push((leaf, plan.base));
                    } else {
                        segment.numbers.push((leaf, segment.fixed, *plan));
                        segment.fixed += usize::from(plan.width);
                    }
                    self.notes.extend(plan.is(PREVIOUS).then_some((leaf, plan.write)));
                    self.notes.extend(plan.is(REFERENCED).then_some((leaf, plan.last)));
                    self.spans.push(Span::Number);
                }
                LeafKind::Array(length) => {
                    let length = usize::try_from(*length).ok()?;
                    segment.arrays.push((segment.fixed, length));
                    segment.fixed += length;
                    self.constants.push((leaf, 0));
                    self.spans.push(Span::Own(arrays));
                    arrays += 1;
                }
                LeafKind::Variable(program) => {
                    let [ExprOp::Leaf(length)] = **program else { return None };
                    if self.spans.get(usize::from(length)) != Some(&Span::Number) {
                        return None;
                    }
                    segment.length = Some(length);
                    self.constants.push((leaf, 0));
                    self.spans.push(Span::Own(arrays));
                    arrays += 1;
                    self.begin_segment();
                }
            }
        }
        Some(())
    }

    fn begin_segment(&mut self) {
        match self.segments.get_mut(self.count) {
            Some(segment) => segment.clear(),
            None => self.segments.push(Segment::default()),
        }
        self.count += 1;
    }

    /// Decodes the record that begins at `start`, and whose tag ends at a place, to a row. Gives where the next one begins. None where
    /// it is too near to the end of the data.
    pub(super) fn fill(
        &self,
        data: &[u8],
        start: usize,
        mut at: usize,
        row: &mut [u64],
        spans: &mut Vec<Span>,
        cells: &mut [u64],
    ) -> Option<usize> {
        for segment in self.segments.get(..self.count)? {
            let end = at + segment.fixed;
            let here = data.get(at..end + 8)?;
            for (leaf, distance, plan) in &segment.numbers {
                let raw = u64::from_le_bytes(eight(here, *distance)?) & plan.mask;
                *row.get_mut(HEAD + usize::from(*leaf))? = plain(raw, plan).wrapping_add(history(plan, cells));
            }
            spans.extend(segment.arrays.iter().map(|&(distance, length)| Span::At(at + distance - start, length)));
            at = end;
            if let Some(length) = segment.length {
                let length = usize::try_from(*row.get(HEAD + usize::from(length))?).ok()?;
                if length > data.len() - end {
                    return None;
                }
                spans.push(Span::At(end - start, length));
                at += length;
            }
        }
        for &(leaf, cell) in &self.notes {
            *cells.get_mut(cell as usize)? = *row.get(HEAD + usize::from(leaf))?;
        }
        Some(at)
    }
}

impl Segment {
    fn clear(&mut self) {
        self.numbers.clear();
        self.arrays.clear();
        (self.fixed, self.length) = (0, None);
    }
}
