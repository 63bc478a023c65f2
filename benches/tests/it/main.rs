//! The loops that are measured come to the same, and cost what the page says.

mod allocations;
mod counts;
mod loops;
#[cfg(feature = "peers")]
mod peers;

/// Tests of memory ask it, each in a process of its own.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
