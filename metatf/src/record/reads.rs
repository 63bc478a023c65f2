//! How generated code is asked to read: all records of a run, or one.

use super::{Known, ReadFields, SectionFamily};
use std::ops::ControlFlow;

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

    /// The fields of the record, which is an `S`.
    ///
    /// # Errors
    /// The row itself, where the record is not decoded here.
    fn read<S: Known, T: ReadFields<'r>>(self) -> Result<T, Self>;
}
