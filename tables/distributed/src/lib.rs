//! Heap traces on a distributed engine: DataFusion plans a query, and workers read the traces in place.
//!
//! A [`TraceTable`] is a heap table of `docs/heap-tables.md` or a record table of `docs/tables.md`, over all traces
//! below an address in an object store. The worker that reads a trace builds its rows on request; nothing is exported
//! in advance. For heap tables, the unit of work is a complete trace, because an object depends on all earlier events.
//! For record tables, the unit of work consists of the groups that begin in a byte range of a trace. A [`Cluster`]
//! sends queries to its workers. If a worker disappears, the query is repeated without it.

mod cluster;
mod codec;
mod fetch;
mod guard;
mod session;
mod source;
mod table;

pub use cluster::{Answer, Cluster};
pub use codec::TraceCodec;
pub use guard::{Guard, Token};
pub use session::{in_process, register, serve};
pub use source::{TableName, TraceSource};
pub use table::TraceTable;
