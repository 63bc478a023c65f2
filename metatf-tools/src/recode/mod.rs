//! Recoding writes the same records in another encoding. It drops the metadata records of a trace and plans new ones.
//!
//! Records are stored as columns until a *block* is full (a number of records, at most some tens of megabytes). Then
//! every leaf is planned separately, and the block is written with the metadata records of all plans. In version 1,
//! each block starts with a reset chunk and thus from the DTD's state, so blocks are independent and the plan of each
//! block is exact. Version 0 has no resets, so the state continues from block to block.
//!
//! The content of the records is preserved: values, order, comments, groups, stream elements, tables and user metadata.
//! A plan may change the width and interpretation of numeric leaves, except for constants. Leaves with `sectionOffset`,
//! `sectionStride` or a model keep their interpretation in every record.
//!
//! | module | content |
//! | --- | --- |
//! | `plan`, `preset` | the available plans; combinations of plan, codec, filter, chunks and groups |
//! | `leaf_column`, `section_columns` | the records of a block, leaf by leaf |
//! | `fill_columns`, `item_row` | filling the columns |
//! | `column_encoder` | encoding the columns |
//! | `setting` | the encoding of a leaf, and the cost of changing it by metadata |
//! | `plan_step`, `leaf_steps` | the bytes that a leaf's values need in each encoding |
//! | `kept_interpretation` | leaves that keep their interpretation |
//! | `paper_plans` | the plans of the paper's section 3.3 |
//! | `optimal`, `path_modes`, `lanes`, `offset_windows` | the cheapest path |
//! | `leaf_plan` | the changes of a leaf in a block according to its plan |
//! | `trial_encoding`, `codes` | the codes of models in a block, and their widths |
//! | `planners` | the threads that plan leaves |
//! | `plan_trial` | the choice of the plan that compresses best |
//! | `section_plans`, `block` | the records of a block by section, and the interpretations that their leaves keep |
//! | `block_writer`, `write_block` | planning and writing a block |
//! | `block_sink`, `block_pipeline` | the destination of blocks: a writer, or a separate thread that writes them |
//! | `copy`, `converted` | from a trace to blocks, with the same DTD or a different one |
//! | `writer` | a writer that plans |
//! | `survey` | the size of each leaf with its DTD encoding and with the cheapest path |
//! | `failure` | the error of recoding |
//!
//! ```
//! use metatf::container::WriteOptions;
//! use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
//! use metatf::format::Interpretation;
//! use metatf_tools::recode::{Preset, recode, survey};
//!
//! # let dtd = b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }";
//! # let schema = Schema::parse("ticks.dtd", dtd)?;
//! # let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default())?;
//! # for n in 0..1000 {
//! #     let mut owned = OwnedRecord::default();
//! #     owned.push_number(n * 10);
//! #     writer.record(1, 3, &owned)?;
//! # }
//! # let file = writer.finish()?;
//! // The trace contains the numbers 0, 10, 20 and so on. Its DTD stores 8 bytes per number; a stride stores no bytes.
//! let leaves = survey(&mut Trace::from_slice(&file)?, || {})?;
//! assert_eq!((leaves[0].values, leaves[0].declared), (1000, 8000));
//! assert_eq!(leaves[0].spent[0].interpretation, Interpretation::Stride(0, 10));
//! assert!(leaves[0].best < 50);
//!
//! let mut write = WriteOptions::default();
//! Preset::Archive.apply(&mut write);
//! let options = Preset::Archive.options();
//! let (archive, report) = recode(&mut Trace::from_slice(&file)?, Vec::new(), &write, options, || {})?;
//! assert_eq!(report.records, 1000);
//! assert!(archive.len() < file.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod block_pipeline;
mod block_sink;
mod block_writer;
mod codes;
mod column_encoder;
mod converted;
mod copy;
mod failure;
mod fill_columns;
mod item_row;
mod kept_interpretation;
mod lanes;
mod leaf_column;
mod leaf_plan;
mod leaf_steps;
mod offset_windows;
mod optimal;
mod paper_plans;
mod path_modes;
mod plan;
mod plan_step;
mod plan_trial;
mod planners;
mod preset;
mod section_columns;
mod section_plans;
mod setting;
mod survey;
mod trial_encoding;
mod write_block;
mod writer;

pub use converted::recode_converted;
pub use copy::recode;
pub use failure::Failure;
pub use plan::Plan;
pub use preset::Preset;
pub use survey::{LeafSurvey, Spent, survey};
pub use write_block::Report;
pub use writer::PlannedWriter;

use metatf::format::{Format, Leaf, Record};

/// The handling of a trace's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Groups {
    /// Groups are kept.
    #[default]
    Keep,
    /// A group ends after the block with which its values reach this number of bytes.
    Bytes(usize),
}

/// The options for planning.
#[derive(Clone, Debug)]
pub struct Options {
    /// The plan.
    pub plan: Plan,
    /// Additional plans to try if chunks are compressed (version 1). Each block uses the plan that makes it shortest in
    /// the file. All plans are tried on the first block and then on every 16th block.
    pub others: Vec<Plan>,
    /// The fields that the plan applies to, as field names, paths in the record, or records with paths (`alloc.size`).
    /// If empty, the plan applies to every possible field. Other fields use the naive plan.
    pub fields: Vec<String>,
    /// The number of records in a block.
    pub block: usize,
    /// The handling of groups.
    pub groups: Groups,
    /// The minimum size in bytes of an argument in a metadata record that sets an interpretation; HATF 1.0 uses 8. The
    /// default is 1, so that each argument is as short as possible. The plan `optimal` assumes the default.
    pub argument_bytes: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            plan: Plan::default(),
            others: Vec::new(),
            fields: Vec::new(),
            block: 1 << 18,
            groups: Groups::default(),
            argument_bytes: 1,
        }
    }
}

/// Returns the first name that does not denote a numeric field of the format.
#[must_use]
pub fn unknown_field<'f>(format: &Format, fields: &'f [String]) -> Option<&'f str> {
    let known = |name: &&String| {
        let named = |record: &Record, leaf: &Leaf| leaf.is_settable() && is_named(record, leaf, name);
        format.records.iter().any(|r| r.leaves.iter().any(|leaf| named(r, leaf)))
    };
    fields.iter().find(|name| !known(name)).map(String::as_str)
}

fn is_named(record: &Record, leaf: &Leaf, name: &str) -> bool {
    let of_record = name.strip_prefix(&*record.name).and_then(|rest| rest.strip_prefix('.'));
    leaf.field == name || leaf.path == name || of_record.is_some_and(|rest| leaf.path == rest || leaf.field == rest)
}

fn is_chosen(record: &Record, leaf: &Leaf, fields: &[String]) -> bool {
    fields.is_empty() || fields.iter().any(|name| is_named(record, leaf, name))
}
