//! Tests of the tools. Tests with random traces and with vectors are in `metatf-tests`.

#[cfg(feature = "parallel")]
mod recode_ends;
