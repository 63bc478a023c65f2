//! Tools for Meta-TF traces with any DTD.
//!
//! | module | content |
//! | --- | --- |
//! | [`recode`] | writing the same records in another encoding: planners, presets |
//! | [`convert`] | converting records to another DTD, matching fields by name |
//! | [`merge`] | merging several traces in order |
//! | [`compare`] | comparing two traces |
//! | [`condition`] | which rows satisfy a condition such as `size > 4096 and thread != 1` |
//! | [`fields`] | the fields of a record by name, and its values in order |
//! | [`roles`] | the meaning of fields to tools, by annotation: times, threads, span numbers |
//! | [`spans`] | the records that begin and end spans, and the nesting of spans |
//! | [`built_in`] | the DTDs included in the project |
//! | [`pipeline`] | a thread that processes the results of another in order |
//!
//! Traces are read and written with [`metatf::dynamic`]. With the `parallel` feature, several threads plan the leaves
//! of a block.
//!
//! ```
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
//! use metatf_tools::recode::{Options, recode};
//!
//! let dtd = b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }";
//! let schema = Schema::parse("ticks.dtd", dtd)?;
//! let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! let mut owned = OwnedRecord::default();
//! for n in 0..1000 {
//!     let json = format!(r#"{{"@section":"s","@record":"tick","n":{}}}"#, n * 10);
//!     let line = schema.read_json(json.as_bytes(), &mut owned)?;
//!     writer.write(&line, &owned)?;
//! }
//! let file = writer.finish()?;
//!
//! let mut trace = Trace::from_slice(&file)?;
//! let (recoded, report) = recode(&mut trace, Vec::new(), &WriteOptions::default(), Options::default(), || {})?;
//! assert_eq!(report.records, 1000);
//! // One metadata record sets the stride.
//! assert!(recoded.len() < file.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod built_in;
pub mod compare;
pub mod condition;
pub mod convert;
mod field_names;
pub mod fields;
pub mod merge;
pub mod pipeline;
pub mod recode;
pub mod roles;
pub mod spans;
mod stream_sections;
mod value_indices;
