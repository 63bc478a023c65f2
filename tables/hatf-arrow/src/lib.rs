//! Heap traces as queryable tables of objects, sites, stacks, lifetimes, the timeline, marks, processes and traces.
//!
//! [`open`] accepts the traces of one process or of thousands, in any format that `hatf` reads, and returns their
//! [`Tables`]. A table can be scanned any number of times: each scan reads the traces again, one after the other, on
//! its own thread. All tables have a column `trace`, which contains the path of each row's trace. `docs/heap-tables.md`
//! describes the columns.
//!
//! ```no_run
//! use metatf_arrow::{Scan, Table as _};
//!
//! let tables = hatf_arrow::open(&["a.mtf", "b.mtf"])?;
//! let sites = tables.get("sites").ok_or("no such table")?;
//! for batch in sites.scan(&Scan::default())? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
mod frame;
mod names;
mod origin;
mod rows;
mod scan;
mod tables;

pub use names::Names;
pub use origin::{Origin, origin};
pub use tables::{Tables, open};
