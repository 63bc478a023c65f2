//! The measured loops yield equal results at the cost stated on the page.

mod allocations;
mod counts;
mod loops;
#[cfg(feature = "peers")]
mod peers;

/// Memory tests query this allocator, each in its own process.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
