//! What holds across the crates.

mod decoded_ahead;
mod every_shape;
mod experiments;
mod fuzz_seeds;
mod generated_vectors;
mod killed_writer;
mod models;
mod regress;
mod send;
