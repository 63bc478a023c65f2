//! Simulated allocators: where blocks would lie, and what it would cost, without a byte of memory for the blocks themselves.
//!
//! BSD, FIRST, BEST and CACHE are those of Zorn and Grunwald, "Evaluating Models of Memory Allocation" (CU-CS-603-92), Table 6.
//! GLIBC, JEMALLOC, MIMALLOC and TCMALLOC follow the published policies of the allocators of these names, as far as they decide
//! where blocks lie and which pages are held. TLSF, BUDDY and BUMP are from the literature. What a source leaves open is a setting
//! with a default. A new allocator implements [`Allocator`]; `bump.rs` and `examples/two_stacks.rs` are small ones.

mod acts;
mod best;
mod blocks;
mod bsd;
mod buddy;
mod bump;
mod cache;
mod classes;
mod glibc;
mod jemalloc;
mod lists;
mod mapped;
mod mimalloc;
mod order;
mod pages;
mod rover;
mod runs;
mod settings;
mod tagged;
mod tcmalloc;
mod tlsf;

pub use acts::{Act, Acts};
pub use best::Best;
pub use bsd::{Bsd, BsdSettings};
pub use buddy::{Buddy, BuddySettings};
pub use bump::{Bump, BumpSettings};
pub use cache::{Cache, CacheSettings};
pub use glibc::{Glibc, GlibcSettings};
pub use jemalloc::{Jemalloc, JemallocSettings};
pub use mimalloc::{Mimalloc, MimallocSettings};
pub use rover::First;
pub use settings::{NAMES, PAPER, by_name};
pub use tagged::TagSettings;
pub use tcmalloc::{Tcmalloc, TcmallocSettings};
pub use tlsf::{Tlsf, TlsfSettings};

pub use crate::address::ADDRESS_SPACE;

/// The most threads that are simulated one by one; those above share what these have.
const THREADS: usize = 256;

/// Bytes of a page of the system.
pub const PAGE: u64 = 4096;

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

    /// Moves an object of `old` bytes to where `size` bytes have room, which may be where it is; `None`: it is ended, and the
    /// address space full. By default it ends, and then another is placed.
    fn reallocate(&mut self, place: Place, old: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        self.free(place, old, acts);
        self.allocate(size, acts)
    }

    /// Returns the bytes had from the system and not given back (`sbrk`, `mmap`).
    fn heap(&self) -> u64;

    /// Returns the bytes of the pages that hold memory, or held memory and were not given back. What a program touches of
    /// its blocks is taken to be all of it. By default that is the whole heap.
    fn held(&self) -> u64 {
        self.heap().next_multiple_of(PAGE)
    }

    /// Returns whether [`Self::heap`] is address space that is reserved far ahead, so that only pages held are memory. By default it is not.
    fn reserves(&self) -> bool {
        false
    }

    /// Returns an address above all blocks.
    fn end(&self) -> u64 {
        self.heap()
    }

    /// Notes that the calls that follow are those of another thread; the first is 0, the next new one 1. It is called before the
    /// first allocation, too. By default threads share the heap.
    fn switch_to(&mut self, _thread: usize) {}

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
