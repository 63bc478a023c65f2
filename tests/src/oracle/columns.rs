//! Filter 4, columns, and the truth of its labels (spec 5.2).

use super::filters::{Rest, decompressed};
use super::{Rule, Rules, Wrong};
use metatf::container::Order;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The label of a column: a tag and a leaf number.
pub(super) type Label = (usize, usize);

/// A row of restored content.
#[derive(Clone)]
pub(super) struct Laid {
    /// Bytes of the row in the content.
    pub(super) bytes: Range<usize>,
    /// Number of constant bytes, with which the row begins.
    pub(super) constant: usize,
    /// Whether all elements belong to columns with labels.
    pub(super) divided: bool,
    /// Elements of columns with labels, as ranges of the content.
    pub(super) labelled: Vec<(Label, Range<usize>)>,
}

/// Content restored from columns.
#[derive(Clone, Default)]
pub(super) struct Restored {
    pub(super) content: Vec<u8>,
    pub(super) rows: Vec<Laid>,
    /// All labels, including those of columns without elements.
    pub(super) labels: HashSet<Label>,
}

struct Column {
    width: usize,
    label: Option<Label>,
    /// Elements, one after the other.
    elements: Vec<u8>,
    /// Number of elements taken.
    taken: usize,
}

impl Column {
    fn next(&mut self) -> Result<&[u8], Wrong> {
        let at = self.taken * self.width;
        self.taken += 1;
        Ok(self.elements.get(at..at + self.width).ok_or("too few elements of a column")?)
    }
}

enum Piece {
    Element(usize),
    Repetition { count: usize, columns: Vec<usize> },
}

struct Shape<'p> {
    constant: &'p [u8],
    pieces: Vec<Piece>,
}

impl Shape<'_> {
    /// Returns whether a piece before `at` is an element of a column.
    fn has_before(&self, at: usize, column: usize) -> bool {
        self.pieces[..at].iter().any(|piece| matches!(piece, Piece::Element(c) if *c == column))
    }
}

/// Undoes filter 4.
pub(super) fn restored(payload: &[u8], codec: u8, len: usize, order: Order, rules: Rules) -> Result<Restored, Wrong> {
    let mut rest = Rest(payload);
    let mut columns = read_columns(&mut rest, rules)?;
    let shapes = read_shapes(&mut rest, columns.len(), rules)?;
    check_counts(&columns, &shapes, rules)?;
    let rows = rest.leb128(rules)?;
    if rows > len {
        return Err("more rows than bytes".into());
    }
    let shape_stream = if shapes.len() > 1 { rest.leb128(rules)? } else { 0 };
    let mut lengths = Vec::new();
    let mut together = 0_usize;
    for column in &columns {
        let elements = rest.leb128(rules)?;
        together = together.saturating_add(elements.saturating_mul(column.width));
        let streams = streams(column.width, rules);
        lengths.push((elements, (0..streams).map(|_| rest.leb128(rules)).collect::<Result<Vec<_>, _>>()?));
    }
    rules.demand(Rule::ColumnsBounded, together <= 2 * len, "columns of more than twice the content")?;
    if together > 1 << 28 {
        return Err("columns of more than any chunk has".into());
    }
    let shape_of = if shapes.len() > 1 { stream(&mut rest, shape_stream, codec, rows, rules)? } else { vec![0; rows] };
    for (column, (elements, lengths)) in columns.iter_mut().zip(lengths) {
        let n = elements * column.width / lengths.len();
        let streams: Vec<_> =
            lengths.into_iter().map(|length| stream(&mut rest, length, codec, n, rules)).collect::<Result<_, _>>()?;
        let count = streams.len();
        column.elements = (0..n * count).map(|at| streams[at % count][at / count]).collect();
    }
    rules.demand(Rule::PayloadUsedUp, rest.0.is_empty(), "bytes of the payload left over")?;
    let labels = columns.iter().filter_map(|column| column.label).collect();
    let mut out = Restored { labels, ..Restored::default() };
    for shape in shape_of {
        let known = shapes.get(usize::from(shape));
        rules.demand(Rule::ShapesKnown, known.is_some(), "a shape that does not exist")?;
        let Some(shape) = known.or(shapes.last()) else { return Err("a row without a shape".into()) };
        out.row(shape, &mut columns, order, rules)?;
        if out.content.len() > len {
            return Err("content over its length".into());
        }
    }
    let used = columns.iter().all(|column| column.taken * column.width == column.elements.len());
    rules.demand(Rule::ElementsUsedUp, used, "elements of a column left over")?;
    Ok(out)
}

