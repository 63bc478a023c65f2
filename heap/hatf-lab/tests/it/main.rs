//! Integration tests of the experiments: allocators, fragmentation and sites.

mod allocators;
mod compare;
mod fragmentation;
mod naive;
mod sites;
