//! Compares tables of traces with the dynamic reader.

#[cfg(feature = "parquet")]
mod any_table;
mod common;
mod cut_file;
#[cfg(feature = "parquet")]
mod fuzz_seeds;
mod hostile;
mod random;
mod ranges;
#[cfg(feature = "parquet")]
mod round_trip;
mod spans;
