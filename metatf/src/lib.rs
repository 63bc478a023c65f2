//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
//!
//! Meta-TF (Chilimbi, Jones, Zorn, ISMM 2000) is a language for binary trace formats: a DTD declares sections, records
//! and fields, and metadata records in the trace change how fields are encoded. Most users meet this crate through code
//! that `metatf-codegen` (in a build script), `metatfc gen` or the attribute of `metatf-derive` made from their DTD. That
//! code is typed; this crate does the work.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`container`] | how the bytes of a trace lie in a file: headers, extents, chunks, codecs, index, salvage |
//! | [`format`](mod@format) | the tables a DTD comes down to |
//! | [`reader`] | what comes next in a trace: records, metadata, groups |
//! | [`columns`] | records in columns, a vector for each leaf |
//! | [`typed`] | what generated code is made of |
//! | `parallel` | groups read by several threads (feature `parallel`) |
//! | `dynamic` | any trace by a DTD parsed at run time, JSON lines (feature `dynamic`) |
//!
//! The features `zstd`, `lz4` and `zlib`, on by default, are the codecs of chunks. Without `zstd` no C compiler is needed; a
//! trace that needs a codec that is not built in is an error which says so; `zstd-decode` reads zstd in Rust, and
//! does not write it. The feature `files`, on by default, maps files, and
//! holds in temporary files what has to wait; without, both are in memory, and the crate is for `wasm32-unknown-unknown`, too.
//!
//! With the feature `dynamic` a trace needs no generated code:
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
//! The second span's length does not fit its byte: the writer widened the field in the trace, and the reader followed.
//!
//! No input panics: what is wrong with a trace comes as an [`Error`] with its place, and nothing after it.

/// Generated code names this crate as its users do.
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
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "parallel")]
pub mod parallel;
mod predict;
#[doc(hidden)]
pub mod private;
pub mod reader;
mod record;
mod state;
mod streams;
pub mod typed;
mod writer;
/// How the bytes of a trace lie in a file: headers, extents, chunks, codecs, index, salvage.
pub use metatf_container as container;
pub use metatf_container::{Error, ErrorKind, MetadataRule, Place, Result, SizeRule};

pub use decode::ContentRow;
pub use encode::RowWriter;
pub use explain::{Explained, explain};
pub use record::{Put, Row, Stopped};
pub use state::Change;
pub use writer::RecordWriter;
