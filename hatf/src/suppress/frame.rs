//! What suppressions see of a stack: a frame for each function, inlined ones too.

use crate::stacks::Stacks;

/// Functions that allocate: valgrind replaces them. A trace's stacks begin with their callers, if they are not of another recorder.
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

/// A function of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'s> {
    /// Its name; empty: not known.
    pub function: &'s str,
    /// The path of its program or shared object; empty: it is in none.
    pub object: &'s str,
    /// Its source file; empty: not known.
    pub file: &'s str,
    /// Its line; 0: not known.
    pub line: u64,
}

impl<'s> Frame<'s> {
    /// Returns the frames of a stack, innermost first, from the caller of the function that allocates. Functions of glibc have the names
    /// that it exports.
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
