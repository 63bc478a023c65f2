//! The tests of the language: diagnostics, the resolver, hostile texts, the vectors.

mod golden;
mod hostile;
#[cfg(feature = "index")]
mod lint;
mod memory;
mod mutations;
mod predicted;
mod schema;
mod suggestions;
mod vectors;

/// Tests of memory ask it, each in a process of its own.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
