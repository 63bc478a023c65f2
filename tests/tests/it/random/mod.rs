//! Properties that hold for all random traces, DTDs and damage.

mod chunk_pipeline;
mod columns;
mod common;
mod convert;
mod damage;
mod diff;
mod generated;
mod groups;
mod json;
mod merge;
mod optimal_paths;
mod recode;
mod skipped;
mod sources;
mod tables;
mod traces;
mod writers;
