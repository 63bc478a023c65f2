//! Fills columns from chunks that are stored in columns (spec 5.2, filter 4). Only the leaves that were requested, and
//! those on which other records depend, are decompressed and decoded.
//!
//! A chunk that does not allow this is assembled and read like any other: if its encoding changes in the middle, if a
//! model or a stream section is involved, or if its columns do not follow from the layout of its records.

use super::{Current, Next, RecordReader};
use crate::columns::{Column, Columns, RecordColumns};
use crate::format::{COMMENT, ExprOp, Format, Interpretation, LeafKind, METADATA, Record, SECTION, Step};
use crate::formula::{
    BYTES, HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, eight, evaluate, history, note, plain,
};
use crate::state::{History, State};
use metatf_container::columns::{ChunkColumns, Piece};
use metatf_container::{Order, Part, Result};

/// A part whose columns are kept.
pub(super) struct KeptPart {
    section: usize,
    part: Part,
    /// The cells of the section before the part.
    cells: Vec<u64>,
    /// The rows and the selection of leaves for which they were planned.
    rows: Option<(Rows, u64)>,
}

/// The rows of a part that have not been added to columns yet.
struct Rows {
    chunk: ChunkColumns,
    /// Number of the next row, and the number of data records before it.
    next: usize,
    found: u64,
    /// For each shape, the position of its record in the section, or `None` if it is not a data record.
    positions: Vec<Option<u16>>,
    leaves: Vec<ProjectedLeaf>,
    /// The order in which leaves are decoded. Leaves that share a previous value are decoded together.
    groups: Vec<Vec<usize>>,
}

/// A leaf to be decoded.
struct ProjectedLeaf {
    position: u16,
    leaf: u8,
    plan: Plan,
    /// The column, or `None` for a leaf that stores nothing.
    column: Option<ColumnCursor>,
    /// The column with the number of elements per row, for a repetition or a byte array.
    count: Option<ColumnCursor>,
    /// For each shape, whether its rows contain the leaf.
    shapes: Vec<bool>,
    /// The expression for a count that is not stored.
    computed: Option<Computed>,
}

/// An expression and the leaves in it, each of which every row stores.
struct Computed {
    program: Vec<ExprOp>,
    inputs: Vec<(u8, Plan, ColumnCursor)>,
}

/// A position in a column.
struct ColumnCursor {
    column: u16,
    width: usize,
    /// Number of the next element.
    next: usize,
}

/// The use of a column by the rows of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Element,
    Repeated(u16),
}