fn read_columns(rest: &mut Rest<'_>, rules: Rules) -> Result<Vec<Column>, Wrong> {
    let count = rest.leb128(rules)?;
    rules.demand(Rule::MostColumns, count <= 4096, "over 4,096 columns")?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let width = usize::from(rest.take(1)?[0]);
        rules.demand(Rule::ColumnWidths, width > 0, "a column without a width")?;
        let label = match rest.leb128(rules)? {
            0 => None,
            leaf => {
                let tag = rest.leb128(rules)?;
                let right = leaf <= 256 && u32::try_from(tag).is_ok();
                rules.demand(Rule::LabelBounded, right, "a label of a leaf over 255 or a tag over 32 bits")?;
                Some((tag, leaf - 1))
            }
        };
        columns.push(Column { width, label, elements: Vec::new(), taken: 0 });
    }
    Ok(columns)
}

fn read_shapes<'p>(rest: &mut Rest<'p>, columns: usize, rules: Rules) -> Result<Vec<Shape<'p>>, Wrong> {
    let count = rest.leb128(rules)?;
    rules.demand(Rule::MostShapes, count <= 256, "over 256 shapes")?;
    let known = |column: usize| {
        rules.demand(Rule::ColumnsKnown, column < columns, "a column that does not exist")?;
        if columns == 0 { Err("no column".into()) } else { Ok::<_, Wrong>(column.min(columns - 1)) }
    };
    let mut shapes = Vec::new();
    for _ in 0..count {
        let length = rest.leb128(rules)?;
        let constant = rest.take(length)?;
        let mut pieces = Vec::new();
        let length = rest.leb128(rules)?;
        rules.demand(Rule::MostPieces, length <= 256, "over 256 pieces")?;
        for _ in 0..length {
            let p = rest.leb128(rules)?;
            let column = known(p / 2)?;
            if p % 2 == 0 {
                pieces.push(Piece::Element(column));
                continue;
            }
            let repeated = rest.leb128(rules)?;
            rules.demand(Rule::RepetitionNotEmpty, repeated > 0, "a repetition of nothing")?;
            let columns = (0..repeated).map(|_| known(rest.leb128(rules)?)).collect::<Result<_, _>>()?;
            pieces.push(Piece::Repetition { count: column, columns });
        }
        let stores = !constant.is_empty() || pieces.iter().any(|piece| matches!(piece, Piece::Element(_)));
        rules.demand(Rule::ShapeNotEmpty, stores, "a shape that may store nothing")?;
        shapes.push(Shape { constant, pieces });
    }
    Ok(shapes)
}

