//! Divides the records of a chunk into rows for the filter `columns` (spec 5.2, filter 4).

use crate::format::{ExprOp, Format, LeafKind, METADATA, Record, SECTION, Step};
use crate::formula::{BYTES, HISTORY, Plan, SPECIAL, evaluate, plain, stored};
use crate::state::Encoding;
use metatf_container::Order;
use metatf_container::columns::{Column, MOST_COLUMNS, MOST_SHAPES, Piece, RowShape, Rows, WIDEST};

/// The division of an open chunk into rows, which are its records.
///
/// The records are divided before their encoding changes and at the end of the chunk. A record whose layout does not
/// follow from its own bytes under the current plans is a row of unspecified bytes after its tag.
#[derive(Default)]
pub(crate) struct RowSplitter {
    rows: Rows,
    /// Number of records divided so far, and the end of the last one.
    records: usize,
    end: usize,
    /// For each plan of the section, the columns that were last used for the leaf: the column of its stored bytes and
    /// the column of its counts.
    by_plan: Vec<[Option<u16>; 2]>,
    /// For each record of the format, its shapes.
    shapes: Vec<Vec<u8>>,
    /// For each record of the format, the columns for the lengths and the bytes of records that were not divided.
    undivided: Vec<Option<[u16; 2]>>,
    /// Whether there are too many columns or shapes.
    failed: bool,
    /// The pieces of the current record, and the values of its leaves, if they follow from its bytes.
    pieces: Vec<Piece>,
    values: Vec<Option<u64>>,
}

impl RowSplitter {
    /// Divides the records that were added since the last call.
    pub(super) fn divide(&mut self, format: &Format, encoding: &Encoding, order: Order, content: &[u8], ends: &[u32]) {
        for &end in ends.get(self.records..).unwrap_or_default() {
            let record = content.get(self.end..end as usize).unwrap_or_default();
            self.end = end as usize;
            self.records += 1;
            if !self.failed {
                self.failed = self.row(format, encoding, order, record).is_none();
            }
        }
    }

    /// Returns the rows of the chunk and starts another chunk. Returns `None` if the chunk cannot be stored in columns.
    pub(super) fn finish(&mut self) -> Option<Rows> {
        let rows = std::mem::take(&mut self.rows);
        let failed = std::mem::take(&mut self.failed);
        (self.records, self.end) = (0, 0);
        self.by_plan.clear();
        self.shapes.clear();
        self.undivided.clear();
        (!failed).then_some(rows)
    }

    /// Adds a row for a record. Returns `None` if there are too many columns or shapes.
    fn row(&mut self, format: &Format, encoding: &Encoding, order: Order, bytes: &[u8]) -> Option<()> {
        let tag_width = usize::from(format.tag_width);
        let (constant, stored) = bytes.split_at_checked(tag_width)?;
        let listed = encoding.listed(u32::try_from(order.read(constant)).ok()?);
        let index = usize::from(listed.map_or(SECTION, |listed| listed.record));
        let count = self.rows.counts.len();
        self.pieces.clear();
        let divided = listed.filter(|listed| ![SECTION, METADATA].contains(&listed.record)).and_then(|listed| {
            let record = format.records.get(index).filter(|record| !record.is_catch_all())?;
            let mut division = Division {
                record,
                plans: encoding.plans.get(listed.first as usize..)?,
                first: listed.first as usize,
                order,
                data: stored,
                at: 0,
                splitter: self,
            };
            division.run()
        });
        if divided.is_none() {
            self.rows.counts.truncate(count);
            self.pieces.clear();
            if !stored.is_empty() {
                self.undivided(index, stored.len())?;
            }
        }
        self.add(index, constant)
    }

    /// Adds the piece for a record that is not divided.
    fn undivided(&mut self, record: usize, length: usize) -> Option<()> {
        if self.undivided.len() <= record {
            self.undivided.resize(record + 1, None);
        }
        let [count, bytes] = match self.undivided.get(record)? {
            Some(columns) => *columns,
            None => {
                let columns = [self.column(None, COUNT)?, self.column(None, 1)?];
                *self.undivided.get_mut(record)? = Some(columns);
                columns
            }
        };
        self.rows.counts.push(u32::try_from(length).ok()?);
        self.pieces.push(Piece::Repeat { count, columns: vec![bytes] });
        Some(())
    }