impl RecordReader<'_> {
    /// Opens the next part if nothing else remains, so that its columns may be kept. Returns false if there is no part.
    pub(super) fn keep_next(&mut self) -> Result<bool> {
        if self.current.is_some() || !self.elements.is_empty() || !self.is_idle() {
            return Ok(false);
        }
        let opened = self.open_next();
        if opened.is_err() {
            self.next = Next::Finished;
        }
        opened
    }

    /// Keeps the columns of a part until it is known which of them are needed.
    pub(super) fn keep(&mut self, section: usize, part: Part) {
        let cells = self.states.get(section).map(|state| state.history.cells.clone()).unwrap_or_default();
        self.kept = Some(Box::new(KeptPart { section, part, cells, rows: None }));
    }

    /// Returns the number of records that were added to columns from the current part, if its columns are kept.
    pub(super) fn projected(&self) -> u64 {
        self.kept.as_ref().and_then(|kept| kept.rows.as_ref()).map_or(0, |(rows, _)| rows.found)
    }

    /// Adds the next records of a part whose columns are kept. Returns false if there is no such part.
    pub(super) fn fill_projected(&mut self, columns: &mut Columns) -> Result<bool> {
        let Some(mut kept) = self.kept.take() else { return Ok(false) };
        if kept.rows.is_none() {
            kept.rows = self.project(&kept, columns).map(|rows| (rows, columns.selection()));
        }
        // Other columns may need other leaves of the remaining rows.
        let planned = kept.rows.as_mut().filter(|(_, selection)| *selection == columns.selection());
        let Some(((rows, _), state)) = planned.zip(self.states.get_mut(kept.section)) else {
            self.assemble(*kept)?;
            return Ok(true);
        };
        rows.fill(columns, kept.section, &mut state.history);
        if rows.next < rows.chunk.rows() {
            self.kept = Some(kept);
        } else {
            let found = rows.found;
            self.current = Some(Current { found, ..Current::new(kept.section, &kept.part, false) });
            self.close_part()?;
        }
        Ok(true)
    }

    /// Turns the part whose columns are kept, if any, into content and continues with its next record.
    #[cold]
    pub(super) fn assemble_kept(&mut self) -> Result<()> {
        self.kept.take().map_or(Ok(()), |kept| self.assemble(*kept))
    }

    fn assemble(&mut self, kept: KeptPart) -> Result<()> {
        let KeptPart { section, mut part, cells, rows } = kept;
        self.container.assemble(&mut part)?;
        if let Some(state) = self.states.get_mut(section) {
            state.history.cells = cells;
        }
        self.current = Some(Current::new(section, &part, false));
        let found = rows.map_or(0, |(rows, _)| rows.found);
        while self.current.as_ref().is_some_and(|current| current.found < found) {
            self.next_in_part()?;
            self.skip()?;
        }
        Ok(())
    }

    /// Determines the columns that are needed. Returns `None` if the part must be assembled.
    fn project(&mut self, kept: &KeptPart, columns: &Columns) -> Option<Rows> {
        if self.order != Order::Little {
            return None;
        }
        let mut chunk = self.container.columns(&kept.part)?;
        let unlabeled = |&column: &u16| chunk.column(column).is_some_and(|(column, _)| column.leaf.is_none());
        let unlabeled: Vec<u16> = columns_of(&chunk).filter(unlabeled).collect();
        self.container.load_columns(&kept.part, &mut chunk, &unlabeled)?;
        let next = self.apply_first_rows(kept, &chunk)?;
        let state = self.states.get(kept.section)?;
        let (positions, leaves, groups) = Planner { format: &self.format, state, chunk: &chunk, columns }.plan(next)?;
        let needed: Vec<u16> = leaves.iter().flat_map(ProjectedLeaf::columns).collect();
        self.container.load_columns(&kept.part, &mut chunk, &needed)?;
        let rows = Rows { chunk, next, found: 0, positions, leaves, groups };
        rows.are_complete().then_some(rows)
    }

    /// Applies the metadata records in the first rows. Returns the number of these rows, or `None` if they are not
    /// valid metadata.
    fn apply_first_rows(&mut self, kept: &KeptPart, chunk: &ChunkColumns) -> Option<usize> {
        let (mut content, mut cursors) = (Vec::new(), vec![0_usize; columns_of(chunk).count()]);
        let tag = self.format.tag(METADATA);
        let mut row = 0;
        while let Some(shape) = shape_of(chunk, row).and_then(|shape| chunk.shapes().get(shape)) {
            if tag_of(&shape.constant, &self.format) != Some(tag) {
                break;
            }
            let [Piece::Repeat { count, columns }] = &shape.pieces[..] else { return None };
            let ([bytes], Some((counts, _))) = (&columns[..], chunk.column(*count)) else { return None };
            let width = usize::from(counts.width);
            if width > 8 || chunk.column(*bytes)?.0.width != 1 {
                return None;
            }
            let mut take = |column: u16, length: usize| {
                let start = cursors.get_mut(usize::from(column))?;
                let end = start.checked_add(length)?;
                chunk.elements(column).get(std::mem::replace(start, end)..end)
            };
            let length = usize::try_from(Order::Little.read(take(*count, width)?)).ok()?;
            content.extend_from_slice(&shape.constant);
            content.extend_from_slice(take(*bytes, length)?);
            row += 1;
        }
        self.current = Some(Current::new(kept.section, &kept.part, false));
        let applied = self.start_run().and_then(|(mut run, _)| {
            run.data = &content;
            while run.apply_metadata().is_some() {}
            (run.position == content.len()).then_some(row)
        });
        self.current = None;
        applied
    }
}

