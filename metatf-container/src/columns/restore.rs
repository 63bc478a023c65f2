//! Reverses filter 4.

use super::directory::{Directory, StoredColumn};
use super::split::last;
use super::{Piece, RowShape};
use crate::codec::Failure;
use crate::filter;
use std::ops::Range;

/// Decompresses a stream, filling the output exactly.
pub(crate) type Unpack<'u> = dyn FnMut(&[u8], &mut [u8]) -> Result<(), Failure> + 'u;

/// Number of bytes that are copied at once for an element.
const COPIED: usize = 8;

/// Restores the content, whose declared length is that of `out`. Uses `scratch` for at most three times as many bytes.
pub(crate) fn restore(
    payload: &[u8],
    unpack: &mut Unpack<'_>,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), Failure> {
    let directory = Directory::read(payload, out.len()).map_err(Failure::Payload)?;
    let shapes = unpack_shapes(&directory, payload, unpack)?;
    let length: usize = directory.columns.iter().map(|column| column.count * column.width()).sum();
    scratch.clear();
    scratch.resize(length + COPIED, 0);
    let mut cursors = Vec::with_capacity(directory.columns.len());
    let (mut start, mut planes) = (0, Vec::new());
    for column in &directory.columns {
        let end = start + column.count * column.width();
        unpack_column(column, payload, unpack, &mut planes, scratch.get_mut(start..end).unwrap_or_default())?;
        cursors.push(Cursor { at: start, end, width: column.width() });
        start = end;
    }
    let mut assembly = Assembly { elements: scratch, cursors, out, at: 0 };
    assembly.rows(&directory, &shapes).map_err(Failure::Payload)
}

/// Returns the shape of each row. The result is empty if there is only one shape.
pub(super) fn unpack_shapes(
    directory: &Directory,
    payload: &[u8],
    unpack: &mut Unpack<'_>,
) -> Result<Vec<u8>, Failure> {
    let mut shapes = Vec::new();
    if directory.shapes.len() > 1 {
        shapes.resize(directory.rows, 0);
        unpack_stream(payload, &directory.shape_stream, unpack, &mut shapes)?;
    }
    Ok(shapes)
}

/// Decompresses a stream. Equal bytes are stored as one byte.
fn unpack_stream(payload: &[u8], range: &Range<usize>, unpack: &mut Unpack<'_>, out: &mut [u8]) -> Result<(), Failure> {
    let stored = payload.get(range.clone()).unwrap_or_default();
    match *stored {
        _ if stored.len() > out.len() => return Err(Failure::Payload("a stream is longer than its column")),
        [byte] => out.fill(byte),
        _ if stored.len() == out.len() => out.copy_from_slice(stored),
        _ => unpack(stored, out).map_err(|failure| match failure {
            Failure::Length => Failure::Payload("a stream is shorter than its column"),
            failure => failure,
        })?,
    }
    Ok(())
}

/// Decompresses the elements of a column.
pub(super) fn unpack_column(
    column: &StoredColumn,
    payload: &[u8],
    unpack: &mut Unpack<'_>,
    planes: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), Failure> {
    if let [stream] = &column.streams[..] {
        return unpack_stream(payload, stream, unpack, out);
    }
    planes.clear();
    planes.resize(out.len(), 0);
    for (n, stream) in column.streams.iter().enumerate() {
        let plane = planes.get_mut(n * column.count..(n + 1) * column.count).unwrap_or_default();
        unpack_stream(payload, stream, unpack, plane)?;
    }
    filter::restore(planes, column.width(), out);
    Ok(())
}

/// The elements of a column that have not been used yet.
struct Cursor {
    at: usize,
    end: usize,
    width: usize,
}

/// The assembly of content from elements.
struct Assembly<'e, 'o> {
    /// The elements of all columns, followed by [`COPIED`] bytes.
    elements: &'e [u8],
    cursors: Vec<Cursor>,
    out: &'o mut [u8],
    at: usize,
}

