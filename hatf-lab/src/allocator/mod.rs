//! Simulated allocators: where blocks would lie, and what it would cost, without a byte of memory for the blocks themselves.
//!
//! The four are those of Zorn and Grunwald, "Evaluating Models of Memory Allocation" (CU-CS-603-92), Table 6. What the paper
//! leaves open is a setting with a default. A new allocator implements [`Allocator`]; `examples/two_stacks.rs` is one.

mod acts;
mod best;
mod blocks;
mod bsd;
mod cache;
mod rover;
mod settings;
mod tagged;

pub use acts::{Act, Acts};
pub use best::Best;
pub use bsd::{Bsd, BsdSettings};
pub use cache::{Cache, CacheSettings};
pub use rover::First;
pub use settings::{NAMES, by_name};
pub use tagged::TagSettings;

/// The end of the simulated address space, which begins at 0. What does not fit below is refused.
pub const ADDRESS_SPACE: u64 = 1 << 47;

/// A block that an allocator gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the object's bytes would begin.
    pub address: u64,
    /// The allocator's own name for the block; any number.
    pub block: u32,
}

/// A simulated allocator.
pub trait Allocator: Send {
    /// Returns its name with all settings, in the form that [`by_name`] takes.
    fn name(&self) -> String;

    /// Places an object of `size` bytes; `None`: the address space is full.
    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place>;

    /// Ends an object that `allocate` placed, and whose size was `size`.
    fn free(&mut self, place: Place, size: u64, acts: &mut Acts);

    /// Returns the bytes had from the system (`sbrk`): those from address 0 up to this.
    fn heap(&self) -> u64;

    /// Checks what the last call touched.
    ///
    /// # Errors
    /// The invariant that does not hold, in words.
    fn check_touched(&self) -> Result<(), String>;

    /// Checks the whole heap.
    ///
    /// # Errors
    /// The invariant that does not hold, in words.
    fn check(&self) -> Result<(), String>;
}
