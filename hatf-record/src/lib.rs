//! The preloaded recorder of heap events, and the ring it shares with `hatf record`.
//!
//! Two sides use this crate. `hatf record` makes a [`Ring`] in shared memory, starts a program with
//! the shared object of this crate preloaded, and takes [`Event`]s out of the ring with a
//! [`Consumer`]. The shared object (feature `preload`) stands in front of `malloc` and its family in
//! that program, calls the real functions, and puts an event into the ring for each call.
//!
//! The order of events is the order of tickets, drawn by one atomic addition each: a call that frees
//! draws its ticket before the real function runs, a call that allocates after it returned. So no
//! address is seen allocated again before it is seen freed, whatever the threads do. `realloc` does
//! both, and is two events where a second thread exists: see [`Kind::ReallocBegin`].
//!
//! Nothing here allocates, takes a lock or waits, except for a full ring.
// The shared object goes into other people's programs: it takes nothing along that it does not use.
// `panic = "abort"` marks that build; with the feature alone (as under `--all-features`) std stays.
#![cfg_attr(all(feature = "preload", panic = "abort"), no_std)]

#[cfg(any(test, feature = "preload"))]
mod arena;
mod consumer;
mod event;
mod layout;
mod ring;

pub use consumer::{Consumer, Poll};
pub use event::{Event, Flags, Kind, TEXT_BYTES, TEXT_MAX, Words};
pub use layout::{Header, MAGIC, VERSION};
pub use ring::{Ring, bytes_for};

/// The environment variable that holds the path of the ring.
pub const RING_VARIABLE: &str = "HATF_RING";

#[cfg(feature = "preload")]
mod preload;

#[cfg(all(feature = "preload", panic = "abort"))]
mod no_std;
