//! The tests of experiments: allocators, fragmentation, sites, figures of a paper.

mod allocators;
mod compare;
mod fragmentation;
mod naive;
mod sites;
mod zorn_grunwald;
