//! The tests of the tools. Those on random traces and on vectors are in `metatf-tests`.

#[cfg(feature = "parallel")]
mod recode_ends;
