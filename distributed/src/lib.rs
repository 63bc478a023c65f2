//! Heap traces on a distributed engine: DataFusion plans a query, and workers read the traces where they lie.
//!
//! A [`TraceTable`] is one of the tables of `docs/heap-tables.md`, or a table of records as `docs/tables.md` has them, over all traces below
//! an address of an object store. Its rows are made when they are asked for, on the worker that has the trace; nothing is exported before.
//! Of a heap the unit of work is a trace as a whole, as what an object is depends on everything before it; of records, the groups that begin
//! in a range of its bytes. A [`Cluster`] asks its workers a query, and asks again without those that are gone.

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
