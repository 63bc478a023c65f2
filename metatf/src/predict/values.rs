//! Predictors for arbitrary numbers. Their candidates are last values, strides, and the values that previously followed
//! the same values (or differences). They are based on Burtscher's VPC algorithms (IEEE Trans. Computers, 2005) and the
//! specifications of TCgen (2006).
//!
//! A predictor stores lines of a few values. The line is selected by the last values and, if the DTD specifies one, by
//! another leaf. Tables start small and double as values arrive, so their memory stays proportional to the data read.
//! After a table doubles, both halves start as copies of the old table.

use super::{CodedValue, NONE};
use crate::format::{Predictor, PredictorKind};

/// Length of a history in values.
const HISTORY: usize = 3;
/// Initial number of lines in a table with a context.
const FIRST_LINES: usize = 1 << 6;
/// Maximum number of lines in a table with a context.
const MOST_LINES: usize = 1 << 16;
/// Maximum total of numbers in a section's tables, excluding tables with a single line.
const MOST_NUMBERS: usize = 1 << 22;
/// Number of candidates of an `fcm` or `dfcm` predictor.
const FOLLOWERS: usize = 2;

/// The predictors of one leaf, or of several leaves that share a previous value.
#[derive(Clone, Debug)]
pub(crate) struct ValueModel {
    predictors: Vec<PredictorTable>,
    /// Maximum number of lines in a table.
    most_lines: usize,
    /// The last values, most recent first.
    values: [u64; HISTORY],
    /// The differences between the last values, most recent first.
    steps: [u64; HISTORY],
    /// Number of values so far.
    seen: usize,
}

/// The lines of one predictor.
#[derive(Clone, Debug)]
struct PredictorTable {
    kind: PredictorKind,
    /// Whether the table always has a single line.
    single: bool,
    /// Number of values in a line.
    width: usize,
    cells: Vec<u64>,
}

impl ValueModel {
    /// Creates a model in which each table has at most `most_lines` lines (see the function [`most_lines`]).
    pub(crate) fn new(predictors: &[Predictor], most_lines: usize) -> Self {
        let first_lines = FIRST_LINES.min(most_lines);
        let predictors = predictors.iter().map(|predictor| PredictorTable::new(predictor, first_lines)).collect();
        Self { predictors, most_lines, values: [0; HISTORY], steps: [0; HISTORY], seen: 0 }
    }

    /// Returns the coding of a value. `contexts` contains, for every predictor, the value of its context leaf.
    pub(crate) fn find(&self, contexts: &[u64], value: u64) -> CodedValue {
        let mut code = 0;
        for (table, &context) in self.predictors.iter().zip(contexts) {
            let line = self.line(table, context);
            for candidate in 0..table.candidates() {
                if self.candidate(table, line, candidate) == Some(value) {
                    return CodedValue::hit(code, NONE);
                }
                code += 1;
            }
        }
        CodedValue::miss(code, value)
    }

    /// Returns the value of a code, or `None` for a code greater than the code of a miss.
    ///
    /// # Errors
    /// Returns any error from `next`, which returns the elements of the stream section.
    pub(crate) fn value<E>(
        &self,
        contexts: &[u64],
        code: u64,
        next: &mut dyn FnMut() -> Result<u64, E>,
    ) -> Result<Option<u64>, E> {
        let Ok(mut candidate) = usize::try_from(code) else { return Ok(None) };
        for (table, &context) in self.predictors.iter().zip(contexts) {
            if candidate < table.candidates() {
                return Ok(self.candidate(table, self.line(table, context), candidate));
            }
            candidate -= table.candidates();
        }
        if candidate == 0 { next().map(Some) } else { Ok(None) }
    }

    /// Learns a value.
    pub(crate) fn learn(&mut self, contexts: &[u64], value: u64) {
        let step = value.wrapping_sub(self.values[0]);
        let lines: [usize; 64] = {
            let mut lines = [0; 64];
            for ((line, table), &context) in lines.iter_mut().zip(&self.predictors).zip(contexts) {
                *line = self.line(table, context);
            }
            lines
        };
        self.seen += 1;
        for (table, line) in self.predictors.iter_mut().zip(lines) {
            let Some(cells) = table.cells.get_mut(line..line + table.width) else { continue };
            match table.kind {
                PredictorKind::LastValue(_) | PredictorKind::Fcm(_) => to_front(cells, value),
                PredictorKind::Dfcm(_) => to_front(cells, step),
                PredictorKind::Stride => {
                    if let [last, stride] = cells {
                        *stride = value.wrapping_sub(*last);
                        *last = value;
                    }
                }
            }
            table.grow(self.seen, self.most_lines);
        }
        self.values.rotate_right(1);
        self.values[0] = value;
        self.steps.rotate_right(1);
        self.steps[0] = step;
    }

    /// Returns the start of a table's current line.
    fn line(&self, table: &PredictorTable, context: u64) -> usize {
        if table.single {
            return 0;
        }
        let (history, order): (&[u64], _) = match table.kind {
            PredictorKind::LastValue(_) | PredictorKind::Stride => (&[], 0),
            PredictorKind::Fcm(order) => (&self.values, usize::from(order)),
            PredictorKind::Dfcm(order) => (&self.steps, usize::from(order)),
        };
        let start = mix(0, context);
        let hash = history.iter().take(order).fold(start, |hash, &value| mix(hash, value));
        // The number of lines is a power of two.
        let lines = table.cells.len() / table.width.max(1);
        (usize::try_from(hash >> 32).unwrap_or(0) & lines.wrapping_sub(1)) * table.width
    }

