//! Where the bytes at the places of a record lie.

/// Where the bytes of a place lie, from where the record begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Nowhere: it has a number.
    Number,
    /// At a distance, so many.
    At(usize, usize),
    /// At a distance, as many as the number at a place says.
    Counted(usize, u8),
    /// It differs from record to record: the one of this index among the record's own.
    Own(usize),
}
