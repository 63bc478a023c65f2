//! The interface through which generated code reads the records of a section: all records of a run, or a single one.

use super::{Known, ReadFields, Source};
use std::ops::ControlFlow;

/// The records of one section.
pub trait SectionFamily {
    /// Index of the section in the format.
    const SECTION: usize;

    /// Whether the DTD lets values come from stream sections element by element.
    const HAS_STREAMED: bool;

    /// Whether code for the section's [expected](super::Known::EXPECTED) records is generated.
    const CAN_SPECIALIZE: bool;

    /// The enum of the section's records, with bytes of type `B`.
    type With<B>;

    /// Reads a data record of this section.
    ///
    /// # Errors
    /// Returns an error from the row.
    fn read<'a, B: From<&'a [u8]>, R: Source<'a>>(record: u16, row: &mut R) -> Result<Self::With<B>, R::Error>;

    /// Reads data records of this section until another event follows.
    fn run<'r, B: From<&'r [u8]>, C>(
        reads: &mut impl Reads<'r>,
        each: impl FnMut(Self::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;

    /// Implements [`Protocol::one`](super::Protocol::one) for records of this section.
    fn one<'r, B: From<&'r [u8]>, O: ReadsOne<'r>, T>(
        one: O,
        found: impl FnOnce(Self::With<B>) -> T,
        none: impl FnOnce(O) -> T,
    ) -> T;

    /// Passes the next data record of this section to `found`, or calls `none`.
    fn row<'r, B: From<&'r [u8]>, O: OneRow<'r>, T>(
        row: O,
        found: impl FnOnce(Self::With<B>) -> T,
        none: impl FnOnce(O) -> T,
    ) -> T;

    /// Implements [`run`](Self::run) for one kind of rows.
    fn rows<'r, B: From<&'r [u8]>, C>(
        rows: &mut impl Rows<'r>,
        each: impl FnMut(Self::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Reads one or more records of a section.
pub trait Reads<'r> {
    /// Calls `each` with the records of a section, which has `PLANS` plans.
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Returns the next records, including their fields.
pub trait Rows<'r> {
    /// Returns the tag of the next record, or `None` at the end.
    fn tag(&self, width: usize) -> Option<u32>;

    /// Returns the fields of the next record, an `S`, or `None` if the record cannot be read here.
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T>;
}

/// Reads the next record, consuming the reader, so that a holder of the record cannot advance the reader.
///
/// Records borrow from the reader's current part of the trace, and advancing releases this part. A record and the
/// ability to advance therefore never coexist, even in a hand-written implementation:
///
/// ```compile_fail,E0382
/// use metatf::typed::{ReadsOne, SectionFamily};
///
/// fn moves_on_and_reads<'r, B: From<&'r [u8]>, F: SectionFamily, O: ReadsOne<'r>, T>(
///     one: O,
///     found: impl FnOnce(F::With<B>) -> T,
///     none: impl FnOnce(O) -> T,
/// ) -> (T, T) {
///     let moved_on = none(one);
///     let read = one.read::<F, B, 1, T>(found, |_| unreachable!());
///     (read, moved_on)
/// }
/// ```
pub trait ReadsOne<'r>: Sized {
    /// Returns the index of the section that contains the record.
    fn section(&self) -> usize;

    /// Decodes the record, which belongs to a section with `PLANS` plans. Calls `none` if the record is not decoded
    /// here; in this case, either nothing has changed, or an error has stopped the reader.
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, T>(
        self,
        found: impl FnOnce(F::With<B>) -> T,
        none: impl FnOnce(Self) -> T,
    ) -> T;
}

/// The fields of a single record, which can be read at most once.
pub trait OneRow<'r>: Sized {
    /// Returns the tag of the record, or `None` at the end.
    fn tag(&self, width: usize) -> Option<u32>;

    /// Passes the fields of the record, an `S`, to `found`. Passing a closure lets the compiler construct the result of
    /// `found` in its final location instead of moving it there. Calls `none` if the record is not decoded here.
    fn read<S: Known, T: ReadFields<'r>, R>(self, found: impl FnOnce(T) -> R, none: impl FnOnce(Self) -> R) -> R;
}
