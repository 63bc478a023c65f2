//! Simulated allocators. They compute block addresses and costs without allocating memory for the blocks.
//!
//! BSD, FIRST, BEST and CACHE are the allocators of Zorn and Grunwald, "Evaluating Models of Memory Allocation"
//! (CU-CS-603-92), Table 6. GLIBC, JEMALLOC, MIMALLOC and TCMALLOC follow the published policies of the allocators of
//! the same name, as far as these policies determine block addresses and held pages. TLSF, BUDDY and BUMP are from the
//! literature. Parameters that a source leaves open are settings with defaults. A new allocator implements
//! [`Allocator`]; `bump.rs` and `examples/two_stacks.rs` are small examples.
//!
//! # Examples
//!
//! FIRST reuses a freed block:
//!
//! ```
//! use hatf_lab::allocator::{Act, Acts, by_name};
//!
//! let (mut first, mut acts) = (by_name("first")?, Acts::default());
//! first.switch_to(0);
//! let full = "the address space is full";
//! let one = first.allocate(16, &mut acts).ok_or(full)?;
//! let two = first.allocate(16, &mut acts).ok_or(full)?;
//! assert_eq!((one.address, two.address, first.heap()), (8, 40, 8_192));
//! first.free(one, 16, &mut acts);
//! assert_eq!(first.allocate(16, &mut acts), Some(one));
//! assert_eq!(acts.of(Act::Sbrk), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acts;
mod best;
mod blocks;
mod bsd;
mod buddy;
mod bump;
mod cache;
mod classes;
mod decay;
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

/// The maximum number of threads simulated individually. Threads above this limit share their resources.
const THREADS: usize = 256;

/// Bytes per system page.
pub const PAGE: u64 = 4096;

/// A block returned by an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The simulated address of the object.
    pub address: u64,
    /// The allocator's own identifier of the block; any number.
    pub block: u32,
}

/// A simulated allocator.
pub trait Allocator: Send {
    /// Returns the allocator's name and all of its settings in the syntax that [`by_name`] accepts.
    fn name(&self) -> String;

    /// Tells the time of the following call, in nanoseconds. By default, time has no effect.
    fn at(&mut self, _time: u64, _acts: &mut Acts) {}

    /// Places an object of `size` bytes. Returns `None` if the address space is full.
    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place>;

    /// Frees an object of `size` bytes that `allocate` placed.
    fn free(&mut self, place: Place, size: u64, acts: &mut Acts);

    /// Resizes an object from `old` to `size` bytes, in place if possible. Frees the object and returns `None` if the
    /// address space is full. The default frees the object and then allocates another one.
    fn reallocate(&mut self, place: Place, old: u64, size: u64, acts: &mut Acts) -> Option<Place> {
        self.free(place, old, acts);
        self.allocate(size, acts)
    }

    /// Returns the bytes obtained from the system and not returned (`sbrk`, `mmap`).
    fn heap(&self) -> u64;

    /// Returns the bytes of all pages that were touched and not returned to the system. A program is assumed to touch
    /// all of its blocks. The default is the entire heap.
    fn held(&self) -> u64 {
        self.heap().next_multiple_of(PAGE)
    }

    /// Returns whether [`Self::heap`] is address space reserved far ahead, so that only held pages count as memory. The
    /// default is `false`.
    fn reserves(&self) -> bool {
        false
    }

    /// Returns an address above all blocks.
    fn end(&self) -> u64 {
        self.heap()
    }

    /// Switches to the thread that makes the following calls. Threads are numbered from 0 in order of appearance.
    /// Callers must also call this method before the first allocation. By default, threads share the heap.
    fn switch_to(&mut self, _thread: usize) {}

    /// Checks the data touched by the last call.
    ///
    /// # Errors
    /// Describes the violated invariant.
    fn check_touched(&self) -> Result<(), String>;

    /// Checks the entire heap.
    ///
    /// # Errors
    /// Describes the violated invariant.
    fn check(&self) -> Result<(), String>;
}