/// Returns the numbers of a chunk's columns.
fn columns_of(chunk: &ChunkColumns) -> impl Iterator<Item = u16> + '_ {
    (0..u16::MAX).take_while(|&column| chunk.column(column).is_some())
}

/// Returns the shape of a row.
#[inline]
fn shape_of(chunk: &ChunkColumns, row: usize) -> Option<usize> {
    match chunk.shape_of_rows() {
        [] => (row < chunk.rows()).then_some(0),
        shapes => shapes.get(row).map(|&shape| shape.into()),
    }
}

/// Returns the tag if the constant bytes of a shape are a tag.
fn tag_of(constant: &[u8], format: &Format) -> Option<u32> {
    (constant.len() == usize::from(format.tag_width)).then(|| u32::try_from(Order::Little.read(constant)).ok())?
}

/// Determines the leaves to be decoded. Its methods return `None` if the chunk must be assembled.
struct Planner<'p> {
    format: &'p Format,
    state: &'p State,
    chunk: &'p ChunkColumns,
    columns: &'p Columns,
}

type Planned = (Vec<Option<u16>>, Vec<ProjectedLeaf>, Vec<Vec<usize>>);

impl Planner<'_> {
    /// Plans the rows after the first `rows`.
    fn plan(&self, rows: usize) -> Option<Planned> {
        let encoding = &self.state.encoding;
        let mut used = vec![false; self.chunk.shapes().len()];
        (rows..self.chunk.rows()).filter_map(|row| shape_of(self.chunk, row)).for_each(|shape| used[shape] = true);
        let (mut positions, mut records) = (Vec::new(), Vec::new());
        for (shape, is_used) in self.chunk.shapes().iter().zip(used) {
            let listed = encoding.listed(tag_of(&shape.constant, self.format)?)?;
            match listed.record {
                SECTION | METADATA if is_used => return None,
                // Comments are left out, so no later value may depend on them.
                COMMENT if is_used && self.has_state(listed.first as usize) => return None,
                SECTION | METADATA | COMMENT => positions.push(None),
                _ if !encoding.has_own_tag(listed) => return None,
                record => {
                    positions.push(Some(listed.position));
                    if !records.iter().any(|&(other, _)| other == record) {
                        records.push((record, listed));
                    }
                }
            }
        }
        let mut leaves = Vec::new();
        for (record, listed) in records {
            let record = self.format.records.get(usize::from(record))?;
            self.record(record, listed.position, listed.first as usize, &positions, &mut leaves)?;
        }
        // Leaves without history form a group of their own.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (index, leaf) in leaves.iter().enumerate() {
            let shares = |group: &&mut Vec<usize>| {
                let other = group.first().and_then(|&first| leaves.get(first));
                leaf.plan.is(HISTORY | PREVIOUS)
                    && other
                        .is_some_and(|other| other.plan.is(HISTORY | PREVIOUS) && other.plan.write == leaf.plan.write)
            };
            match groups.iter_mut().find(shares) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        Some((positions, leaves, groups))
    }

    /// Returns whether the decoding of a comment, whose plans begin at `first`, changes state.
    fn has_state(&self, first: usize) -> bool {
        let leaves = self.format.records.get(usize::from(COMMENT)).map_or(0, |record| record.leaves.len());
        (first..first + leaves).any(|index| {
            let strides = matches!(self.state.encoding.interpretation(index), Interpretation::SectionStride(..));
            strides
                || self.state.encoding.plan(index).is_none_or(|plan| {
                    !plan.is(BYTES) && plan.is(HISTORY | PREVIOUS | PREDICTED | STRIDED | REFERENCED)
                })
        })
    }

    /// Adds the leaves of a record.
    fn record(
        &self,
        record: &Record,
        position: u16,
        first: usize,
        positions: &[Option<u16>],
        leaves: &mut Vec<ProjectedLeaf>,
    ) -> Option<()> {
        let encoding = &self.state.encoding;
        let (repeated, optional) = repeated(record);
        let own: Vec<bool> = positions.iter().map(|of| *of == Some(position)).collect();
        let is_divided =
            self.chunk.shapes().iter().zip(&own).all(|(shape, own)| !own || self.is_divided(&shape.pieces));
        for (leaf, index) in (0..=u8::MAX).zip(first..first + record.leaves.len()).skip(record.first_value()) {
            let plan = *encoding.plan(index)?;
            let strides = matches!(encoding.interpretation(index), Interpretation::SectionStride(..));
            let is_number = !plan.is(BYTES);
            if is_number && (plan.is(PREDICTED | STRIDED | REFERENCED) || strides) {
                return None;
            }
            let has_history = is_number && plan.is(HISTORY | PREVIOUS);
            let is_wanted = self.columns.wants(encoding.section, position, leaf);
            if !is_wanted && !has_history {
                continue;
            }
            // The bytes of an array that ends at a byte include that byte.
            if !is_divided || matches!(record.leaves.get(usize::from(leaf))?.kind, LeafKind::Until(_) | LeafKind::Rest)
            {
                return None;
            }
            let is_repeated = *repeated.get(usize::from(leaf))?;
            let is_optional = *optional.get(usize::from(leaf))?;
            if let LeafKind::Computed(program) = &record.leaves.get(usize::from(leaf))?.kind {
                if is_repeated || is_optional || has_history {
                    return None;
                }
                let computed = Some(self.computed(record, program, first, &own)?);
                leaves.push(ProjectedLeaf {
                    position,
                    leaf,
                    plan,
                    column: None,
                    count: None,
                    shapes: own.clone(),
                    computed,
                });
                continue;
            }
            if is_number && plan.is(SPECIAL)
                || has_history && (is_repeated || plan.is(HISTORY) && !plan.uses_previous())
            {
                return None;
            }
            if is_number && plan.width.is_zero() {
                if is_repeated || is_optional {
                    return None;
                }
                leaves.push(ProjectedLeaf {
                    position,
                    leaf,
                    plan,
                    column: None,
                    count: None,
                    shapes: own.clone(),
                    computed: None,
                });
                continue;
            }
            let Some(number) = self.labeled(record.tag, leaf)? else {
                // No row contains an optional leaf.
                if is_optional && !has_history {
                    continue;
                }
                return None;
            };
            let (uses, how) = self.uses(number)?;
            let is_everywhere = uses.iter().zip(&own).all(|(uses, own)| uses == own);
            let is_own = uses.iter().zip(&own).all(|(uses, own)| !uses || *own);
            if !is_own || !is_everywhere && !is_optional {
                return None;
            }
            let width = usize::from(self.chunk.column(number)?.0.width);
            let count = match how? {
                Use::Element if is_repeated => return None,
                Use::Element => None,
                Use::Repeated(_) if is_number && !is_repeated || !is_number && (is_repeated || width != 1) => {
                    return None;
                }
                Use::Repeated(count) => {
                    // Each row that contains the leaf, and no other row, has a count.
                    if self.counts(count)? != uses {
                        return None;
                    }
                    Some(ColumnCursor { column: count, width: self.chunk.column(count)?.0.width.into(), next: 0 })
                }
            };
            if is_number && width != plan.width.bytes() {
                return None;
            }
            let column = Some(ColumnCursor { column: number, width, next: 0 });
            leaves.push(ProjectedLeaf { position, leaf, plan, column, count, shapes: uses, computed: None });
        }
        Some(())
    }

    /// Returns the column with a label, if there is one. Returns `None` if there are several.
    fn labeled(&self, tag: u32, leaf: u8) -> Option<Option<u16>> {
        let mut labeled = columns_of(self.chunk)
            .filter(|&number| self.chunk.column(number).is_some_and(|(column, _)| column.leaf == Some((tag, leaf))));
        let (first, second) = (labeled.next(), labeled.next());
        second.is_none().then_some(first)
    }

    /// Returns how to compute a count, if every row of the record, and no other row, stores the leaves in its expression.
    fn computed(&self, record: &Record, program: &[ExprOp], first: usize, own: &[bool]) -> Option<Computed> {
        let mut inputs = Vec::new();
        for op in program {
            let ExprOp::Leaf(leaf) = *op else { continue };
            let plan = *self.state.encoding.plan(first + usize::from(leaf))?;
            let column = self.labeled(record.tag, leaf)??;
            let width = usize::from(self.chunk.column(column)?.0.width);
            let (uses, how) = self.uses(column)?;
            if plan.is(SPECIAL | HISTORY | BYTES)
                || width != plan.width.bytes()
                || uses != own
                || how != Some(Use::Element)
            {
                return None;
            }
            inputs.push((leaf, plan, ColumnCursor { column, width, next: 0 }));
        }
        Some(Computed { program: program.to_vec(), inputs })
    }

    /// Returns whether all elements in the pieces of a record belong to leaves.
    fn is_divided(&self, pieces: &[Piece]) -> bool {
        let is_labeled = |column: &u16| self.chunk.column(*column).is_some_and(|(column, _)| column.leaf.is_some());
        pieces.iter().all(|piece| match piece {
            Piece::Element(column) => is_labeled(column),
            Piece::Repeat { columns, .. } => columns.iter().all(is_labeled),
        })
    }

    /// Returns which shapes use the elements of a column, and how. Each must use them in one piece and in the same way.
    fn uses(&self, column: u16) -> Option<(Vec<bool>, Option<Use>)> {
        let mut how = None;
        let mut shapes = Vec::new();
        for shape in self.chunk.shapes() {
            let mut used = 0;
            for piece in &shape.pieces {
                let (times, by) = match piece {
                    Piece::Element(element) => (usize::from(*element == column), Use::Element),
                    Piece::Repeat { count, columns } => {
                        (columns.iter().filter(|&&element| element == column).count(), Use::Repeated(*count))
                    }
                };
                if times > 0 && *how.get_or_insert(by) != by {
                    return None;
                }
                used += times;
            }
            if used > 1 {
                return None;
            }
            shapes.push(used == 1);
        }
        Some((shapes, how))
    }

    /// Returns which shapes use a column for one count. No shape may use it otherwise, except for repetitions with the
    /// same count.
    fn counts(&self, column: u16) -> Option<Vec<bool>> {
        let (elements, how) = self.uses(column)?;
        if how == Some(Use::Element) {
            return Some(elements);
        }
        let is_count = |piece: &&Piece| matches!(piece, Piece::Repeat { count, .. } if *count == column);
        let counts: Vec<usize> =
            self.chunk.shapes().iter().map(|shape| shape.pieces.iter().filter(is_count).count()).collect();
        (how.is_none() && counts.iter().all(|&count| count <= 1))
            .then(|| counts.into_iter().map(|count| count == 1).collect())
    }
}

