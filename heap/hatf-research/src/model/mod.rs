//! Models of allocation that summarize a trace, and synthetic traces generated from them.
//!
//! The models are from Zorn and Grunwald, "Evaluating Models of Memory Allocation" (CU-CS-603-92), including the
//! variants and mixtures mentioned in the paper. [`Fitter`] builds a [`Model`] from the events of a trace, and
//! [`Generator`] produces events from a model. The book's page about models describes what the paper leaves open and
//! where it contradicts itself.

mod ages;
mod clock;
pub mod evaluate;
mod file;
mod fit;
mod generate;
mod histogram;
mod kind;
mod law;
mod moments;
mod outline;
mod outline_fit;
mod outline_play;
mod p2;
mod packed;
mod queue;
mod random;
mod row;
mod sizes;
mod source;
mod transitions;

pub use clock::{Clock, Running, Unfreed};
pub use file::{MOST_BUCKETS, Model};
pub use fit::{BUCKETS, Fitted, Fitter, Settings};
pub use generate::{Generator, Limits};
pub use histogram::Histogram;
pub use kind::{Choice, Kind};
pub use moments::{Moments, reduced};
pub use random::{GENERATOR, Random};
pub use row::Row;
pub use sizes::{Words, describe};

#[cfg(test)]
mod tests;
