//! What a walk of a stack begins with, and what it meets.

use core::ops::ControlFlow;

/// The most frames of a stack.
pub(crate) const DEPTH_MAX: usize = 256;

/// The registers that a walk begins with, and [how often](super::unwind::changes) what it reads may have become other than it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) rsp: usize,
    pub(crate) rbp: usize,
    pub(crate) changes: u64,
}

/// A caller's frame.
pub(crate) struct Frame {
    /// The return address, or where a signal has interrupted it.
    pub(crate) instruction: usize,
    /// Where it begins on the stack.
    pub(crate) rsp: usize,
    pub(crate) rbp: usize,
    /// A signal has interrupted it.
    pub(crate) is_exact: bool,
}

/// What a walk is for.
pub(crate) trait Visitor {
    /// A module was met that was perhaps not met before.
    fn module(&mut self, found: &Found);

    /// A word was read from the stack.
    #[inline(always)]
    fn read(&mut self, _address: usize, _value: usize) {}

    /// The walk has come to a caller's frame; it breaks, or goes on.
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()>;
}

/// Where a module lies, and its tables: what `_dl_find_object` answers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(super) flags: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) link: *const Link,
    pub(super) eh_frame_header: *const u8,
    pub(super) reserved: [u64; 7],
}

/// The beginning of glibc's `struct link_map`.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) bias: usize,
    pub(crate) name: *const core::ffi::c_char,
}
