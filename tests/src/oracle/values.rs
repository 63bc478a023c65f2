//! Models of values, after the specification's section 4.2.1: tables of lines, all of them kept as they are said to be.

use super::Wrong;
use metatf_parser::schema::PredictorKind;

/// The predictors of leaves that share a model.
pub(super) struct Values {
    /// The last three values and differences, latest first.
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
    /// `kinds`: every predictor, and whether it goes by a leaf; `room`: numbers that tables may still have.
    pub(super) fn new(kinds: &[(PredictorKind, bool)], room: &mut usize) -> Self {
        let table = |&(kind, by): &(PredictorKind, bool)| {
            let numbers = if let PredictorKind::LastValue(n) = kind { usize::from(n) } else { 2 };
            let one = !by && matches!(kind, PredictorKind::LastValue(_) | PredictorKind::Stride);
            let lines = if one || *room < 64 * numbers { 1 } else { 64 };
            *room = room.saturating_sub(lines * numbers);
            Table { kind, grows: !one, lines: vec![vec![0; numbers]; lines] }
        };
        let tables = kinds.iter().map(table).collect();
        Self { values: vec![0; 3], differences: vec![0; 3], learnt: 0, tables }
    }

    /// The value of a code, learnt. `by`: what every predictor goes by.
    pub(super) fn decode(
        &mut self,
        by: &[u64],
        code: u64,
        room: &mut usize,
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
        self.learn(&lines, value, room);
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

    fn learn(&mut self, lines: &[usize], value: u64, room: &mut usize) {
        let difference = value.wrapping_sub(self.values[0]);
        self.learnt += 1;
        for (table, &line) in self.tables.iter_mut().zip(lines) {
            let line = &mut table.lines[line];
            match table.kind {
                PredictorKind::Stride => *line = vec![value, value.wrapping_sub(line[0])],
                PredictorKind::LastValue(_) | PredictorKind::Fcm(_) => to_the_front(line, value),
                PredictorKind::Dfcm(_) => to_the_front(line, difference),
            }
            let numbers = table.lines.len() * table.lines[0].len();
            let full = table.lines.len() >= 65_536 || numbers > *room;
            if table.grows && self.learnt >= table.lines.len() && !full {
                *room -= numbers;
                table.lines = [&table.lines[..], &table.lines[..]].concat();
            }
        }
        self.values = vec![value, self.values[0], self.values[1]];
        self.differences = vec![difference, self.differences[0], self.differences[1]];
    }
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
