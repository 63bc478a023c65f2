//! Where on a tape the values of each leaf stand.

use super::{Datum, Tape};
use crate::format::{LeafKind, Record, Step};

/// For each leaf of a record the indices of its values on a tape: one, or as many as a repetition says. Used again from
/// record to record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    by_leaf: Vec<Vec<usize>>,
}

impl Places {
    /// Finds the values of a record on its tape.
    pub(crate) fn fill(&mut self, record: &Record, tape: &Tape) {
        self.by_leaf.resize_with(record.leaves.len().max(self.by_leaf.len()), Vec::new);
        self.by_leaf.iter_mut().for_each(Vec::clear);
        // The tag is not on the tape.
        let first = usize::from(matches!(record.leaves.first().map(|l| &l.kind), Some(LeafKind::Tag)));
        let mut next = 0;
        self.steps(record.steps.get(first..).unwrap_or_default(), first, tape, &mut next);
    }

    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn steps(&mut self, steps: &[Step], offset: usize, tape: &Tape, next: &mut usize) {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) | Step::Bytes(leaf) => {
                    if let Some(places) = self.by_leaf.get_mut(usize::from(leaf)) {
                        places.push(*next);
                    }
                    *next += 1;
                }
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    let items = match self.of(count).last().and_then(|&place| tape.data().get(place)) {
                        Some(Datum::Number(n)) => *n,
                        _ => 0,
                    };
                    for _ in 0..items {
                        // A tape that ends early is no record's.
                        if *next >= tape.data().len() {
                            break;
                        }
                        self.steps(body, offset + at, tape, next);
                    }
                    at = end;
                }
            }
        }
    }

    /// The places of a record that repeats nothing: the same on every tape.
    pub(crate) fn fixed(record: &Record) -> Option<Self> {
        let repeats = record.steps.iter().any(|step| matches!(step, Step::Repeat { .. }));
        let mut places = Self::default();
        places.fill(record, &Tape::default());
        (!repeats).then_some(places)
    }

    /// How many leaves it knows.
    pub(crate) fn leaves(&self) -> usize {
        self.by_leaf.len()
    }

    /// The indices of a leaf's values.
    pub(crate) fn of(&self, leaf: u8) -> &[usize] {
        self.by_leaf.get(usize::from(leaf)).map_or(&[], Vec::as_slice)
    }
}
