//! The start of a stack walk, and the frames that it visits.

use core::ops::ControlFlow;

use crate::preload::elf::found::Found;

/// The maximum number of frames in a stack.
pub(crate) const DEPTH_MAX: usize = 256;

/// The registers at the start of a walk, and the [count](super::unwind::changes) of changes that may affect the memory
/// it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) rsp: usize,
    pub(crate) rbp: usize,
    pub(crate) changes: u64,
}

/// A caller's frame.
pub(crate) struct Frame {
    /// The return address, or the address at which a signal interrupted the frame.
    pub(crate) instruction: usize,
    /// The start of the frame on the stack.
    pub(crate) rsp: usize,
    pub(crate) rbp: usize,
    /// Whether a signal interrupted the frame.
    pub(crate) is_exact: bool,
}

/// A visitor of the frames on a stack.
pub(crate) trait Visitor {
    /// Reports a module that may not have been seen before.
    fn module(&mut self, found: &Found);

    /// Reports a word that was read from the stack.
    #[inline(always)]
    fn read(&mut self, _address: usize, _value: usize) {}

    /// Reports that the walk depends on the initial `rbp`.
    #[inline(always)]
    fn depends_on_rbp(&mut self) {}

    /// Visits a caller's frame. The result determines whether the walk continues.
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()>;
}
