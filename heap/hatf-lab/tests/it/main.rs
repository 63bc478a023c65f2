//! Integration tests of the experiments: allocators, fragmentation, sites, and the numbers in a paper.

mod allocators;
mod compare;
mod fragmentation;
mod naive;
mod sites;
mod zorn_grunwald;
