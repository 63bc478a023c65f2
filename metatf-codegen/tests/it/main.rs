//! Tests generated code: its source, whether it compiles, and whether it reads what it writes.

mod build_script;
pub mod compiled;
mod editions;
mod emitters;
mod golden;
pub mod interface;
mod ksy;
mod linear;

/// Counts allocations for the memory tests, each of which runs in its own process.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
