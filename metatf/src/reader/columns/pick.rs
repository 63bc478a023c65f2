//! Reads single leaves of records that cannot be decoded in batches because their length depends on their values. All
//! other leaves are skipped, except for those that later records or the layout depend on.

use crate::columns::{Column, Columns, RecordColumns};
use crate::decode::Run;
use crate::format::{ExprOp, LeafKind, Record, Step};
use crate::formula::{
    BYTES, HISTORY, LAST, PREVIOUS, Plan, REFERENCED, SPECIAL, evaluate, history, plain, stored, taken,
};
use crate::state::Listed;

/// The steps for picking the requested leaves from the records of one type under the current plans.
#[derive(Debug, Default)]
pub(super) struct Picker {
    steps: Vec<Pick>,
    /// The values on which the layout of the current record depends, by leaf.
    values: Vec<u64>,
    /// The requested values of the current record, and the cells that it changes. They are stored once the record is
    /// complete, so that a record that cannot be picked can be read in another way.
    numbers: Vec<(u8, u64)>,
    arrays: Vec<(u8, usize, usize)>,
    cells: Vec<(u32, u64)>,
}

#[derive(Debug)]
enum Pick {
    Skip(usize),
    Number {
        leaf: u8,
        plan: Plan,
        is_wanted: bool,
    },
    Computed {
        leaf: u8,
        program: Vec<ExprOp>,
    },
    Bytes {
        leaf: u8,
        program: Vec<ExprOp>,
        is_wanted: bool,
    },
    /// Skips items of this size.
    Items {
        count: u8,
        size: usize,
    },
    /// Continues with the step `next` if the count is 0.
    Optional {
        count: u8,
        next: usize,
    },
}

impl Picker {
    /// Creates the steps for a record, given the plans of its leaves. Returns `None` if its records must be read leaf by
    /// leaf.
    pub(super) fn new(record: &Record, plans: &[Plan], columns: &RecordColumns) -> Option<Self> {
        let mut picker = Self { values: vec![0; record.leaves.len()], ..Self::default() };
        let cells = |plan: &&Plan| plan.is(HISTORY | PREVIOUS) && !plan.is(BYTES);
        let mut cells: Vec<u32> = plans.iter().filter(cells).map(|plan| plan.write).collect();
        cells.sort_unstable();
        if record.is_catch_all() || cells.windows(2).any(|pair| pair.first() == pair.last()) {
            return None;
        }
        picker.add(record, plans, columns, record.first_value()..record.steps.len())?;
        Some(picker)
    }

    fn add(
        &mut self,
        record: &Record,
        plans: &[Plan],
        columns: &RecordColumns,
        steps: std::ops::Range<usize>,
    ) -> Option<()> {
        let mut at = steps.start;
        while at < steps.end {
            let step = *record.steps.get(at)?;
            at += 1;
            let (Step::Number(leaf) | Step::Bytes(leaf) | Step::Repeat { count: leaf, .. }) = step;
            let kind = &record.leaves.get(usize::from(leaf))?.kind;
            let plan = *plans.get(usize::from(leaf))?;
            let is_wanted = columns.wants(leaf);
            match (step, kind) {
                (Step::Number(_), LeafKind::Computed(program)) if !is_wanted => {
                    self.steps.push(Pick::Computed { leaf, program: program.to_vec() });
                }
                (Step::Number(_), _) => {
                    if plan.is(SPECIAL | REFERENCED) || plan.is(HISTORY) && !plan.uses_previous() {
                        return None;
                    }
                    if is_wanted || plan.flags != 0 {
                        self.steps.push(Pick::Number { leaf, plan, is_wanted });
                    } else {
                        self.skip(plan.width.bytes());
                    }
                }
                (Step::Bytes(_), LeafKind::Array(length)) => {
                    let length = usize::try_from(*length).ok()?;
                    if is_wanted {
                        let program = vec![ExprOp::Push(length as u64)];
                        self.steps.push(Pick::Bytes { leaf, program, is_wanted });
                    } else {
                        self.skip(length);
                    }
                }
                (Step::Bytes(_), LeafKind::Variable(program)) => {
                    self.steps.push(Pick::Bytes { leaf, program: program.to_vec(), is_wanted });
                }
                (Step::Bytes(_), _) => return None,
                (Step::Repeat { count, end }, kind) => {
                    let body = at..usize::from(end);
                    at = body.end;
                    if matches!(kind, LeafKind::Computed(_)) {
                        let step = self.steps.len();
                        self.steps.push(Pick::Optional { count, next: 0 });
                        self.add(record, plans, columns, body)?;
                        let end = self.steps.len();
                        *self.steps.get_mut(step)? = Pick::Optional { count, next: end };
                        // Bytes after the optional leaves must not be skipped together with them.
                        self.steps.push(Pick::Skip(0));
                    } else {
                        let size = unwanted_size(record, plans, columns, body)?;
                        self.steps.push(Pick::Items { count, size });
                    }
                }
            }
        }
        Some(())
    }