    /// Adds a row with the current pieces.
    #[allow(clippy::cast_possible_truncation, reason = "there are at most 256 shapes")]
    fn add(&mut self, record: usize, constant: &[u8]) -> Option<()> {
        if self.shapes.len() <= record {
            self.shapes.resize(record + 1, Vec::new());
        }
        let known = self.shapes.get_mut(record)?;
        let shapes = &mut self.rows.shapes;
        let found = known.iter().copied().find(|&shape| {
            let shape = shapes.get(usize::from(shape));
            shape.is_some_and(|shape| shape.pieces == self.pieces && shape.constant == constant)
        });
        let shape = match found {
            Some(shape) => shape,
            None if shapes.len() == MOST_SHAPES => return None,
            None => {
                let shape = shapes.len() as u8;
                shapes.push(RowShape { constant: constant.to_vec(), pieces: self.pieces.clone() });
                known.push(shape);
                shape
            }
        };
        self.rows.rows.push(shape);
        Some(())
    }

    /// Adds a column.
    fn column(&mut self, leaf: Option<(u32, u8)>, width: u8) -> Option<u16> {
        let columns = &mut self.rows.columns;
        let number = u16::try_from(columns.len()).ok().filter(|_| columns.len() < MOST_COLUMNS)?;
        columns.push(Column { leaf, width });
        Some(number)
    }

    /// Returns the column for the stored bytes of the leaf with a plan.
    fn column_of(&mut self, plan: usize, leaf: (u32, u8), width: u8) -> Option<u16> {
        let wanted = Column { leaf: Some(leaf), width };
        let [last, _] = self.columns_of(plan)?;
        if let Some(column) = last
            && self.rows.columns.get(usize::from(column)) == Some(&wanted)
        {
            return Some(column);
        }
        let column = match self.rows.columns.iter().position(|column| *column == wanted) {
            Some(column) => u16::try_from(column).ok()?,
            None => self.column(wanted.leaf, width)?,
        };
        self.by_plan.get_mut(plan)?[0] = Some(column);
        Some(column)
    }

    /// Returns the column for the counts of the leaf with a plan.
    fn counts_of(&mut self, plan: usize) -> Option<u16> {
        if let [_, Some(column)] = self.columns_of(plan)? {
            return Some(column);
        }
        let column = self.column(None, COUNT)?;
        self.by_plan.get_mut(plan)?[1] = Some(column);
        Some(column)
    }

    #[inline]
    fn columns_of(&mut self, plan: usize) -> Option<[Option<u16>; 2]> {
        if self.by_plan.len() <= plan {
            self.by_plan.resize(plan + 1, [None; 2]);
        }
        self.by_plan.get(plan).copied()
    }
}

/// Size of counts in bytes.
const COUNT: u8 = 4;

/// The division of one record. Its methods return `None` if the layout does not follow from the record's bytes.
struct Division<'d> {
    record: &'d Record,
    /// The plans of the record's leaves, followed by those of other records.
    plans: &'d [Plan],
    /// Index of the first plan.
    first: usize,
    order: Order,
    /// The record without its tag.
    data: &'d [u8],
    at: usize,
    splitter: &'d mut RowSplitter,
}

