//! Heap traces as queryable tables of objects, sites, stacks, lifetimes, the timeline, marks, processes and traces.
//!
//! [`open`] accepts the traces of one process or of thousands, in any format that `hatf` reads, and returns their
//! [`Tables`]. A table can be scanned any number of times: each scan reads the traces again, one after the other, on
//! its own thread. All tables have a column `trace`, which contains the path of each row's trace. `docs/heap-tables.md`
//! describes the columns.
//!
//! ```
//! use arrow_array::{cast::AsArray as _, types::Int64Type};
//! use hatf_trace::heap::{HeapOptions, HeapWriter};
//! use hatf_trace::{Event, EventSink as _};
//! use metatf_arrow::Scan;
//!
//! let file = tempfile::NamedTempFile::new()?;
//! let mut writer = HeapWriter::new(file.reopen()?, &HeapOptions::default())?;
//! for event in [Event::malloc(0x1000, 16), Event::malloc(0x2000, 48), Event::free(0x1000)] {
//!     writer.event(&event)?;
//! }
//! writer.finish()?;
//!
//! let objects = hatf_arrow::open(&[file.path()])?.get("objects").ok_or("no such table")?;
//! let mut sizes = Vec::new();
//! for batch in objects.scan(&Scan::default())? {
//!     sizes.extend_from_slice(batch?["size"].as_primitive::<Int64Type>().values());
//! }
//! assert_eq!(sizes, [16, 48]);
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
