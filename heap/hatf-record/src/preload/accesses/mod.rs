//! Counts of loads and stores for each block, in programs built by `hatf cc`.
//!
//! Such a program contains the functions in `src/cc/access.c` of `hatf-host`, which count accesses. When it is loaded,
//! it requests the table of counters (`begin`). From then on, the layout of blocks ensures that no two blocks share a
//! counter. The counts of a block are recorded before the block ends, and at the end of the program.
//!
//! `shadow` contains the counters, and `blocks` places each block after its head (`block`). `reach` finds the blocks
//! that a call passes to uninstrumented code (`known`), while `scans` prevents blocks from ending, and `tell` records
//! the counts. The program calls the functions in `interface`.

mod begin;
mod block;
mod blocks;
mod interface;
pub(crate) mod known;
mod reach;
mod scans;
pub(crate) mod shadow;
pub(crate) mod tell;