/// Returns, for each leaf, whether it is repeated and whether it is optional.
fn repeated(record: &Record) -> (Vec<bool>, Vec<bool>) {
    let (mut repeated, mut optional) = (vec![false; record.leaves.len()], vec![false; record.leaves.len()]);
    for (at, step) in record.steps.iter().enumerate() {
        let Step::Repeat { count, end } = *step else { continue };
        let is_computed =
            record.leaves.get(usize::from(count)).is_some_and(|leaf| matches!(leaf.kind, LeafKind::Computed(_)));
        let flags = if is_computed { &mut optional } else { &mut repeated };
        for step in record.steps.iter().take(usize::from(end)).skip(at + 1) {
            if let Step::Number(leaf) | Step::Bytes(leaf) = *step
                && let Some(flag) = flags.get_mut(usize::from(leaf))
            {
                *flag = true;
            }
        }
    }
    (repeated, optional)
}

impl Rows {
    /// Returns whether each column has exactly the elements that the rows need.
    fn are_complete(&self) -> bool {
        let mut counts = vec![0_usize; self.positions.len()];
        (self.next..self.chunk.rows())
            .filter_map(|row| shape_of(&self.chunk, row))
            .for_each(|shape| counts[shape] += 1);
        self.leaves.iter().all(|leaf| {
            let elements = |cursor: &ColumnCursor| self.chunk.column(cursor.column).map_or(0, |(_, count)| count);
            let rows = leaf.rows(&counts);
            if let Some(computed) = &leaf.computed {
                return computed.inputs.iter().all(|(_, _, cursor)| elements(cursor) == rows)
                    && (0..rows).all(|row| computed.value(&self.chunk, row).is_some());
            }
            let Some(column) = &leaf.column else { return true };
            match &leaf.count {
                None => elements(column) == rows,
                Some(count) => {
                    let all = self.chunk.elements(count.column);
                    let sum = (0..rows).map(|n| count.get(all, n)).fold(0, u64::saturating_add);
                    elements(count) == rows && elements(column) as u64 == sum
                }
            }
        })
    }

