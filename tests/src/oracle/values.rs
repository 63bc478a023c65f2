//! Value models, after section 4.2.1 of the specification, with tables stored exactly as described there.

use super::{Rule, Rules, Wrong};
use metatf_parser::schema::PredictorKind;

/// Predictors, and whether each depends on a leaf.
pub(super) type Kinds = Vec<(PredictorKind, bool)>;

/// Predictors of leaves that share a model.
pub(super) struct Values {
    rules: Rules,
    most_lines: usize,
    /// Last three values and differences, newest first.
    values: Vec<u64>,
    differences: Vec<u64>,
    learnt: usize,
    tables: Vec<Table>,
}

struct Table {
    kind: PredictorKind,
    grows: bool,
    lines: Vec<Vec<u64>>,
}

impl Values {
    pub(super) fn new(kinds: &Kinds, most_lines: usize, rules: Rules) -> Self {
        let table = |&kind: &(PredictorKind, bool)| {
            let lines = if is_single(kind) { 1 } else { most_lines.min(64) };
            Table { kind: kind.0, grows: !is_single(kind), lines: vec![vec![0; numbers(kind)]; lines] }
        };
        let tables = kinds.iter().map(table).collect();
        Self { rules, most_lines, values: vec![0; 3], differences: vec![0; 3], learnt: 0, tables }
    }

    /// Decodes a code and updates the model. `by` holds the value that each predictor depends on.
    pub(super) fn decode(
        &mut self,
        by: &[u64],
        code: u64,
        mut element: impl FnMut() -> Result<u64, Wrong>,
    ) -> Result<u64, Wrong> {
        let lines: Vec<usize> = self.tables.iter().zip(by).map(|(table, by)| self.line_in_use(table, *by)).collect();
        let mut candidates = Vec::new();
        for (table, &line) in self.tables.iter().zip(&lines) {
            let line = &table.lines[line];
            match table.kind {
                PredictorKind::LastValue(_) | PredictorKind::Fcm(_) => candidates.extend(line),
                PredictorKind::Stride => candidates.push(line[0].wrapping_add(line[1])),
                PredictorKind::Dfcm(_) => candidates.extend(line.iter().map(|d| self.values[0].wrapping_add(*d))),
            }
        }
        let value = match usize::try_from(code) {
            Ok(code) if code < candidates.len() => candidates[code],
            Ok(code) if code == candidates.len() => element()?,
            _ => return Err("a code without a candidate".into()),
        };
        self.learn(&lines, value);
        Ok(value)
    }

    fn line_in_use(&self, table: &Table, by: u64) -> usize {
        let history = match table.kind {
            PredictorKind::LastValue(_) | PredictorKind::Stride => &[][..],
            PredictorKind::Fcm(k) => &self.values[..usize::from(k)],
            PredictorKind::Dfcm(k) => &self.differences[..usize::from(k)],
        };
        let hash = history.iter().fold(mix(0, by), |hash, v| mix(hash, *v));
        (hash >> 32) as usize % table.lines.len()
    }

    fn learn(&mut self, lines: &[usize], value: u64) {
        let difference = value.wrapping_sub(self.values[0]);
        let holds = |rule| self.rules.holds(rule);
        self.learnt += 1;
        let late = usize::from(!holds(Rule::DoublesAtEquality));
        for (table, &line) in self.tables.iter_mut().zip(lines) {
            let line = &mut table.lines[line];
            match table.kind {
                PredictorKind::Stride => *line = vec![value, value.wrapping_sub(line[0])],
                PredictorKind::LastValue(_) | PredictorKind::Fcm(_) => to_the_front(line, value),
                PredictorKind::Dfcm(_) => to_the_front(line, difference),
            }
            if table.grows && self.learnt >= table.lines.len() + late && table.lines.len() < self.most_lines {
                let copies =
                    table.lines.iter().map(|line| line.iter().map(|n| if holds(Rule::DoublesCopies) { *n } else { 0 }));
                let copies: Vec<Vec<u64>> = copies.map(Iterator::collect).collect();
                table.lines.extend(copies);
            }
        }
        self.values = vec![value, self.values[0], self.values[1]];
        self.differences = vec![difference, self.differences[0], self.differences[1]];
    }
}

/// Returns whether a predictor's table always has one line.
fn is_single((kind, by): (PredictorKind, bool)) -> bool {
    !by && matches!(kind, PredictorKind::LastValue(_) | PredictorKind::Stride)
}

/// Returns the numbers per line.
fn numbers((kind, _): (PredictorKind, bool)) -> usize {
    if let PredictorKind::LastValue(n) = kind { n.into() } else { 2 }
}

/// Returns the maximum number of lines per table, considering all models of a section.
pub(super) fn most_lines<'k>(models: impl Iterator<Item = &'k Kinds>, rules: Rules) -> usize {
    let mut lines = if !rules.holds(Rule::MostLines) { 131_072 } else { 65_536 };
    let sums =
        models.map(|kinds| kinds.iter().filter(|kind| !is_single(**kind)).map(|kind| numbers(*kind)).sum::<usize>());
    let sum: usize = if !rules.holds(Rule::MostNumbers) { sums.max().unwrap_or(0) } else { sums.sum() };
    while lines > 1 && lines * sum > 1 << 22 {
        lines /= 2;
    }
    lines
}

fn to_the_front(line: &mut Vec<u64>, number: u64) {
    let at = line.iter().position(|n| *n == number).unwrap_or(line.len() - 1);
    line.remove(at);
    line.insert(0, number);
}

fn mix(hash: u64, value: u64) -> u64 {
    let hash = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 29)
}
