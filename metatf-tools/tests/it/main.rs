//! Tests of the tools. `metatf-tests` contains tests with random traces and with vectors.

#[cfg(feature = "parallel")]
mod recode_ends;
