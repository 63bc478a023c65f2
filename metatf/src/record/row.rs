//! The leaves of one record, asked for or given in order.

use metatf_container::{Error, ErrorKind, Result};

/// How many repeated items a record may have beyond the bytes it stores (spec 3.3).
pub const FREE_ITEMS: u64 = 65_536;

/// The most bytes of an array that ends at a byte (spec 3.2).
pub(crate) const MOST_UNTIL: usize = 65_535;

/// What a row gives instead of a value when it cannot go on. Why is kept in the row, for the caller: results of
/// leaves stay small.
#[derive(Clone, Copy, Debug)]
pub struct Stopped(pub(crate) ());

impl From<Stopped> for Error {
    /// A stand-in for the error in the row.
    #[cold]
    fn from(_: Stopped) -> Self {
        Self::at(0, ErrorKind::Usage("the row stopped"))
    }
}

/// The leaves of one record, asked for in order. Generated code and the universal reader both decode through this.
pub trait Row<'a> {
    /// What stands for an error here.
    type Error: Into<Error>;

    /// Stops with an error of the caller's.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// The value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// What spec 4 and 7 say: input that ends, a constant that differs, a stream that is used up.
    fn number(&mut self, leaf: u8) -> Result<u64, Self::Error>;

    /// The bytes of the byte array `leaf`.
    ///
    /// # Errors
    /// A width expression out of range, or input that ends.
    fn bytes(&mut self, leaf: u8) -> Result<&'a [u8], Self::Error>;

    /// Announces `count` repeated items and checks them against the limit of spec 3.3.
    ///
    /// # Errors
    /// Too many items.
    fn items(&mut self, count: u64) -> Result<usize, Self::Error>;
}

/// A row that also tells what it read before: repetitions look back at their count.
pub trait Source<'a>: Row<'a> {
    /// The value last read for the numeric leaf `leaf` of this record.
    fn last(&self, leaf: u8) -> u64;
}

/// Takes the leaves of one record, in order. What [`Row`](crate::Row) is for reading.
pub trait Put {
    /// What stands for an error here.
    type Error;

    /// Stops with an error of the caller's.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// Encodes the value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// A constant with another value. A value that does not fit is noted; the writer deals with it after the record.
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Self::Error>;

    /// Encodes the byte array `leaf`.
    ///
    /// # Errors
    /// Bytes of another length than the leaf's width says.
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Announces `count` repeated items, which must be what the counting leaf says.
    ///
    /// # Errors
    /// More items than any reader takes (spec 3.3).
    fn items(&mut self, count: usize) -> Result<(), Self::Error>;

    /// The last value written for a leaf of this record.
    fn last(&self, leaf: u8) -> u64;
}