    fn skip(&mut self, bytes: usize) {
        match self.steps.last_mut() {
            Some(Pick::Skip(length)) => *length += bytes,
            _ => self.steps.push(Pick::Skip(bytes)),
        }
    }

    /// Picks the leaves of the next records of a type, at least one unless it must be read leaf by leaf. Returns whether
    /// any record was picked.
    pub(super) fn pick_all(&mut self, run: &mut Run<'_>, columns: &mut Columns, listed: Listed) -> bool {
        let start = run.position;
        while columns.room() > 0
            && run.next_listed().is_some_and(|next| next.position == listed.position)
            && self.pick(run, columns, listed).is_some()
        {}
        run.position != start
    }

    /// Picks the leaves of the next record. Returns `None`, without any effect, if the record must be read leaf by leaf.
    fn pick(&mut self, run: &mut Run<'_>, columns: &mut Columns, listed: Listed) -> Option<()> {
        let at = self.find(run, run.position + usize::from(run.format.tag_width))?;
        let (first, records, order, weight) = columns.split(run.state.encoding.section);
        let slot = first + usize::from(listed.position);
        let records = records.get_mut(slot)?;
        for &(leaf, value) in &self.numbers {
            if let Some(Column::Numbers(column)) = records.leaf(leaf.into()) {
                column.push(value);
            }
        }
        for &(leaf, start, end) in &self.arrays {
            if let Some(Column::Arrays(column)) = records.leaf(leaf.into()) {
                column.push(run.data.get(start..end).unwrap_or_default());
                *weight += end - start;
            }
        }
        for &(cell, value) in &self.cells {
            if let Some(cell) = run.state.history.cells.get_mut(cell as usize) {
                *cell = value;
            }
        }
        *weight += self.numbers.len() + self.arrays.len();
        records.add(1);
        order.push(u32::try_from(slot).ok()?);
        run.position = at;
        run.count += 1;
        Some(())
    }

    /// Finds the values of the record whose first leaf is stored at a position, and returns its end.
    fn find(&mut self, run: &Run<'_>, mut at: usize) -> Option<usize> {
        let Self { steps, values, numbers, arrays, cells } = self;
        numbers.clear();
        arrays.clear();
        cells.clear();
        let (data, state) = (run.data, &run.state.history.cells);
        let value_of = |values: &[u64], leaf: u8| values.get(usize::from(leaf)).copied().unwrap_or(0);
        let mut next = 0;
        while let Some(step) = steps.get(next) {
            next += 1;
            match step {
                Pick::Skip(bytes) => at += bytes,
                Pick::Number { leaf, plan, is_wanted } => {
                    let value = plain(stored(data, at, plan, run.order)?, plan).wrapping_add(history(plan, state));
                    at += plan.width.bytes();
                    if plan.is(LAST) {
                        *values.get_mut(usize::from(*leaf))? = value;
                    }
                    if plan.is(PREVIOUS) {
                        cells.push((plan.write, value));
                    }
                    if *is_wanted {
                        numbers.push((*leaf, value));
                    }
                }
                Pick::Computed { leaf, program } => {
                    *values.get_mut(usize::from(*leaf))? = evaluate(program, |leaf| value_of(values, leaf))?;
                }
                Pick::Bytes { leaf, program, is_wanted } => {
                    let length = evaluate(program, |leaf| value_of(values, leaf))?;
                    let end = at + taken(data, at, length)?.len();
                    if *is_wanted {
                        arrays.push((*leaf, at, end));
                    }
                    at = end;
                }
                Pick::Items { count, size } => {
                    let count = usize::try_from(value_of(values, *count)).ok()?;
                    at = at.checked_add(count.checked_mul(*size)?)?;
                }
                Pick::Optional { count, next: end } => match value_of(values, *count) {
                    0 => next = *end,
                    1 => {}
                    _ => return None,
                },
            }
        }
        (at <= data.len()).then_some(at)
    }
}

/// Returns the size of items without requested leaves and without leaves on which others depend.
fn unwanted_size(
    record: &Record,
    plans: &[Plan],
    columns: &RecordColumns,
    body: std::ops::Range<usize>,
) -> Option<usize> {
    let mut size = 0;
    for step in record.steps.get(body)? {
        let (Step::Number(leaf) | Step::Bytes(leaf) | Step::Repeat { count: leaf, .. }) = *step;
        let plan = plans.get(usize::from(leaf))?;
        size += match (step, &record.leaves.get(usize::from(leaf))?.kind) {
            (Step::Number(_), LeafKind::Number { .. }) if plan.flags == 0 => plan.width.bytes(),
            (Step::Bytes(_), LeafKind::Array(length)) => usize::try_from(*length).ok()?,
            _ => return None,
        };
        if columns.wants(leaf) {
            return None;
        }
    }
    // The limit on items without bytes (spec 3.3) is checked elsewhere.
    (size > 0).then_some(size)
}
