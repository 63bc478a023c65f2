//! Tests the language: diagnostics, the resolver, hostile input and the vectors.

mod golden;
mod hostile;
#[cfg(feature = "index")]
mod lint;
mod memory;
mod mistakes;
mod mutations;
mod predicted;
mod repairs;
mod schema;
mod short;
mod suggestions;
mod vectors;

/// Counts allocations for the memory tests, each of which runs in its own process.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