impl Division<'_> {
    fn run(&mut self) -> Option<()> {
        let Self { record, splitter, .. } = self;
        splitter.values.clear();
        splitter.values.resize(record.leaves.len(), None);
        let record = *record;
        self.steps(record.steps.get(record.first_value()..)?, record.first_value())?;
        (self.at == self.data.len()).then_some(())
    }

    /// Divides the bytes of steps, the first of which has index `offset`.
    fn steps(&mut self, steps: &[Step], offset: usize) -> Option<()> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => self.number(leaf)?,
                Step::Bytes(leaf) => self.bytes(leaf)?,
                Step::Repeat { count, end } => {
                    let end = usize::from(end).checked_sub(offset)?;
                    let body = steps.get(at..end)?;
                    let is_computed = matches!(self.record.leaves.get(usize::from(count))?.kind, LeafKind::Computed(_));
                    match self.value(count)? {
                        0 if is_computed => {}
                        1 if is_computed => self.steps(body, offset + at)?,
                        items => self.repeat(count, items, body)?,
                    }
                    at = end;
                }
            }
        }
        Some(())
    }

    fn plan(&self, leaf: u8) -> Option<&Plan> {
        self.plans.get(usize::from(leaf))
    }

    fn value(&self, leaf: u8) -> Option<u64> {
        *self.splitter.values.get(usize::from(leaf))?
    }

    #[inline]
    fn number(&mut self, leaf: u8) -> Option<()> {
        let plan = *self.plan(leaf)?;
        let value = if let LeafKind::Computed(program) = &self.record.leaves.get(usize::from(leaf))?.kind {
            self.evaluate(program)
        } else if plan.is(SPECIAL | HISTORY | BYTES) {
            None
        } else {
            Some(plain(stored(self.data, self.at, &plan, self.order)?, &plan))
        };
        *self.splitter.values.get_mut(usize::from(leaf))? = value;
        self.element(leaf, plan.width.get())
    }

    /// Returns the value of an expression, if all leaves in it have known values.
    fn evaluate(&self, program: &[ExprOp]) -> Option<u64> {
        let mut known = true;
        let value = evaluate(program, |leaf| {
            let value = self.value(leaf);
            known &= value.is_some();
            value.unwrap_or(0)
        });
        value.filter(|_| known)
    }

    /// Adds an element of the column of a leaf.
    #[inline]
    fn element(&mut self, leaf: u8, width: u8) -> Option<()> {
        if width > 0 {
            let column = self.column(leaf, width)?;
            self.splitter.pieces.push(Piece::Element(column));
            self.at += usize::from(width);
        }
        Some(())
    }

    #[inline]
    fn column(&mut self, leaf: u8, width: u8) -> Option<u16> {
        self.splitter.column_of(self.first + usize::from(leaf), (self.record.tag, leaf), width)
    }

    fn bytes(&mut self, leaf: u8) -> Option<()> {
        let (length, of) = match &self.record.leaves.get(usize::from(leaf))?.kind {
            LeafKind::Array(length) => match u8::try_from(*length) {
                Ok(width) if usize::from(width) <= WIDEST => return self.element(leaf, width),
                _ => ((*length).into(), None),
            },
            LeafKind::Variable(program) => match **program {
                [ExprOp::Leaf(of)] => (self.value(of)?, Some(of)),
                _ => (self.evaluate(program)?, None),
            },
            _ => return None,
        };
        let count = self.count(leaf, length, of)?;
        let column = self.column(leaf, 1)?;
        self.splitter.pieces.push(Piece::Repeat { count, columns: vec![column] });
        self.at = self.at.checked_add(usize::try_from(length).ok()?)?;
        Some(())
    }

    /// Returns the column with the count of a repetition: the column of the leaf `of` if its stored bytes are the count,
    /// or else a column of counts.
    fn count(&mut self, leaf: u8, count: u64, of: Option<u8>) -> Option<u16> {
        if let Some(of) = of.filter(|_| self.order == Order::Little)
            && let plan = *self.plan(of)?
            && plan.stores_as(&Plan::straight(plan.width, None))
            && !plan.width.is_zero()
        {
            let column = self.column(of, plan.width.get())?;
            if self.splitter.pieces.contains(&Piece::Element(column)) {
                return Some(column);
            }
        }
        self.splitter.rows.counts.push(u32::try_from(count).ok()?);
        self.splitter.counts_of(self.first + usize::from(leaf))
    }

    /// Divides a repetition of steps without byte arrays of variable length and without nested repetitions.
    fn repeat(&mut self, count: u8, items: u64, body: &[Step]) -> Option<()> {
        let (mut columns, mut size) = (Vec::new(), 0_usize);
        for step in body {
            let (leaf, width) = match *step {
                Step::Number(leaf) => (leaf, self.plan(leaf).filter(|plan| !plan.is(BYTES))?.width.get()),
                Step::Bytes(leaf) => match self.record.leaves.get(usize::from(leaf))?.kind {
                    LeafKind::Array(length) => (leaf, u8::try_from(length).ok()?),
                    _ => return None,
                },
                Step::Repeat { .. } => return None,
            };
            if width > 0 {
                columns.push(self.column(leaf, width)?);
                size += usize::from(width);
            }
        }
        if columns.is_empty() {
            return Some(());
        }
        let count = self.count(count, items, Some(count))?;
        self.splitter.pieces.push(Piece::Repeat { count, columns });
        self.at = self.at.checked_add(size.checked_mul(usize::try_from(items).ok()?)?)?;
        Some(())
    }
}
