//! A function in a stack, as a row of a list.

/// A function in a stack.
pub(crate) struct FrameRow {
    /// Empty: not known.
    pub(crate) function: String,
    /// Empty: not known.
    pub(crate) file: String,
    /// 0: not known.
    pub(crate) line: u64,
    /// Empty: it is in none.
    pub(crate) module: String,
    /// Empty: not known.
    pub(crate) build_id: String,
    pub(crate) offset: u64,
    /// Whether it is inlined into the next.
    pub(crate) inlined: bool,
}
