//! Stack frames for matching suppressions, with one frame per function, including inlined functions.

use hatf_trace::stacks::Stacks;

/// Allocation functions, which valgrind replaces. The stacks in a trace begin with the callers of these functions,
/// unless the trace was written by another recorder.
pub(super) const ALLOCATE: [&str; 11] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "reallocarray",
    "operator new",
    "operator new[]",
];

/// A function in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'s> {
    /// The name, or empty if unknown.
    pub function: &'s str,
    /// The path of the program or shared object, or empty if the function is in neither.
    pub object: &'s str,
    /// The source file, or empty if unknown.
    pub file: &'s str,
    /// The line, or 0 if unknown.
    pub line: u64,
}

impl<'s> Frame<'s> {
    /// Returns the frames of a stack, innermost first, starting with the caller of the allocation function. glibc
    /// functions get the names that glibc exports.
    #[must_use]
    pub fn of_stack(stacks: &'s Stacks, site: u64) -> Vec<Self> {
        let mut frames = Vec::new();
        for location in stacks.get(site) {
            let object = location.module.as_str();
            if location.functions.is_empty() {
                frames.push(Self { function: "", object, file: "", line: 0 });
            }
            frames.extend(location.functions.iter().map(|function| Self {
                function: function.name.strip_prefix("__GI_").unwrap_or(&function.name),
                object,
                file: &function.file,
                line: function.line,
            }));
        }
        let allocating = frames.iter().take_while(|frame| ALLOCATE.contains(&frame.function)).count();
        drop(frames.drain(..allocating));
        frames
    }
}
