//! What a walk of a stack begins with, and what it meets.

use core::ops::ControlFlow;

use crate::preload::elf::found::Found;

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

    /// The walk depends on the `rbp` that it began with.
    #[inline(always)]
    fn depends_on_rbp(&mut self) {}

    /// The walk has come to a caller's frame; it breaks, or goes on.
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()>;
}
