//! How a generated struct's fields are read from a row and written to one.
//!
//! Leaves are numbered from `base`, the first leaf of the record that lists the struct's fields, so that one struct
//! serves wherever its record is nested.

use crate::record::{Put, Source};
use metatf_container::{Error, ErrorKind, Place, Result};
use std::fmt;

/// Reads a struct's fields in order.
pub trait ReadFields<'a>: Sized {
    /// Reads the fields whose leaves are numbered from `base`.
    ///
    /// # Errors
    /// The row's.
    fn read_fields<R: Source<'a>>(row: &mut R, base: u8) -> Result<Self, R::Error>;
}

/// Writes a struct's fields in order, with the counts, lengths and constants that are not fields.
pub trait WriteFields {
    /// Writes the fields whose leaves are numbered from `base`.
    ///
    /// # Errors
    /// The row's.
    fn write_fields<W: Put>(&self, row: &mut W, base: u8) -> Result<(), W::Error>;
}

/// Copies a value with its bytes held in another way: owned, borrowed.
pub trait Rebytes<'s, C> {
    /// The same type with `C` for its bytes.
    type Out;

    /// Copies the value, bytes by `bytes`.
    fn rebytes(&'s self, bytes: fn(&'s [u8]) -> C) -> Self::Out;
}

/// A type of a generated module, whatever holds its bytes.
pub trait Family {
    /// The type with `B` for its bytes.
    type With<B>;

    /// Reads one.
    ///
    /// # Errors
    /// The row's.
    fn read<'a, B: From<&'a [u8]>, R: Source<'a>>(row: &mut R) -> Result<Self::With<B>, R::Error>;
}

/// Two's complement (format `signed`).
#[must_use]
#[inline]
pub fn signed(value: u64) -> i64 {
    value.cast_signed()
}

/// The other way.
#[must_use]
#[inline]
pub fn unsigned(value: i64) -> u64 {
    value.cast_unsigned()
}

/// Format `f64`.
#[must_use]
#[inline]
pub fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The other way.
#[must_use]
#[inline]
pub fn float_bits(value: f64) -> u64 {
    value.to_bits()
}

/// An integer in which a bit is set, or all bits up to a last one.
#[must_use]
pub const fn bits(first: u8, last: &[u8]) -> u64 {
    match last {
        [last] if *last < 64 && first <= *last => u64::MAX >> (63 - (*last - first)) << first,
        _ => 1 << (first & 63),
    }
}

/// The names of the flags that are set, with `|` between, and of several bits that are a number other than 0: `name=5`. The bits
/// without a name are one number.
///
/// # Errors
/// The formatter's.
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

/// A byte array of fixed length.
///
/// # Errors
/// Other lengths; rows give the length that the format says.
#[inline]
pub fn array<'a, const N: usize, R: Source<'a>>(row: &mut R, leaf: u8) -> Result<[u8; N], R::Error> {
    let bytes = row.bytes(leaf)?;
    bytes.try_into().map_err(|_| row.stop(Error::at(0, ErrorKind::Usage("a byte array of another length"))))
}

/// The length of a field's bytes.
///
/// # Errors
/// The row's.
#[inline]
pub fn put_length<W: Put>(row: &mut W, leaf: u8, bytes: &impl AsRef<[u8]>) -> Result<(), W::Error> {
    row.number(leaf, bytes.as_ref().len() as u64)
}

/// A repetition. Items come as they are read, not as the count promises: memory follows the input (spec 7).
///
/// # Errors
/// The row's, and `read`'s.
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

/// What is there if its count is 1.
///
/// # Errors
/// The row's, and `read`'s.
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

/// The items of a field; as many as the leaf `count` said.
///
/// # Errors
/// Another number of items than the count that was written; the row's, and `write`'s.
#[inline]
pub fn put_each<W: Put, T>(
    row: &mut W,
    count: u8,
    items: &[T],
    mut write: impl FnMut(&mut W, &T) -> Result<(), W::Error>,
) -> Result<(), W::Error> {
    if row.last(count) != items.len() as u64 {
        let place = Place { leaf: Some(count), ..Place::default() };
        return Err(row.stop(Error { kind: ErrorKind::Usage("the count field says another number of items"), place }));
    }
    row.items(items.len())?;
    items.iter().try_for_each(|item| write(row, item))
}

/// A repeated `vfield`: its length says only what its data does.
///
/// # Errors
/// The row's.
#[inline]
pub fn read_vfield<'a, R: Source<'a>, B: From<&'a [u8]>>(row: &mut R, length: u8, data: u8) -> Result<B, R::Error> {
    row.number(length)?;
    row.bytes(data).map(B::from)
}