const TOO_FEW: &str = "a column has too few elements";
const TOO_LONG: &str = "the rows are longer than the content";

impl Assembly<'_, '_> {
    fn rows(&mut self, directory: &Directory, shapes: &[u8]) -> Result<(), &'static str> {
        match &directory.shapes[..] {
            [only] => (0..directory.rows).try_for_each(|_| self.row(only))?,
            all => {
                for &shape in shapes {
                    self.row(all.get(usize::from(shape)).ok_or("a row has a shape that does not exist")?)?;
                }
            }
        }
        if self.at != self.out.len() {
            return Err("the rows are shorter than the content");
        }
        if self.cursors.iter().any(|cursor| cursor.at != cursor.end) {
            return Err("a column has too many elements");
        }
        Ok(())
    }

    #[inline(always)]
    fn row(&mut self, shape: &RowShape) -> Result<(), &'static str> {
        self.append(&shape.constant)?;
        for (n, piece) in shape.pieces.iter().enumerate() {
            match piece {
                Piece::Element(column) => self.element(*column)?,
                Piece::Repeat { count, columns } => self.repeat(shape.contains(n, *count), *count, columns)?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn append(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let place = self.out.get_mut(self.at..).and_then(|out| out.get_mut(..bytes.len())).ok_or(TOO_LONG)?;
        // A loop is faster than a call of `memcpy` for the usual single byte.
        place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        self.at += bytes.len();
        Ok(())
    }

    /// Appends the next element of a column.
    #[inline(always)]
    fn element(&mut self, column: u16) -> Result<(), &'static str> {
        let cursor = self.cursors.get_mut(usize::from(column)).ok_or(TOO_FEW)?;
        let (from, width) = (cursor.at, cursor.width);
        if from + width > cursor.end {
            return Err(TOO_FEW);
        }
        cursor.at += width;
        let place = self.out.get_mut(self.at..).unwrap_or_default();
        // Most elements are short, and most are far from the end.
        if width <= COPIED
            && let (Some(bytes), Some(place)) =
                (self.elements.get(from..).and_then(<[u8]>::first_chunk::<COPIED>), place.first_chunk_mut())
        {
            *place = *bytes;
        } else {
            let bytes = self.elements.get(from..from + width).ok_or(TOO_FEW)?;
            place.get_mut(..width).ok_or(TOO_LONG)?.copy_from_slice(bytes);
        }
        self.at += width;
        Ok(())
    }

    /// Appends a repetition. If `is_element` is set, the count is the last element of its column; otherwise, it is the
    /// next.
    fn repeat(&mut self, is_element: bool, count: u16, columns: &[u16]) -> Result<(), &'static str> {
        let cursor = self.cursors.get_mut(usize::from(count)).ok_or(TOO_FEW)?;
        if !is_element {
            cursor.at += cursor.width;
            if cursor.at > cursor.end {
                return Err(TOO_FEW);
            }
        }
        let count = self.elements.get(..cursor.at).and_then(|elements| last(elements, cursor.width)).ok_or(TOO_FEW)?;
        let count = usize::try_from(count).map_err(|_| TOO_LONG)?;
        if let [column] = *columns
            && let Some(cursor) = self.cursors.get_mut(usize::from(column))
        {
            let length = count.checked_mul(cursor.width).ok_or(TOO_LONG)?;
            let bytes = self.elements.get(cursor.at..cursor.end).and_then(|rest| rest.get(..length)).ok_or(TOO_FEW)?;
            let place = self.out.get_mut(self.at..).and_then(|out| out.get_mut(..length)).ok_or(TOO_LONG)?;
            place.copy_from_slice(bytes);
            cursor.at += length;
            self.at += length;
            return Ok(());
        }
        // Every element has at least one byte, so the loop ends at the end of the content.
        for _ in 0..count {
            for &column in columns {
                self.element(column)?;
            }
        }
        Ok(())
    }
}
