//! Tools over Meta-TF traces of any DTD.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`recode`] | the same records in another encoding: planners, presets |
//! | [`convert`] | the records of one DTD as those of another, fields matched by name |
//! | [`merge`] | several traces as one, in order |
//! | [`compare`] | what differs between two traces |
//! | [`condition`] | which rows satisfy a condition such as `size > 4096 and thread != 1` |
//! | [`fields`] | the fields of a record by their names, and its values one after the other |
//! | [`roles`] | what fields are to tools, by annotations: times, threads, numbers of spans |
//! | [`spans`] | which records begin and end spans, and what lies in what |
//! | [`built_in`] | the DTDs that come with the project |
//! | [`pipeline`] | a thread that works on the results of another, in order |
//!
//! Traces are read and written by [`metatf::dynamic`]. With the feature `parallel` several threads plan the leaves of a block.
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
//! // One metadata record says the stride.
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
