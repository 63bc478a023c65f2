//! Filter 4, columns, which stores each leaf of a section's records in its own streams (spec 5.2),
//! so that a reader can leave out the leaves that nobody asked for.
//!
//! The content is a sequence of rows. Each row has a shape, which consists of constant bytes and pieces. A piece is an
//! element of a column, or a repetition of such elements. Every byte of the elements has a stream, which is compressed
//! by itself.

mod directory;
mod restore;
mod selection;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use restore::restore;
pub use selection::ChunkColumns;
pub(crate) use split::split;

/// Maximum number of shapes, because a stream of single bytes contains the shape of each row.
pub const MOST_SHAPES: usize = 256;
/// Maximum number of columns.
pub const MOST_COLUMNS: usize = 4096;
/// Maximum number of pieces of a shape. A record has at most 255 leaves.
pub const MOST_PIECES: usize = 256;
/// Maximum size of a column's elements in bytes.
pub const WIDEST: usize = 255;
/// Maximum size of elements whose bytes have one stream each.
const WIDEST_SPLIT: usize = 8;
/// Content may be at most this many times as long as the chunk's stored bytes.
pub(crate) const MOST_RATIO: u64 = 1 << 16;

/// A column of elements of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The tag of the records and the index of the leaf whose stored bytes are the elements, or `None` for a column of
    /// counts or of unspecified bytes.
    pub leaf: Option<(u32, u8)>,
    /// Size of an element in bytes, 1 to 255.
    pub width: u8,
}

/// A piece of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next element of a column.
    Element(u16),
    /// A repetition of one element of each of these columns. If an earlier piece of the shape is an element of the column
    /// `count`, the count is the row's last element of that column, as a little-endian number. Otherwise, it is the next
    /// element of `count`, a column that contains only counts.
    Repeat {
        /// The column with the count.
        count: u16,
        /// The repeated columns.
        columns: Vec<u16>,
    },
}

/// The structure of rows with the same pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowShape {
    /// The bytes before the first piece, at most 255.
    pub constant: Vec<u8>,
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl RowShape {
    /// Returns whether a piece before the piece `before` is an element of this column.
    fn contains(&self, before: usize, column: u16) -> bool {
        self.pieces.iter().take(before).any(|piece| *piece == Piece::Element(column))
    }
}

/// The division of a chunk's content into rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The columns.
    pub columns: Vec<Column>,
    /// The shapes.
    pub shapes: Vec<RowShape>,
    /// The shape of each row.
    pub rows: Vec<u8>,
    /// The elements of columns that contain only counts, in the order in which the rows need them.
    pub counts: Vec<u32>,
}

impl Rows {
    /// Removes all rows, columns and shapes.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.shapes.clear();
        self.rows.clear();
        self.counts.clear();
    }
}

/// Returns the number of streams of a column.
fn streams_of(width: u8) -> usize {
    if usize::from(width) <= WIDEST_SPLIT { width.into() } else { 1 }
}
