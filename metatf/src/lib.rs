//! The Meta-TF runtime: containers, decoding, encoding, and the dynamic reader and writer.
//!
//! Meta-TF (Chilimbi, Jones, Zorn, ISMM 2000) is a language for binary trace formats. A DTD declares sections, records
//! and fields, and metadata records in the trace change how fields are encoded. Most users meet this crate through
//! typed code generated from their DTD by `metatf-codegen` (in a build script), by `metatfc gen` or by the attribute
//! macro in `metatf-derive`. The generated code calls this crate.
//!
//! | module | contents |
//! | --- | --- |
//! | [`container`] | the file layout of a trace: headers, extents, chunks, codecs, index, salvage |
//! | [`format`](mod@format) | the tables that a DTD compiles to |
//! | [`reader`] | sequential reading of records, metadata and groups |
//! | [`columns`] | records as columns, with one vector per leaf |
//! | [`typed`] | the building blocks of generated code |
//! | `parallel` | reading groups on several threads (feature `parallel`) |
//! | `dynamic` | reading and writing any trace by a DTD parsed at run time, and JSON lines (feature `dynamic`) |
//!
//! The default features `zstd`, `lz4` and `zlib` enable the chunk codecs. Without `zstd`, no C compiler is needed.
//! Opening a trace whose codec is not built in returns an error that names the codec. `zstd-decode` decodes zstd in
//! pure Rust but cannot encode it. The default feature `files` maps input files and buffers pending data in temporary
//! files. Without it, files and pending data are kept in memory, and the crate also builds for
//! `wasm32-unknown-unknown`.
//!
//! With the `dynamic` feature, reading or writing a trace needs no generated code:
//!
#![cfg_attr(feature = "dynamic", doc = "```")]
#![cfg_attr(not(feature = "dynamic"), doc = "```ignore")]
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{JsonOptions, Schema, OwnedRecord, Trace, Writer};
//!
//! let dtd = b"section spans 1 {
//!     span: (tag, start, length) { tag.value = 4; start.width = 2; start.interpretation = delta 0;
//!                                  length.width = 1; length.interpretation = none; }
//! }";
//! let schema = Schema::parse("spans.dtd", dtd)?;
//!
//! let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! let mut owned = OwnedRecord::default();
//! for json in [
//!     r#"{"@section":"spans","@record":"span","start":1000,"length":7}"#,
//!     r#"{"@section":"spans","@record":"span","start":1010,"length":70000}"#,
//! ] {
//!     let line = schema.read_json(json.as_bytes(), &mut owned)?;
//!     writer.write(&line, &owned)?;
//! }
//! let file = writer.finish()?;
//!
//! let mut trace = Trace::from_slice(&file)?;
//! let mut out = Vec::new();
//! while trace.next_json(&mut out, JsonOptions::default())? {}
//! assert!(out.ends_with(b"\"start\":1010,\"length\":70000}\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The second span's length does not fit in one byte, so the writer widened the field inside the trace, and the reader
//! followed the change.
//!
//! No input causes a panic. A malformed trace is reported as an [`Error`] with its position, and nothing is returned
//! after the error.

/// Lets generated code refer to this crate by the same name that users do.
#[cfg(test)]
extern crate self as metatf;

mod buffer;
pub mod columns;
mod decode;
#[cfg(feature = "dynamic")]
pub mod dynamic;
mod encode;
mod explain;
pub mod format;
mod formula;
pub mod generated;
#[doc(hidden)]
pub mod internals;
mod outlined;
#[cfg(feature = "parallel")]
pub mod parallel;
mod predict;
pub mod reader;
mod record;
mod state;
mod streams;
pub mod typed;
mod writer;
/// The file layout of a trace: headers, extents, chunks, codecs, index, salvage.
pub use metatf_container as container;
pub use metatf_container::{Error, ErrorKind, MetadataRule, Place, Result, SizeRule};

pub use decode::ContentRow;
pub use encode::RowWriter;
pub use explain::{Explained, explain};
pub use record::{Put, Row, Stopped};
pub use state::Change;
pub use writer::RecordWriter;
