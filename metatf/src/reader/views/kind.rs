//! How the records of one type are decoded now, and room for the values of one.
//!
//! Where all leaves follow the formula, and nothing repeats, a record is decoded by a list of what it stores; leaves that store
//! nothing and have no history keep the values they have in the room. Nothing is noted for other records before all of
//! the record is decoded: where that is not possible nothing has happened, and the record can be decoded in another way.

use super::view::{Span, Values};
use crate::format::{ExprOp, LeafKind, Record, Step};
use crate::row::{history, plain};
use crate::row_shaped::eight;
use crate::state::{HISTORY, PREVIOUS, Plan, REFERENCED, SPECIAL, State};

/// The records of one type in a section.
#[derive(Debug, Default)]
pub(super) struct Kind {
    /// Room for one, if it is decoded by `segments`.
    pub(super) values: Values,
    /// What a record stores, up to each byte array whose length it tells. None where it is decoded leaf by leaf.
    segments: Vec<Segment>,
    /// Cells to note values in, and the leaves whose values these are.
    notes: Vec<(u8, u32)>,
}

/// What lies at known distances.
#[derive(Debug, Default)]
struct Segment {
    numbers: Vec<Number>,
    /// Byte arrays of fixed length: leaf, distance, length.
    arrays: Vec<(u8, usize, usize)>,
    /// Bytes.
    fixed: usize,
    /// A number goes by a cell.
    has_history: bool,
    /// A byte array behind it, and the leaf that tells its length.
    rest: Option<(u8, u8)>,
}

/// A number, where it lies, and how it is decoded.
#[derive(Clone, Copy, Debug)]
struct Number {
    leaf: u8,
    at: usize,
    plan: Plan,
}

impl Kind {
    /// Decodes by the plans in force from now on.
    pub(super) fn learn(&mut self, place: (usize, u16), record: &Record, state: &State, position: usize) {
        self.segments.clear();
        self.notes.clear();
        self.values.begin(place, record.tag);
        if self.learn_leaves(record, state, state.plans_of(position)).is_none() {
            self.segments.clear();
        }
    }

    /// Nothing where the formula is not all, or not yet: a leaf that goes by another of its record.
    fn learn_leaves(&mut self, record: &Record, state: &State, first: usize) -> Option<()> {
        if record.steps.iter().any(|step| matches!(step, Step::Repeat { .. })) {
            return None;
        }
        let mut segment = Segment::default();
        for (leaf, declared) in (0..=u8::MAX).zip(record.leaves.iter()).skip(1) {
            let plan = *state.plan(first + usize::from(leaf)).filter(|plan| !plan.is(SPECIAL))?;
            match &declared.kind {
                LeafKind::Tag => return None,
                LeafKind::Number { .. } => {
                    if plan.is(HISTORY) && self.notes.iter().any(|&(_, cell)| cell == plan.read) {
                        return None;
                    }
                    let is_constant = plan.mask == 0 && plan.history == 0;
                    self.values.push_number(if is_constant { plan.base } else { 0 });
                    if !is_constant {
                        segment.numbers.push(Number { leaf, at: segment.fixed, plan });
                        segment.has_history |= plan.is(HISTORY);
                        segment.fixed += usize::from(plan.width);
                    }
                    self.notes.extend(plan.is(PREVIOUS).then_some((leaf, plan.write)));
                    self.notes.extend(plan.is(REFERENCED).then_some((leaf, plan.last)));
                }
                LeafKind::Array(length) => {
                    let length = usize::try_from(*length).ok()?;
                    self.values.push_bytes(Span::new(0, 0));
                    segment.arrays.push((leaf, segment.fixed, length));
                    segment.fixed += length;
                }
                LeafKind::Variable(program) => {
                    let [ExprOp::Leaf(length)] = **program else { return None };
                    if length >= leaf || !self.values.spans.get(usize::from(length))?.is_number() {
                        return None;
                    }
                    self.values.push_bytes(Span::new(0, 0));
                    segment.rest = Some((leaf, length));
                    self.segments.push(std::mem::take(&mut segment));
                }
            }
        }
        if segment.fixed > 0 || !segment.numbers.is_empty() || self.segments.is_empty() {
            self.segments.push(segment);
        }
        Some(())
    }

    /// Decodes the record whose tag ends at a place, and gives where the next one begins. None where it is not decoded in
    /// this way, or too near to the end of the data.
    #[inline(always)]
    pub(super) fn fill(&mut self, data: &[u8], mut at: usize, cells: &mut [u64]) -> Option<usize> {
        let Values { numbers, spans, .. } = &mut self.values;
        if self.segments.is_empty() {
            return None;
        }
        for segment in &self.segments {
            let end = at + segment.fixed;
            // Numbers are loaded eight bytes at a time, and one begins at the end at most.
            let here = data.get(at..end + 8)?;
            if segment.has_history {
                for number in &segment.numbers {
                    let value = number.decode(here)?.wrapping_add(history(&number.plan, cells));
                    *numbers.get_mut(usize::from(number.leaf))? = value;
                }
            } else {
                for number in &segment.numbers {
                    *numbers.get_mut(usize::from(number.leaf))? = number.decode(here)?;
                }
            }
            for &(leaf, distance, length) in &segment.arrays {
                *spans.get_mut(usize::from(leaf))? = Span::new(at + distance, length);
            }
            at = end;
            if let Some((leaf, length)) = segment.rest {
                let length = usize::try_from(*numbers.get(usize::from(length))?).ok()?;
                if length > data.len() - end {
                    return None;
                }
                *spans.get_mut(usize::from(leaf))? = Span::new(end, length);
                at += length;
            }
        }
        for &(leaf, cell) in &self.notes {
            *cells.get_mut(cell as usize)? = *numbers.get(usize::from(leaf))?;
        }
        Some(at)
    }
}

impl Number {
    /// Its value but for history.
    #[inline(always)]
    fn decode(&self, here: &[u8]) -> Option<u64> {
        let eight = eight(here, self.at)?;
        Some(plain(u64::from_le_bytes(eight) & self.plan.mask, &self.plan))
    }
}
