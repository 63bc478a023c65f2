//! What a generated module is to the runtime: its format, and its types.

use super::{Known, Reads, ReadsOne, Source, WriteFields};
use crate::format::Format;
use metatf_container::Result;
use std::ops::ControlFlow;

/// A generated module: the format of its DTD, and how records become its types.
pub trait Protocol: 'static {
    /// File name of the DTD, as headers of traces without an embedded DTD name it.
    const SOURCE: &'static str;

    /// A record of any section, its bytes held by `B`.
    type Record<B>;

    /// An element of any stream section.
    type Element<B>;

    /// The tables of the DTD.
    const FORMAT: &'static Format;

    /// Reads a data record; indices are the format's.
    ///
    /// # Errors
    /// The row's.
    fn record<'a, B: From<&'a [u8]>, R: Source<'a>>(
        section: usize,
        record: u16,
        row: &mut R,
    ) -> Result<Self::Record<B>, R::Error>;

    /// Reads the data records of a section until something else comes.
    fn run<'r, B: From<&'r [u8]>, C>(
        section: usize,
        run: &mut impl Reads<'r>,
        each: impl FnMut(Self::Record<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;

    /// Gives the data record that comes next, where it is decoded in a straight line, to `found`; else `none` goes on. What `found`
    /// makes of it is where it is wanted: it is not moved again.
    fn one<'r, B: From<&'r [u8]>, O: ReadsOne<'r>, T>(
        one: O,
        found: impl FnOnce(Self::Record<B>) -> T,
        none: impl FnOnce(O) -> T,
    ) -> T;

    /// Reads an element of a stream section.
    ///
    /// # Errors
    /// The row's.
    fn element<'a, B: From<&'a [u8]>, R: Source<'a>>(section: usize, row: &mut R)
    -> Result<Self::Element<B>, R::Error>;
}

/// A record that knows where it belongs: a section's enum, or the enum of all.
pub trait DataRecord {
    /// Index in the format's sections of the one section that these records can belong to; none where there are several.
    const SECTION: Option<usize>;

    /// Indices of section and record in the format.
    fn place(&self) -> (usize, u16);

    /// Gives the record to what takes it, a writer most often.
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

/// Takes records whose types are known when the program is compiled.
pub trait Puts {
    /// What comes of a record.
    type Done;

    /// Takes a `K` of the section of this index, which has `PLANS` plans.
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Self::Done;
}
