//! Which loads and stores does a block get, in programs that `hatf cc` built?
//!
//! Such a program has the functions of `src/cc/access.c` of `hatf` in it, which count. When it is loaded it asks for the table of counters (`begin`), and
//! from then on blocks lie so that no two share a counter. What was counted of a block is recorded before it ends, and at the end of the program.
//!
//! `shadow` has the counters, `blocks` lays blocks out, each behind its head (`block`), `reach` finds those that a call passes to code that is not
//! instrumented (`known`), while `scans` lets none end, and `tell` records what was counted. The program calls the functions of `interface`.

mod begin;
mod block;
mod blocks;
mod interface;
pub(crate) mod known;
mod reach;
mod scans;
pub(crate) mod shadow;
pub(crate) mod tell;
