//! The interface through which generated code reads the records of a section: all records of a run, or a single one.

use super::known::{can_specialize, is_stateful};
use super::{Known, ReadFields, Source};
use crate::format::Format;
use std::ops::ControlFlow;

/// The records of one section.
pub trait SectionFamily {
    /// Index of the section in the format.
    const SECTION: usize;

    /// The tables of the DTD.
    const FORMAT: &'static Format;

    /// Size of a tag in bytes.
    const TAG_WIDTH: usize = Self::FORMAT.tag_width as usize;

    /// Whether code for the section's [expected](super::Known::EXPECTED) records is generated.
    const CAN_SPECIALIZE: bool = can_specialize(Self::FORMAT, Self::SECTION);

    /// Whether the DTD allows records to be stateful; see [`Known::STATEFUL`].
    const IS_STATEFUL: bool = is_stateful(Self::FORMAT);

    /// The enum of the section's records, with bytes of type `B`.
    type With<B>;

    /// Reads the data record with this index in the format.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn read<'a, B: From<&'a [u8]>, R: Source<'a>>(record: u16, row: &mut R) -> Result<Self::With<B>, R::Error>;

    /// Reads the next record, which has this tag. Returns `None` if no record has the tag or the record cannot be read
    /// here.
    fn next<'r, B: From<&'r [u8]>, R: Rows<'r>>(tag: u32, rows: &mut R) -> Option<Self::With<B>>;

    /// Reads data records of this section until another event follows.
    fn run<'r, B: From<&'r [u8]>, C>(
        reads: &mut impl Reads<'r>,
        each: impl FnMut(Self::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;

    /// Implements [`Protocol::one`](super::Protocol::one) for records of this section.
    fn one<'r, B: From<&'r [u8]>>(one: impl ReadsOne<'r>) -> Option<Self::With<B>>;
}

/// Reads one or more records of a section.
pub trait Reads<'r> {
    /// Calls `each` with the records of a section, which has `PLANS` plans.
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Returns the fields of the next records.
pub trait Rows<'r> {
    /// Returns the fields of the next record, an `S`, or `None` if the record cannot be read here.
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T>;
}

/// Reads the next record.
pub trait ReadsOne<'r>: Sized {
    /// Returns the index of the section that contains the record.
    fn section(&self) -> usize;

    /// Decodes the record, which belongs to a section with `PLANS` plans. Returns `None` if the record is not decoded
    /// here; in this case, either nothing has changed, or an error has stopped the reader.
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize>(self) -> Option<F::With<B>>;
}