    /// Adds rows to the columns until they are full or no rows remain.
    fn fill(&mut self, columns: &mut Columns, section: usize, state: &mut History) {
        let room = columns.room() as u64;
        let (first, records, order, weight) = columns.split(section);
        let mut counts = vec![0_usize; self.positions.len()];
        let start = self.next;
        let mut found = 0;
        #[allow(clippy::cast_possible_truncation, reason = "the number of types fits in 32 bits")]
        while found < room
            && let Some(shape) = shape_of(&self.chunk, self.next)
        {
            if let Some(position) = self.positions.get(shape).copied().flatten() {
                order.push(first as u32 + u32::from(position));
                found += 1;
            }
            if let Some(count) = counts.get_mut(shape) {
                *count += 1;
            }
            self.next += 1;
        }
        self.found += found;
        for (count, position) in counts.iter().zip(&self.positions) {
            if let Some(position) = position
                && let Some(records) = records.get_mut(first + usize::from(*position))
                && *count > 0
            {
                records.add(*count);
            }
        }
        let Self { chunk, leaves, groups, next, .. } = self;
        for group in groups {
            if let [only] = group[..] {
                let Some(leaf) = leaves.get_mut(only) else { continue };
                let column = records.get_mut(first + usize::from(leaf.position)).and_then(|r| leaf.column_in(r));
                *weight += leaf.fill(chunk, leaf.rows(&counts), column, &mut state.cells);
            } else {
                for shape in (start..*next).filter_map(|row| shape_of(chunk, row)) {
                    for &index in group.iter() {
                        let Some(leaf) = leaves.get_mut(index).filter(|leaf| leaf.is_in(shape)) else { continue };
                        let column =
                            records.get_mut(first + usize::from(leaf.position)).and_then(|r| leaf.column_in(r));
                        leaf.fill(chunk, 1, column, &mut state.cells);
                    }
                }
            }
        }
    }
}

