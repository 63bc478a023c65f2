//! Reads the directory of a chunk with filter 4: its columns, its shapes, and the lengths of its streams.

use super::{Column, MOST_COLUMNS, MOST_PIECES, MOST_SHAPES, Piece, RowShape, streams_of};
use crate::leb128::read_short;
use std::ops::Range;

/// The columns, shapes and streams of a chunk.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) columns: Vec<StoredColumn>,
    pub(super) shapes: Vec<RowShape>,
    /// Number of rows.
    pub(super) rows: usize,
    /// The stored bytes of the stream with the shape of each row, if there are several shapes.
    pub(super) shape_stream: Range<usize>,
}

/// A column and its streams.
#[derive(Debug)]
pub(super) struct StoredColumn {
    pub(super) column: Column,
    /// Number of elements.
    pub(super) count: usize,
    /// The stored bytes of each stream, as ranges of the payload.
    pub(super) streams: Vec<Range<usize>>,
    /// Whether the column contains only counts.
    pub(super) counts: bool,
}

impl StoredColumn {
    pub(super) fn width(&self) -> usize {
        self.column.width.into()
    }
}

type Parsed<T> = Result<T, &'static str>;

impl Directory {
    /// Reads the directory of a payload whose content has `raw_len` bytes. All sizes in the result are limited by
    /// `raw_len`, except for the sizes of columns and shapes, which are limited by the payload.
    pub(super) fn read(payload: &[u8], raw_len: usize) -> Parsed<Self> {
        let mut rest = payload;
        let columns = read_columns(&mut rest)?;
        let shapes = read_shapes(&mut rest, &columns)?;
        let rows = read_short(&mut rest)?;
        if rows > raw_len {
            return Err("there are more rows than bytes");
        }
        if shapes.is_empty() && rows > 0 {
            return Err("rows have no shape");
        }
        let shape_len = if shapes.len() > 1 { read_short(&mut rest)? } else { 0 };
        let mut total = 0_usize;
        let mut sizes = Vec::with_capacity(columns.len());
        for column in &columns {
            let count = read_short(&mut rest)?;
            total = total.saturating_add(count.saturating_mul(column.width.into()));
            let mut streams = [0; 8];
            for stream in streams.iter_mut().take(streams_of(column.width)) {
                *stream = read_short(&mut rest)?;
            }
            sizes.push((count, streams));
        }
        if total > raw_len.saturating_mul(2) {
            return Err("the columns are longer than the content allows");
        }
        let mut start = payload.len() - rest.len();
        let mut take = |length: usize| {
            let end = start.checked_add(length).filter(|&end| end <= payload.len()).ok_or("a stream is truncated")?;
            Ok::<_, &'static str>(std::mem::replace(&mut start, end)..end)
        };
        let shape_stream = take(shape_len)?;
        let counts = columns_of_counts(&shapes, columns.len());
        let mut stored = Vec::with_capacity(columns.len());
        for ((&column, (count, lengths)), counts) in columns.iter().zip(sizes).zip(counts) {
            let streams: Parsed<Vec<_>> = lengths.into_iter().take(streams_of(column.width)).map(&mut take).collect();
            stored.push(StoredColumn { column, count, streams: streams?, counts });
        }
        if start != payload.len() {
            return Err("there are bytes after the last stream");
        }
        check_counts(&shapes, &stored)?;
        Ok(Self { columns: stored, shapes, rows, shape_stream })
    }
}

fn read_columns(rest: &mut &[u8]) -> Parsed<Vec<Column>> {
    let count = read_short(rest)?;
    if count > MOST_COLUMNS {
        return Err("there are more than 4096 columns");
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        let (&width, after) = rest.split_first().ok_or("a column is truncated")?;
        *rest = after;
        if width == 0 {
            return Err("a column has elements without bytes");
        }
        let leaf = match read_short(rest)? {
            0 => None,
            leaf => {
                let leaf = u8::try_from(leaf - 1).map_err(|_| "a column has a leaf with a number above 255")?;
                Some((u32::try_from(read_short(rest)?).map_err(|_| "a column has a tag of more than 32 bits")?, leaf))
            }
        };
        columns.push(Column { leaf, width });
    }
    Ok(columns)
}

fn read_shapes(rest: &mut &[u8], columns: &[Column]) -> Parsed<Vec<RowShape>> {
    let count = read_short(rest)?;
    if count > MOST_SHAPES {
        return Err("there are more than 256 shapes");
    }
    let column = |number: usize| match u16::try_from(number) {
        Ok(column) if number < columns.len() => Ok(column),
        _ => Err("a shape names a column that does not exist"),
    };
    let mut shapes = Vec::new();
    for _ in 0..count {
        let length = read_short(rest)?;
        let (constant, after) = rest.split_at_checked(length).ok_or("a shape is truncated")?;
        *rest = after;
        let mut pieces = Vec::new();
        let length = read_short(rest)?;
        if length > MOST_PIECES {
            return Err("a shape has more than 256 pieces");
        }
        for _ in 0..length {
            let piece = read_short(rest)?;
            let first = column(piece / 2)?;
            pieces.push(if piece % 2 == 0 {
                Piece::Element(first)
            } else {
                let mut columns = Vec::new();
                for _ in 0..read_short(rest)? {
                    columns.push(column(read_short(rest)?)?);
                }
                Piece::Repeat { count: first, columns }
            });
        }
        if constant.is_empty() && !pieces.iter().any(|piece| matches!(piece, Piece::Element(_))) {
            return Err("a row can have no bytes");
        }
        shapes.push(RowShape { constant: constant.to_vec(), pieces });
    }
    Ok(shapes)
}

/// Returns whether each column occurs in pieces, but only as the source of counts.
fn columns_of_counts(shapes: &[RowShape], columns: usize) -> Vec<bool> {
    let (mut sources, mut elements) = (vec![false; columns], vec![false; columns]);
    let note = |of: &mut Vec<bool>, column: u16| of.get_mut(usize::from(column)).into_iter().for_each(|of| *of = true);
    for piece in shapes.iter().flat_map(|shape| &shape.pieces) {
        match piece {
            Piece::Element(column) => note(&mut elements, *column),
            Piece::Repeat { count, columns } => {
                note(&mut sources, *count);
                columns.iter().for_each(|&column| note(&mut elements, column));
            }
        }
    }
    sources.into_iter().zip(elements).map(|(source, element)| source && !element).collect()
}

/// Checks that each count is an element of an earlier piece or comes from a column that contains only counts.
fn check_counts(shapes: &[RowShape], columns: &[StoredColumn]) -> Parsed<()> {
    for shape in shapes {
        for (n, piece) in shape.pieces.iter().enumerate() {
            let Piece::Repeat { count, columns: repeated } = piece else { continue };
            let column = columns.get(usize::from(*count));
            if repeated.is_empty() || column.is_none_or(|column| column.width() > 8) {
                return Err("a repetition has no elements, or its count has more than 8 bytes");
            }
            if !shape.contains(n, *count) && !column.is_some_and(|column| column.counts) {
                return Err("a count is neither in an earlier piece nor in a column of counts");
            }
        }
    }
    Ok(())
}