/// Checks the columns that provide counts.
fn check_counts(columns: &[Column], shapes: &[Shape<'_>], rules: Rules) -> Result<(), Wrong> {
    let (mut sources, mut others) = (HashSet::new(), HashSet::new());
    for shape in shapes {
        for (at, piece) in shape.pieces.iter().enumerate() {
            match piece {
                Piece::Element(column) => {
                    others.insert(*column);
                }
                Piece::Repetition { count, columns: repeated } => {
                    rules.demand(Rule::CountWidthTo8, columns[*count].width <= 8, "a count of more than 8 bytes")?;
                    others.extend(repeated);
                    if !shape.has_before(at, *count) {
                        sources.insert(*count);
                    }
                }
            }
        }
    }
    rules.demand(Rule::CountsOnly, sources.is_disjoint(&others), "a column of counts that is also content")
}

/// Returns the number of streams of a column.
fn streams(width: usize, rules: Rules) -> usize {
    match width {
        2..=8 if rules.holds(Rule::StreamPerByte) => width,
        9.. if !rules.holds(Rule::WideInOneStream) => width,
        _ => 1,
    }
}

/// Reads a stream of `n` bytes.
fn stream(rest: &mut Rest<'_>, length: usize, codec: u8, n: usize, rules: Rules) -> Result<Vec<u8>, Wrong> {
    let stored = rest.take(length)?;
    rules.demand(Rule::StreamsShorter, length <= n, "a stream longer than its bytes")?;
    if length == n {
        return Ok(stored.to_vec());
    }
    if let ([byte], true) = (stored, rules.holds(Rule::OneByteRepeats)) {
        return Ok(vec![*byte; n]);
    }
    let mut bytes = decompressed(codec, stored, n, rules)?;
    rules.demand(Rule::StreamLength, bytes.len() == n, "a stream of another length")?;
    bytes.resize(n, 0);
    Ok(bytes)
}

impl Restored {
    fn row(&mut self, shape: &Shape<'_>, columns: &mut [Column], order: Order, rules: Rules) -> Result<(), Wrong> {
        let start = self.content.len();
        self.content.extend(shape.constant);
        let (mut divided, mut labelled) = (true, Vec::new());
        let mut last: HashMap<usize, Vec<u8>> = HashMap::new();
        for (at, piece) in shape.pieces.iter().enumerate() {
            let (times, repeated) = match piece {
                Piece::Element(column) => (1, std::slice::from_ref(column)),
                Piece::Repetition { count, columns: repeated } => {
                    let earlier = shape.has_before(at, *count) && rules.holds(Rule::CountOfEarlierPiece);
                    let bytes = if earlier { last[count].clone() } else { columns[*count].next()?.to_vec() };
                    let order = if rules.holds(Rule::CountLittleEndian) { Order::Little } else { order };
                    (super::container::integer(&bytes, order), &repeated[..])
                }
            };
            if repeated.is_empty() {
                continue;
            }
            for _ in 0..times {
                for &column in repeated {
                    let from = self.content.len();
                    self.content.extend(columns[column].next()?);
                    divided &= columns[column].label.is_some();
                    labelled.extend(columns[column].label.map(|label| (label, from..self.content.len())));
                    if rules.holds(Rule::LastElementCounts) || !last.contains_key(&column) {
                        last.insert(column, self.content[from..].to_vec());
                    }
                }
            }
        }
        self.rows.push(Laid { bytes: start..self.content.len(), constant: shape.constant.len(), divided, labelled });
        Ok(())
    }
}

/// A complete data record or comment: its bytes in the content, and those of each leaf.
pub(super) struct Found {
    pub(super) bytes: Range<usize>,
    pub(super) stored: Vec<(usize, Range<usize>)>,
}

/// Checks the promise of labels. `records` are all data records and comments of the content, and `tag_of` returns the
/// tag if the bytes are the tag of such a record.
pub(super) fn check_labels(
    restored: &Restored,
    records: &[Found],
    mut tag_of: impl FnMut(&[u8]) -> Option<usize>,
) -> Result<(), Wrong> {
    let content = &restored.content;
    for row in &restored.rows {
        let tag = tag_of(&content[row.bytes.start..row.bytes.start + row.constant]);
        if row.labelled.iter().any(|((of, _), _)| !row.divided || Some(*of) != tag) {
            return Err(format!("offset {}: an element with a label that is not of the row", row.bytes.start));
        }
        let Some(tag) = tag else { continue };
        let record = records.binary_search_by_key(&row.bytes.start, |record| record.bytes.start);
        let record = record.ok().map(|at| &records[at]).filter(|record| record.bytes == row.bytes);
        let record = record.ok_or_else(|| format!("offset {}: a row that is not one record", row.bytes.start))?;
        if !row.divided {
            continue;
        }
        for &(of, leaf) in restored.labels.iter().filter(|(of, _)| *of == tag) {
            let labelled = row.labelled.iter().filter(|(label, _)| *label == (of, leaf)).map(|(_, bytes)| bytes);
            let stored = record.stored.iter().filter(|(of, _)| *of == leaf).map(|(_, bytes)| bytes);
            let bytes = |range: &Range<usize>| content[range.clone()].to_vec();
            if !labelled.flat_map(bytes).eq(stored.flat_map(bytes)) {
                return Err(format!("offset {}: elements that are not leaf {leaf}", row.bytes.start));
            }
        }
    }
    Ok(())
}
