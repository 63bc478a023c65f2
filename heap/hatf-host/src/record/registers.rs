//! The registers of a stopped thread.

/// The registers of a stopped thread. They are all 0 if the thread is in an uninterruptible wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRegisters {
    /// The instruction pointer.
    pub instruction_pointer: u64,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The address of the thread's control block.
    pub thread_pointer: u64,
    /// Whether the thread is in a system call.
    pub is_in_kernel: bool,
}
