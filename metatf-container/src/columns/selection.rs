//! Some of the columns of a chunk, for readers that need only some leaves.

use super::directory::Directory;
use super::restore::{Unpack, unpack_column, unpack_shapes};
use super::{Column, RowShape};
use crate::codec::Failure;

/// Number of bytes after the last element.
const PADDING: usize = 7;

/// The columns of a chunk, whose elements are decompressed on request.
#[derive(Debug)]
pub struct ChunkColumns {
    directory: Directory,
    /// The shape of each row, if there are several shapes.
    shapes: Vec<u8>,
    /// The elements of the columns that were requested.
    elements: Vec<Option<Vec<u8>>>,
}

impl ChunkColumns {
    pub(crate) fn new(payload: &[u8], raw_len: usize, unpack: &mut Unpack<'_>) -> Result<Self, Failure> {
        let directory = Directory::read(payload, raw_len).map_err(Failure::Payload)?;
        let shapes = unpack_shapes(&directory, payload, unpack)?;
        if shapes.iter().any(|&shape| usize::from(shape) >= directory.shapes.len()) {
            return Err(Failure::Payload("a row has a shape that does not exist"));
        }
        let elements = directory.columns.iter().map(|_| None).collect();
        Ok(Self { directory, shapes, elements })
    }

    /// Decompresses the elements of these columns.
    pub(crate) fn load(&mut self, payload: &[u8], wanted: &[u16], unpack: &mut Unpack<'_>) -> Result<(), Failure> {
        let mut planes = Vec::new();
        for number in wanted.iter().map(|&number| usize::from(number)) {
            let (Some(column), Some(slot)) = (self.directory.columns.get(number), self.elements.get_mut(number)) else {
                continue;
            };
            if slot.is_none() {
                let length = column.count * column.width();
                let mut elements = vec![0; length + PADDING];
                unpack_column(column, payload, unpack, &mut planes, elements.get_mut(..length).unwrap_or_default())?;
                *slot = Some(elements);
            }
        }
        Ok(())
    }

    /// Returns the shapes of rows.
    #[must_use]
    pub fn shapes(&self) -> &[RowShape] {
        &self.directory.shapes
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.directory.rows
    }

    /// Returns the shape of each row, which is a valid index, or an empty slice if all rows have the only shape.
    #[must_use]
    pub fn shape_of_rows(&self) -> &[u8] {
        &self.shapes
    }

    /// Returns the description and the number of elements of a column.
    #[must_use]
    pub fn column(&self, number: u16) -> Option<(Column, usize)> {
        self.directory.columns.get(usize::from(number)).map(|column| (column.column, column.count))
    }

    /// Returns the elements of a column, followed by 7 bytes so that each can be read as 8 bytes, or an empty slice if they were not requested.
    #[must_use]
    pub fn elements(&self, number: u16) -> &[u8] {
        self.elements.get(usize::from(number)).and_then(Option::as_deref).unwrap_or_default()
    }
}
