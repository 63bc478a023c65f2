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
    /// Room for one, if it is decoded by lists.
    pub(super) values: Values,
    way: Way,
    /// The numbers of `segment`, if it is the only one.
    fast: Vec<Fast>,
    /// The leaf that tells the length of a byte array at the end, and a mask: 0 where there is none.
    rest: (u8, u64),
    /// What a record stores up to the first byte array whose length it tells, and behind it.
    segment: Segment,
    more: Vec<Segment>,
    /// Cells to note values in, and the leaves whose values these are.
    notes: Vec<(u8, u32)>,
}

/// How a record is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// Leaf by leaf.
    #[default]
    Apart,
    /// By one segment of numbers, which nobody else looks at, and at most one byte array behind them. Each is the stored integer.
    Stored,
    /// The same, by the formula.
    Formula,
    /// By segments.
    Segments,
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

/// What of a [`Number`] is looked at without history.
#[derive(Clone, Copy, Debug)]
struct Fast {
    mask: u64,
    sign: u64,
    base: u64,
    at: u32,
    leaf: u32,
}

impl Fast {
    fn new(number: &Number) -> Self {
        let Plan { mask, sign, base, .. } = number.plan;
        // At most eight bytes for each of 255 numbers.
        Self { mask, sign, base, at: u32::try_from(number.at).unwrap_or(u32::MAX), leaf: number.leaf.into() }
    }
}

impl Kind {
    /// Decodes by the plans in force from now on.
    pub(super) fn learn(&mut self, place: (usize, u16), record: &Record, state: &State, position: usize) {
        self.segment.clear();
        self.more.clear();
        self.notes.clear();
        self.values.begin(place, record.tag);
        let lists = self.learn_leaves(record, state, state.plans_of(position)).is_some();
        self.way = if lists { Way::Segments } else { Way::Apart };
        let Segment { numbers, arrays, has_history, rest, .. } = &self.segment;
        if lists && arrays.is_empty() && !has_history && self.more.is_empty() && self.notes.is_empty() {
            self.fast.clear();
            self.fast.extend(numbers.iter().map(Fast::new));
            let is_stored = self.fast.iter().all(|number| number.sign | number.base == 0);
            self.way = if is_stored { Way::Stored } else { Way::Formula };
            self.rest = rest.map_or((0, 0), |(_, length)| (length, u64::MAX));
            if let Some((slot, length)) =
                rest.and_then(|(leaf, n)| Some((self.values.spans.get_mut(usize::from(leaf))?, n)))
            {
                *slot = Span::rest(length);
            }
        }
    }

    /// Nothing where the formula is not all, or not yet: a leaf that goes by another of its record.
    fn learn_leaves(&mut self, record: &Record, state: &State, first: usize) -> Option<()> {
        if record.steps.iter().any(|step| matches!(step, Step::Repeat { .. })) {
            return None;
        }
        let mut segment = &mut self.segment;
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
                    // Nothing is behind it, most often.
                    if usize::from(leaf) + 1 < record.leaves.len() {
                        self.more.push(Segment::default());
                        segment = self.more.last_mut()?;
                    }
                }
            }
        }
        Some(())
    }

    /// Decodes the record whose tag ends at a place, and gives where the next one begins. None where it is not decoded in
    /// this way, or too near to the end of the data.
    #[inline(always)]
    pub(super) fn fill(&mut self, data: &[u8], at: usize, state: &mut State) -> Option<usize> {
        if self.way == Way::Stored { self.fill_fast::<false>(data, at) } else { self.fill_apart(data, at, state) }
    }

    #[inline(never)]
    fn fill_apart(&mut self, data: &[u8], at: usize, state: &mut State) -> Option<usize> {
        match self.way {
            Way::Stored => self.fill_fast::<false>(data, at),
            Way::Formula => self.fill_fast::<true>(data, at),
            Way::Segments => self.fill_segments(data, at, &mut state.cells),
            Way::Apart => None,
        }
    }

    #[inline(always)]
    fn fill_fast<const FORMULA: bool>(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let values = self.values.numbers.as_mut_slice();
        let end = at + self.segment.fixed;
        // Numbers are loaded eight bytes at a time, and one begins at the end at most.
        if end > data.len().saturating_sub(8) {
            return None;
        }
        for number in &self.fast {
            let raw = u64::from_le_bytes(eight(data, at + number.at as usize)?) & number.mask;
            let value =
                if FORMULA { (raw ^ number.sign).wrapping_sub(number.sign).wrapping_add(number.base) } else { raw };
            *values.get_mut(number.leaf as usize)? = value;
        }
        let (length, mask) = self.rest;
        let length = values.get(usize::from(length))? & mask;
        // A branch that is foreseen: most often there is nothing.
        if length == 0 {
            return Some(end);
        }
        let length = usize::try_from(length).ok().filter(|&length| length <= data.len() - end)?;
        Some(end + length)
    }

    fn fill_segments(&mut self, data: &[u8], mut at: usize, cells: &mut [u64]) -> Option<usize> {
        let values = self.values.numbers.as_mut_slice();
        let spans = self.values.spans.as_mut_slice();
        for segment in std::iter::once(&self.segment).chain(&self.more) {
            let end = at + segment.fixed;
            let here = data.get(at..end + 8)?;
            if segment.has_history {
                for number in &segment.numbers {
                    let value = number.decode(here)?.wrapping_add(history(&number.plan, cells));
                    *values.get_mut(usize::from(number.leaf))? = value;
                }
            } else {
                for number in &segment.numbers {
                    *values.get_mut(usize::from(number.leaf))? = number.decode(here)?;
                }
            }
            for &(leaf, distance, length) in &segment.arrays {
                *spans.get_mut(usize::from(leaf))? = Span::new(at + distance, length);
            }
            at = end;
            if let Some((leaf, length)) = segment.rest {
                let length = usize::try_from(*values.get(usize::from(length))?).ok()?;
                if length > data.len() - end {
                    return None;
                }
                *spans.get_mut(usize::from(leaf))? = Span::new(end, length);
                at += length;
            }
        }
        for &(leaf, cell) in &self.notes {
            *cells.get_mut(cell as usize)? = *values.get(usize::from(leaf))?;
        }
        Some(at)
    }
}

impl Segment {
    fn clear(&mut self) {
        self.numbers.clear();
        self.arrays.clear();
        (self.fixed, self.has_history, self.rest) = (0, false, None);
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
