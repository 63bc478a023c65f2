//! The tests of generated code: its text, that it compiles and reads what it writes.

mod build_script;
pub mod compiled;
mod editions;
mod emitters;
mod golden;
mod linear;

/// Tests of memory ask it, each in a process of its own.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
