//! Recoding: the same records in another encoding. The metadata records of a trace are dropped, and planned again.
//!
//! Records are held as columns until a *block* is full (a number of records, at most some tens of megabytes), every leaf is planned
//! by itself, and the block is written with the metadata records of all plans. In version 1 each block starts from the DTD's
//! state (a chunk that says reset), so that blocks are planned by themselves and the plan of one is exact; in version 0, which has no
//! resets, state goes on.
//!
//! What a record says is kept: values, order, comments, groups, stream elements, tables and user metadata. What a plan may
//! change is width and interpretation of numeric leaves that are neither constant nor `sectionOffset`, `sectionStride` or a
//! model's: those keep their interpretation, record for record.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `plan`, `preset` | which plans there are; plan, codec, filter, chunks and groups together |
//! | `leaf_column`, `section_columns` | the records of a block, leaf by leaf |
//! | `fill_columns`, `item_row` | how they get there |
//! | `column_encoder` | how they are encoded again |
//! | `setting` | what metadata changes of a leaf, and what that costs |
//! | `plan_step`, `leaf_steps` | what a leaf's values need in each encoding |
//! | `kept_interpretation` | leaves that keep their interpretation |
//! | `paper_plans` | the plans of the paper's section 3.3 |
//! | `optimal`, `path_modes`, `lanes`, `offset_windows` | the cheapest path |
//! | `leaf_plan` | the changes that a leaf's plan comes to in a block |
//! | `trial_encoding`, `codes` | what models will make of a block, and the widths of their codes |
//! | `planners` | the threads that plan leaves |
//! | `plan_trial` | which plan compresses best |
//! | `section_plans`, `block` | the records of a block, by section, and what their leaves keep |
//! | `block_writer`, `write_block` | how a block is planned and written |
//! | `block_sink`, `block_pipeline` | where blocks go: to a writer, or to a thread of its own that writes them |
//! | `copy`, `converted` | from a trace to blocks; the same by another DTD |
//! | `writer` | a writer that plans |
//! | `survey` | what each leaf takes by its DTD, and by the cheapest path |
//! | `failure` | why recoding ended |

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

/// What becomes of a trace's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// They stay.
    #[default]
    Keep,
    /// A group ends with the block in which its values pass this many.
    Bytes(usize),
}

/// How to plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// The plan.
    pub plan: Plan,
    /// Plans that are tried beside it where chunks are compressed (version 1): a block takes the one by which it is shortest in the
    /// file. All are tried on the first block, and on one in 16 behind it.
    pub others: Vec<Plan>,
    /// The fields it is for: by field name, by path in the record, or by record and path (`alloc.size`). None: every
    /// field it can be applied to. Other fields are naive.
    pub fields: Vec<String>,
    /// Records in a block.
    pub block: usize,
    /// Groups.
    pub groups: Groups,
    /// Bytes of an argument in a metadata record that sets an interpretation, at least: HATF 1.0's have 8. By default 1, so that each
    /// has as few as hold it. The plan `optimal` takes them to be as short as they go.
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

/// The first of the names that no numeric field of the format has.
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