    fn candidate(&self, table: &PredictorTable, line: usize, candidate: usize) -> Option<u64> {
        let cells = table.cells.get(line..line + table.width)?;
        match table.kind {
            PredictorKind::LastValue(_) | PredictorKind::Fcm(_) => cells.get(candidate).copied(),
            PredictorKind::Dfcm(_) => cells.get(candidate).map(|step| self.values[0].wrapping_add(*step)),
            PredictorKind::Stride => cells.first().zip(cells.get(1)).map(|(last, step)| last.wrapping_add(*step)),
        }
    }
}

impl PredictorTable {
    fn new(predictor: &Predictor, first_lines: usize) -> Self {
        let (width, single) = (width(predictor.kind), is_single(predictor));
        let lines = if single { 1 } else { first_lines };
        Self { kind: predictor.kind, single, width, cells: vec![0; lines * width] }
    }

    fn candidates(&self) -> usize {
        match self.kind {
            PredictorKind::Stride => 1,
            _ => self.width,
        }
    }

    /// Doubles the table once the number of values reaches its number of lines.
    fn grow(&mut self, seen: usize, most_lines: usize) {
        let lines = self.cells.len() / self.width.max(1);
        if !self.single && seen >= lines && lines < most_lines {
            self.cells.extend_from_within(..);
        }
    }
}

/// Returns the number of values in a line.
fn width(kind: PredictorKind) -> usize {
    match kind {
        PredictorKind::LastValue(n) => usize::from(n).max(1),
        PredictorKind::Stride => 2,
        PredictorKind::Fcm(_) | PredictorKind::Dfcm(_) => FOLLOWERS,
    }
}

/// Returns whether a table always has a single line.
fn is_single(predictor: &Predictor) -> bool {
    predictor.by.is_none() && matches!(predictor.kind, PredictorKind::LastValue(_) | PredictorKind::Stride)
}

/// Returns the maximum number of lines in a section's tables (a power of two), given the predictors of all models in
/// the section.
pub(crate) fn most_lines<'p>(predictors: impl Iterator<Item = &'p Predictor>) -> usize {
    let numbers: usize = predictors.filter(|p| !is_single(p)).map(|p| width(p.kind)).sum();
    let lines = (MOST_NUMBERS / numbers.max(1)).clamp(1, MOST_LINES);
    1 << lines.ilog2()
}

/// Moves a value to the front. If it is not present yet, it replaces the last value.
fn to_front(cells: &mut [u64], value: u64) {
    let at = cells.iter().position(|&cell| cell == value).unwrap_or(cells.len().saturating_sub(1));
    if let Some(moved) = cells.get_mut(..=at) {
        moved.rotate_right(1);
    }
    if let Some(first) = cells.first_mut() {
        *first = value;
    }
}

/// Mixes a value into the hash defined in section 4.2.1 of the specification. Readers and writers must compute the same
/// hash, so it cannot be changed.
fn mix(hash: u64, value: u64) -> u64 {
    let hash = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(kinds: &[PredictorKind]) -> ValueModel {
        let predictors: Vec<_> = kinds.iter().map(|&kind| Predictor { kind, by: None }).collect();
        ValueModel::new(&predictors, most_lines(predictors.iter()))
    }

    /// Checks that a sequence survives encoding and decoding, and returns its codes.
    fn codes(kinds: &[PredictorKind], values: &[u64]) -> Vec<u64> {
        let (mut writer, mut reader) = (model(kinds), model(kinds));
        let contexts = vec![0; kinds.len()];
        let mut codes = Vec::new();
        for &value in values {
            let found = writer.find(&contexts, value);
            let mut elements = found.elements().iter().copied();
            let back = reader.value(&contexts, found.code, &mut || elements.next().ok_or(()));
            assert_eq!(back, Ok(Some(value)));
            writer.learn(&contexts, value);
            reader.learn(&contexts, value);
            codes.push(found.code);
        }
        codes
    }

    #[test]
    fn last_values() {
        use PredictorKind::LastValue;
        assert_eq!(codes(&[LastValue(2)], &[5, 5, 7, 5, 7, 9, 5]), [2, 0, 2, 1, 1, 2, 2]);
    }

    #[test]
    fn strides_and_contexts() {
        use PredictorKind::{Dfcm, Fcm, Stride};
        assert_eq!(codes(&[Stride], &[3, 6, 9, 12, 13, 14]), [1, 0, 0, 0, 1, 0]);
        // 1 is followed by 2, 2 by 3, and 3 by 1.
        assert_eq!(codes(&[Fcm(1)], &[1, 2, 3, 1, 2, 3, 1])[4..], [0, 0, 0]);
        // The steps are 1, 10, 1, 10.
        assert_eq!(codes(&[Dfcm(1)], &[100, 101, 111, 112, 122, 123, 133])[4..], [0, 0, 0]);
    }

    #[test]
    fn tables_grow_alike() {
        let values: Vec<u64> = (0..5000_u64).map(|i| i * i % 701).collect();
        let codes = codes(&[PredictorKind::Fcm(2), PredictorKind::Dfcm(3), PredictorKind::LastValue(4)], &values);
        let misses = codes.iter().filter(|&&code| code == 8).count();
        assert!(misses < 1500, "{misses} misses");
    }

    #[test]
    fn codes_beyond_the_miss() {
        let model = model(&[PredictorKind::Stride]);
        assert_eq!(model.value(&[0], 2, &mut || Err(())), Ok(None));
        assert_eq!(model.value(&[0], 1, &mut || Err(())), Err(()));
        assert_eq!(model.value(&[0], u64::MAX, &mut || Err(())), Ok(None));
    }
}
