//! Tests across crates.

mod c_reader;
mod conformance;
mod decoded_ahead;
mod editing;
mod ends;
mod every_shape;
mod experiments;
mod fuzz_seeds;
mod generated_vectors;
mod golden;
mod json_lines;
mod killed_writer;
mod memory;
mod merge_memory;
mod models;
mod prologues;
mod random;
mod recode_memory;
mod regress;
mod second_writer;
mod send;
mod symbolizing;
mod times;

/// Used by memory tests, each in its own process.
#[global_allocator]
static ALLOCATOR: metatf_test::Counting = metatf_test::Counting::new();
