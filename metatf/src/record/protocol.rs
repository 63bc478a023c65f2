//! The runtime's view of a generated module, which consists of its format and its types.

use super::{Known, Reads, ReadsOne, Source, WriteFields};
use crate::format::Format;
use metatf_container::{Error, ErrorKind, Result};
use std::ops::ControlFlow;

/// A generated module, with the format of its DTD and the conversion of records to its types. The default functions are
/// those of a format without data records or stream sections.
pub trait Protocol: 'static {
    /// File name of the DTD, which is stored in the header of traces without an embedded DTD.
    const SOURCE: &'static str;

    /// A record of any section, whose bytes have type `B`.
    type Record<B>;

    /// An element of any stream section.
    type Element<B>;

    /// The tables of the DTD.
    const FORMAT: &'static Format;

    /// Reads the data record with these section and record indices.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn record<'a, B: From<&'a [u8]>, R: Source<'a>>(
        _section: usize,
        _record: u16,
        row: &mut R,
    ) -> Result<Self::Record<B>, R::Error> {
        Err(row.stop(no_such_record()))
    }

    /// Reads the data records of a section until another event follows.
    fn run<'r, B: From<&'r [u8]>, C>(
        _section: usize,
        _run: &mut impl Reads<'r>,
        _each: impl FnMut(Self::Record<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        ControlFlow::Continue(())
    }

    /// Returns the next data record if straight-line code can decode it.
    fn one<'r, B: From<&'r [u8]>>(_one: impl ReadsOne<'r>) -> Option<Self::Record<B>> {
        None
    }

    /// Reads an element of a stream section.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn element<'a, B: From<&'a [u8]>, R: Source<'a>>(
        _section: usize,
        row: &mut R,
    ) -> Result<Self::Element<B>, R::Error> {
        Err(row.stop(no_such_record()))
    }
}

/// Returns the error for a section or record index unknown to the generated code, which means that the format and the
/// code do not match.
#[must_use]
#[cold]
pub fn no_such_record() -> Error {
    Error::at(0, ErrorKind::Usage("the generated code has no such record"))
}

/// A record that identifies its section. It is the enum of one section or the enum of all sections.
pub trait DataRecord {
    /// Index in the format of the only section to which these records can belong, or `None` if there are several.
    const SECTION: Option<usize>;

    /// Returns the indices of the section and the record in the format.
    fn place(&self) -> (usize, u16);

    /// Passes the record to a consumer, usually a writer.
    fn put<W: Puts>(&self, writer: &mut W) -> W::Done;
}

impl<R: DataRecord + ?Sized> DataRecord for &R {
    const SECTION: Option<usize> = R::SECTION;

    #[inline]
    fn place(&self) -> (usize, u16) {
        (**self).place()
    }

    #[inline]
    fn put<W: Puts>(&self, writer: &mut W) -> W::Done {
        (**self).put(writer)
    }
}

/// Accepts records whose types are known at compile time.
pub trait Puts {
    /// The result of accepting a record.
    type Done;

    /// Accepts a `K`, whose section has `PLANS` plans.
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Self::Done;
}