impl ColumnCursor {
    /// Returns an element as a number. `elements` are the elements of the column.
    #[inline]
    fn get(&self, elements: &[u8], number: usize) -> u64 {
        let mask = u64::MAX >> (64 - 8 * self.width.clamp(1, 8));
        eight(elements, number * self.width).map_or(0, u64::from_le_bytes) & mask
    }
}

impl Computed {
    /// Returns the count in a row of the record, or `None` if it is invalid.
    fn value(&self, chunk: &ChunkColumns, row: usize) -> Option<u64> {
        evaluate(&self.program, |leaf| {
            let input = self.inputs.iter().find(|(input, ..)| *input == leaf);
            input.map_or(0, |(_, plan, cursor)| plain(cursor.get(chunk.elements(cursor.column), row), plan))
        })
    }
}

impl ProjectedLeaf {
    /// Returns the columns that the leaf needs.
    fn columns(&self) -> impl Iterator<Item = u16> + '_ {
        let inputs = self.computed.iter().flat_map(|computed| computed.inputs.iter().map(|(_, _, cursor)| cursor));
        [&self.column, &self.count].into_iter().flatten().chain(inputs).map(|cursor| cursor.column)
    }

    fn is_in(&self, shape: usize) -> bool {
        self.shapes.get(shape) == Some(&true)
    }

    /// Returns the number of rows that contain the leaf, given the number of rows of each shape.
    fn rows(&self, counts: &[usize]) -> usize {
        self.shapes.iter().zip(counts).map(|(is_in, count)| if *is_in { *count } else { 0 }).sum()
    }

    fn column_in<'r>(&self, records: &'r mut RecordColumns) -> Option<&'r mut Column> {
        records.leaf(self.leaf.into())
    }

    /// Decodes the values of this many rows and returns their weight.
    fn fill(&mut self, chunk: &ChunkColumns, rows: usize, to: Option<&mut Column>, cells: &mut [u64]) -> usize {
        let Self { plan, column, count, computed, .. } = self;
        if let Some(computed) = computed {
            // The first input's cursor counts the rows.
            let first = computed.inputs.first().map_or(0, |(_, _, cursor)| cursor.next);
            if let Some(Column::Numbers(to)) = to {
                to.extend((first..first + rows).map(|row| computed.value(chunk, row).unwrap_or(0)));
            }
            computed.inputs.iter_mut().for_each(|(_, _, cursor)| cursor.next += rows);
            return rows;
        }
        let Some(cursor) = column else {
            return fill_unstored(plan, rows, to, cells);
        };
        let elements = chunk.elements(cursor.column);
        let mut items = rows;
        if let Some(count) = count {
            let counts = chunk.elements(count.column);
            let first = count.next;
            count.next += rows;
            let lengths = (first..first + rows).map(|row| count.get(counts, row));
            if let Some(Column::Arrays(to)) = to {
                let before = cursor.next;
                for length in lengths {
                    #[allow(clippy::cast_possible_truncation, reason = "the sum is the number of elements")]
                    let end = cursor.next + length as usize;
                    to.push(elements.get(cursor.next..end).unwrap_or_default());
                    cursor.next = end;
                }
                return cursor.next - before + rows;
            }
            #[allow(clippy::cast_possible_truncation, reason = "the sum is the number of elements")]
            let sum = lengths.sum::<u64>() as usize;
            items = sum;
        }
        let range = cursor.next..cursor.next + items;
        cursor.next += items;
        match to {
            Some(Column::Arrays(to)) => {
                let width = cursor.width;
                range.for_each(|n| to.push(elements.get(n * width..(n + 1) * width).unwrap_or_default()));
                return items * (width + 1);
            }
            Some(Column::Numbers(to)) if !plan.is(HISTORY | PREVIOUS) => {
                to.extend(range.map(|n| plain(cursor.get(elements, n), plan)));
            }
            to => {
                let mut values = range.map(|n| {
                    let value = plain(cursor.get(elements, n), plan).wrapping_add(history(plan, cells));
                    note(value, plan, cells);
                    value
                });
                match to {
                    Some(Column::Numbers(to)) => to.extend(values),
                    _ => while values.next().is_some() {},
                }
            }
        }
        items
    }
}

/// Adds the values of a leaf that stores nothing.
fn fill_unstored(plan: &Plan, rows: usize, to: Option<&mut Column>, cells: &mut [u64]) -> usize {
    if !plan.is(HISTORY | PREVIOUS) {
        if let Some(Column::Numbers(to)) = to {
            to.extend_uniform(plain(0, plan), rows);
        }
        return rows;
    }
    let mut values = (0..rows).map(|_| {
        let value = plain(0, plan).wrapping_add(history(plan, cells));
        note(value, plan, cells);
        value
    });
    match to {
        Some(Column::Numbers(to)) => to.extend(values),
        _ => while values.next().is_some() {},
    }
    rows
}
