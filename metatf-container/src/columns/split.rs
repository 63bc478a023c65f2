//! Applies filter 4.

use super::{Column, MOST_RATIO, Piece, RowShape, Rows, streams_of};
use crate::Result;
use crate::leb128;

/// Compresses a stream into an empty vector. Returns false if the result is not shorter.
pub(crate) type Pack<'p> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool> + 'p;

/// Splits content into the streams of its columns and writes the filtered, compressed payload to `out`. Returns false if
/// the rows do not describe the content, or if the filter cannot store it.
pub(crate) fn split(raw: &[u8], rows: &Rows, pack: &mut Pack<'_>, out: &mut Vec<u8>) -> Result<bool> {
    out.clear();
    let Some(elements) = distribute(raw, rows) else { return Ok(false) };
    write_directory(rows, out);
    let mut payload = Vec::new();
    let mut streams = Streams { payload: &mut payload, packed: Vec::new(), pack };
    write_number(rows.rows.len(), out);
    if rows.shapes.len() > 1 {
        write_number(streams.add(&rows.rows)?, out);
    }
    let (mut plane, mut total) = (Vec::new(), 0);
    for (column, elements) in rows.columns.iter().zip(&elements) {
        total += elements.len();
        write_number(elements.len() / usize::from(column.width), out);
        match streams_of(column.width) {
            1 => write_number(streams.add(elements)?, out),
            width => {
                for byte in 0..width {
                    plane.clear();
                    plane.extend(elements.iter().skip(byte).step_by(width));
                    write_number(streams.add(&plane)?, out);
                }
            }
        }
    }
    out.append(&mut payload);
    let long_enough = (out.len() as u64).saturating_mul(MOST_RATIO) >= raw.len() as u64;
    Ok(long_enough && total <= raw.len().saturating_mul(2) && rows.rows.len() <= raw.len())
}

/// The streams of a chunk.
struct Streams<'s, 'p> {
    payload: &'s mut Vec<u8>,
    packed: Vec<u8>,
    pack: &'s mut Pack<'p>,
}

impl Streams<'_, '_> {
    /// Adds a stream and returns its stored length.
    fn add(&mut self, stream: &[u8]) -> Result<usize> {
        let before = self.payload.len();
        match stream {
            // A stream of equal bytes is stored as one byte.
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) => self.payload.push(*first),
            _ => {
                self.packed.clear();
                let shorter = (self.pack)(stream, &mut self.packed)? && (2..stream.len()).contains(&self.packed.len());
                self.payload.extend_from_slice(if shorter { &self.packed } else { stream });
            }
        }
        Ok(self.payload.len() - before)
    }
}

fn write_number(number: usize, out: &mut Vec<u8>) {
    leb128::write(number as u64, out);
}

/// Writes the columns and the shapes.
fn write_directory(rows: &Rows, out: &mut Vec<u8>) {
    write_number(rows.columns.len(), out);
    for &Column { leaf, width } in &rows.columns {
        out.push(width);
        match leaf {
            Some((tag, leaf)) => {
                write_number(usize::from(leaf) + 1, out);
                write_number(tag as usize, out);
            }
            None => out.push(0),
        }
    }
    write_number(rows.shapes.len(), out);
    for RowShape { constant, pieces } in &rows.shapes {
        write_number(constant.len(), out);
        out.extend_from_slice(constant);
        write_number(pieces.len(), out);
        for piece in pieces {
            match piece {
                Piece::Element(column) => write_number(usize::from(*column) * 2, out),
                Piece::Repeat { count, columns } => {
                    write_number(usize::from(*count) * 2 + 1, out);
                    write_number(columns.len(), out);
                    columns.iter().for_each(|&column| write_number(column.into(), out));
                }
            }
        }
    }
}

/// Returns the elements of each column, or `None` if the rows do not describe the content.
fn distribute(raw: &[u8], rows: &Rows) -> Option<Vec<Vec<u8>>> {
    let mut columns: Vec<(usize, Vec<u8>)> =
        rows.columns.iter().map(|column| (usize::from(column.width), Vec::new())).collect();
    let mut counts = rows.counts.iter();
    let mut at = 0;
    // Appends the next bytes of the content to a column.
    let take = |columns: &mut Vec<(usize, Vec<u8>)>, column: u16, at: &mut usize| {
        let (width, elements) = columns.get_mut(usize::from(column))?;
        elements.extend_from_slice(raw.get(*at..*at + *width)?);
        *at += *width;
        Some(())
    };
    for &shape in &rows.rows {
        let shape = rows.shapes.get(usize::from(shape))?;
        at += shape.constant.len();
        for (n, piece) in shape.pieces.iter().enumerate() {
            match piece {
                Piece::Element(column) => take(&mut columns, *column, &mut at)?,
                Piece::Repeat { count, columns: repeated } => {
                    let (width, elements) = columns.get_mut(usize::from(*count))?;
                    let count = if shape.contains(n, *count) {
                        last(elements, *width)?
                    } else {
                        let count = *counts.next()?;
                        elements.extend_from_slice(count.to_le_bytes().get(..*width)?);
                        count.into()
                    };
                    if let ([column], 1) = (&repeated[..], count_bytes(&columns, repeated)) {
                        let (_, elements) = columns.get_mut(usize::from(*column))?;
                        let end = at.checked_add(usize::try_from(count).ok()?)?;
                        elements.extend_from_slice(raw.get(at..end)?);
                        at = end;
                        continue;
                    }
                    for _ in 0..count {
                        for &column in repeated {
                            take(&mut columns, column, &mut at)?;
                        }
                    }
                }
            }
        }
    }
    (at == raw.len() && counts.next().is_none()).then(|| columns.into_iter().map(|(_, elements)| elements).collect())
}

/// Returns the size of one repetition in bytes.
fn count_bytes(columns: &[(usize, Vec<u8>)], repeated: &[u16]) -> usize {
    repeated.iter().filter_map(|&column| columns.get(usize::from(column))).map(|(width, _)| width).sum()
}

/// Returns the last element of a column as a number.
pub(super) fn last(elements: &[u8], width: usize) -> Option<u64> {
    let element = elements.get(elements.len().checked_sub(width)?..)?;
    Some(element.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte)))
}
