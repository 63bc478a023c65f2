//! Reading and writing the fields of a generated struct.
//!
//! Leaves are numbered from `base`, the first leaf of the struct's fields in the record that contains them. The same
//! struct can therefore be nested in any record.

use crate::record::{Put, Source};
use metatf_container::{Error, ErrorKind, Place, Result};
use std::fmt;

/// Reads a struct's fields in order.
pub trait ReadFields<'a>: Sized {
    /// Reads the fields whose leaves are numbered from `base`.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn read_fields<R: Source<'a>>(row: &mut R, base: u8) -> Result<Self, R::Error>;
}

/// Writes a struct's fields in order, with the counts, lengths and constants that are not fields.
pub trait WriteFields {
    /// Writes the fields whose leaves are numbered from `base`.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn write_fields<W: Put>(&self, row: &mut W, base: u8) -> Result<(), W::Error>;
}

/// A type of a generated module, independent of the type of its bytes.
pub trait Family {
    /// The type with bytes of type `B`.
    type With<B>;

    /// Reads a value.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn read<'a, B: From<&'a [u8]>, R: Source<'a>>(row: &mut R) -> Result<Self::With<B>, R::Error>;
}

/// Prints the names of the flags that are set, separated by `|`. A multi-bit flag is printed as `name=5` unless it is
/// 0. The unnamed bits are printed as one number.
///
/// # Errors
/// Returns an error from the formatter.
pub fn fmt_flags(f: &mut fmt::Formatter<'_>, value: u64, names: &[(u64, &str)]) -> fmt::Result {
    let mut rest = value;
    let mut between = "";
    for (mask, name) in names.iter().filter(|(mask, _)| value & mask != 0) {
        rest &= !mask;
        write!(f, "{between}{name}")?;
        if !mask.is_power_of_two() {
            write!(f, "={}", (value & mask) >> mask.trailing_zeros())?;
        }
        between = "|";
    }
    match (rest, between) {
        (0, "|") => Ok(()),
        (rest, "|") => write!(f, "|{rest:#x}"),
        (rest, _) => write!(f, "{rest}"),
    }
}

/// Reads a byte array of fixed length.
///
/// # Errors
/// Returns an error from the row, or one if the row returns a different number of bytes than `N`. A row that follows
/// the format returns `N` bytes.
#[inline]
pub fn array<'a, const N: usize, R: Source<'a>>(row: &mut R, leaf: u8) -> Result<[u8; N], R::Error> {
    let bytes = row.bytes(leaf)?;
    bytes.try_into().map_err(|_| row.stop(Error::at(0, ErrorKind::Usage("the byte array has a different length"))))
}

/// Reads a repetition. Items are allocated as they are read rather than by their count, so memory stays proportional to
/// the input (spec 7).
///
/// # Errors
/// Returns an error from the row or from `read`.
#[inline]
pub fn each<'a, R: Source<'a>, T>(
    row: &mut R,
    count: u8,
    mut read: impl FnMut(&mut R) -> Result<T, R::Error>,
) -> Result<Vec<T>, R::Error> {
    let count = row.items(row.last(count))?;
    let mut items = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        items.push(read(row)?);
    }
    Ok(items)
}

/// Reads an optional value, which is present if its count is 1.
///
/// # Errors
/// Returns an error from the row or from `read`.
#[inline]
pub fn optional<'a, R: Source<'a>, T>(
    row: &mut R,
    count: u8,
    mut read: impl FnMut(&mut R) -> Result<T, R::Error>,
) -> Result<Option<T>, R::Error> {
    match row.items(row.last(count))? {
        0 => Ok(None),
        _ => read(row).map(Some),
    }
}

/// Writes the items of a field. Their number must equal the value of the leaf `count`.
///
/// # Errors
/// Returns an error if the number of items differs from the count already written, or an error from the row or from
/// `write`.
#[inline]
pub fn put_each<W: Put, T>(
    row: &mut W,
    count: u8,
    items: &[T],
    mut write: impl FnMut(&mut W, &T) -> Result<(), W::Error>,
) -> Result<(), W::Error> {
    if row.last(count) != items.len() as u64 {
        let place = Place { leaf: Some(count), ..Place::default() };
        return Err(
            row.stop(Error { kind: ErrorKind::Usage("the number of items differs from the count field"), place })
        );
    }
    row.items(items.len())?;
    items.iter().try_for_each(|item| write(row, item))
}

/// Reads a repeated `vfield`. The length leaf is read, but its value is not needed, because the row returns the data as
/// a slice.
///
/// # Errors
/// Returns an error from the row.
#[inline]
pub fn read_vfield<'a, R: Source<'a>, B: From<&'a [u8]>>(row: &mut R, length: u8, data: u8) -> Result<B, R::Error> {
    row.number(length)?;
    row.bytes(data).map(B::from)
}
