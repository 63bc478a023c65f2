//! Functions in a stack, as list items.

/// A function in a stack.
pub(crate) struct FrameRow {
    /// The function name, or empty if it is not known.
    pub(crate) function: String,
    /// The source file, or empty if it is not known.
    pub(crate) file: String,
    /// The line number, or 0 if it is not known.
    pub(crate) line: u64,
    /// The module, or empty if the address is not in a module.
    pub(crate) module: String,
    /// The build ID, or empty if it is not known.
    pub(crate) build_id: String,
    pub(crate) offset: u64,
    /// Whether the function is inlined into the next one.
    pub(crate) inlined: bool,
}
