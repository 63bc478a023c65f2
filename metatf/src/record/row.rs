//! The leaves of a single record, read or written in order.

use metatf_container::{Error, ErrorKind, Result};

/// Maximum number of repeated items in a record beyond the number of bytes it stores (spec 3.3).
pub const FREE_ITEMS: u64 = 65_536;

/// Maximum length of a terminated byte array (spec 3.2).
pub(crate) const MOST_UNTIL: usize = 65_535;

/// A placeholder for an error, which a row returns when it cannot continue. The actual error is stored where the row's
/// caller finds it, so that the result for each leaf stays small.
#[derive(Clone, Copy, Debug)]
pub struct Stopped(pub(crate) ());

impl From<Stopped> for Error {
    /// Returns a placeholder for the error in the row.
    #[cold]
    fn from(_: Stopped) -> Self {
        Self::at(0, ErrorKind::Usage("decoding of the row stopped"))
    }
}

/// The leaves of a single record, read in order. Both generated code and the dynamic reader decode records through this
/// trait.
pub trait Row<'a> {
    /// The error of this row, which may be a placeholder.
    type Error: Into<Error>;

    /// Stops decoding with an error supplied by the caller.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// Returns the value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// Returns an error according to spec 4 and 7: truncated input, a different value for a constant, or an exhausted
    /// stream.
    fn number(&mut self, leaf: u8) -> Result<u64, Self::Error>;

    /// Returns the bytes of the byte array `leaf`.
    ///
    /// # Errors
    /// Returns an error for a width expression out of range or truncated input.
    fn bytes(&mut self, leaf: u8) -> Result<&'a [u8], Self::Error>;

    /// Announces `count` repeated items and checks their number against the limit of spec 3.3.
    ///
    /// # Errors
    /// Returns an error if there are too many items.
    fn items(&mut self, count: u64) -> Result<usize, Self::Error>;
}

/// A row with access to values read earlier, because a repetition needs its count.
pub trait Source<'a>: Row<'a> {
    /// Returns the value last read for the numeric leaf `leaf` of this record.
    fn last(&self, leaf: u8) -> u64;
}

/// Accepts the leaves of a single record in order. This is the counterpart of [`Row`](crate::Row) for writing.
pub trait Put {
    /// The error of this row, which may be a placeholder.
    type Error;

    /// Stops encoding with an error supplied by the caller.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// Encodes the value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// Returns an error for a constant with a different value. A value that does not fit is recorded and handled by the
    /// writer after the record.
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Self::Error>;

    /// Encodes the byte array `leaf`.
    ///
    /// # Errors
    /// Returns an error if the length differs from the width of the leaf.
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Announces `count` repeated items, which must equal the value of the counting leaf.
    ///
    /// # Errors
    /// Returns an error if there are more items than any reader accepts (spec 3.3).
    fn items(&mut self, count: usize) -> Result<(), Self::Error>;

    /// Returns the last value written for a leaf of this record.
    fn last(&self, leaf: u8) -> u64;
}
