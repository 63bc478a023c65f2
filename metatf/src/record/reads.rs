//! How generated code is asked to read the records of a section: all of a run, or one.

use super::{Known, ReadFields, Source};
use std::ops::ControlFlow;

/// The records of one section.
pub trait SectionFamily {
    /// Index in the format's sections.
    const SECTION: usize;

    /// Whether the DTD has it that values come from stream sections, one after the other.
    const HAS_STREAMED: bool;

    /// Whether there is code for its records as they are [expected](super::Known::EXPECTED).
    const CAN_SPECIALIZE: bool;

    /// The enum with `B` for its bytes.
    type With<B>;

    /// Reads a data record of this section.
    ///
    /// # Errors
    /// The row's.
    fn read<'a, B: From<&'a [u8]>, R: Source<'a>>(record: u16, row: &mut R) -> Result<Self::With<B>, R::Error>;

    /// Reads data records of this section until something else comes.
    fn run<'r, B: From<&'r [u8]>, C>(
        reads: &mut impl Reads<'r>,
        each: impl FnMut(Self::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;

    /// Does what [`Protocol::one`](super::Protocol::one) does, for records of this section.
    fn one<'r, B: From<&'r [u8]>, O: ReadsOne<'r>, T>(
        one: O,
        found: impl FnOnce(Self::With<B>) -> T,
        none: impl FnOnce(O) -> T,
    ) -> T;

    /// Gives the next data record of this section to `found`, or goes on with `none`.
    fn row<'r, B: From<&'r [u8]>, O: OneRow<'r>, T>(
        row: O,
        found: impl FnOnce(Self::With<B>) -> T,
        none: impl FnOnce(O) -> T,
    ) -> T;

    /// Does what [`run`](Self::run) does, with one kind of rows.
    fn rows<'r, B: From<&'r [u8]>, C>(
        rows: &mut impl Rows<'r>,
        each: impl FnMut(Self::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Reads records of a section, one or many.
pub trait Reads<'r> {
    /// Gives records of a section, which has `PLANS` plans, to `each`.
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Gives the records that come next, fields and all.
pub trait Rows<'r> {
    /// The tag of the next record; none at the end.
    fn tag(&self, width: usize) -> Option<u32>;

    /// The fields of the next record, which is an `S`; none where it cannot be had here.
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T>;
}

/// Reads the record that comes next, and is used up by it: who gets a record has no reader left to move on with.
///
/// The records borrow from the part of the trace that the reader is in, and moving on gives that part up. So a record and
/// the right to move on never exist side by side, whatever a hand-written implementation does:
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
    /// Index of the section that the record is in.
    fn section(&self) -> usize;

    /// Decodes the record, of a section that has `PLANS` plans. Goes on with `none` where the record is not decoded here:
    /// nothing has happened then, or an error has stopped the reader.
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, T>(
        self,
        found: impl FnOnce(F::With<B>) -> T,
        none: impl FnOnce(Self) -> T,
    ) -> T;
}

/// The fields of one record, read at most once.
pub trait OneRow<'r>: Sized {
    /// The tag of the record; none at the end.
    fn tag(&self, width: usize) -> Option<u32>;

    /// Gives the fields of the record, which is an `S`, to `found`: what that makes of them is where it is wanted, and is not moved
    /// again. Goes on with `none` where the record is not decoded here.
    fn read<S: Known, T: ReadFields<'r>, R>(self, found: impl FnOnce(T) -> R, none: impl FnOnce(Self) -> R) -> R;
}
