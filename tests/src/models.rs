//! Vectors that pin the models of predicted leaves (spec 4.2): for each [`Rule`] a trace that reads differently if the
//! rule is broken.
//!
//! The vectors of heaps are found by random search: [`search`] applies random events to two heaps of the oracle, one
//! intact and one with the rule broken, until they differ, and then removes the events that are not needed.

mod search;
mod start;
mod tables;

pub use search::search;
pub use tables::tables;

use crate::oracle::{self, Rule};
use crate::{Seen, What, runtime};
use metatf::container::{ChunkSpec, ChunkWriter, Class, Codec, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema};

/// Trace that exposes a rule.
pub struct Case {
    /// DTD of the trace.
    pub dtd: String,
    /// Elements of each chunk of the stream section.
    pub elements: Vec<Vec<u64>>,
    /// Content of the section of records.
    pub content: Vec<u8>,
    /// Number of records, including one that is an error.
    pub records: u32,
}

/// Number of the stream section.
const STREAM: u8 = 2;
/// Number of the section of records.
const RECORDS: u8 = 1;

impl Case {
    /// Returns the bytes of the trace, which has one group.
    #[must_use]
    pub fn trace(&self) -> Vec<u8> {
        let options = WriteOptions { codec: Codec::Zstd(19), class: Class::Bits64, ..WriteOptions::default() };
        let mut writer = ChunkWriter::new(Vec::new(), &options, self.dtd.as_bytes()).expect("memory takes anything");
        let mut first = true;
        for elements in &self.elements {
            let most = elements.iter().max().copied().unwrap_or(0);
            let width = (8 - most.leading_zeros() as usize / 8).max(1);
            let raw: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()[..width].to_vec()).collect();
            let records = elements.len() as u32;
            let spec = ChunkSpec {
                section: STREAM,
                reset: first,
                group_start: first,
                width: width as u8,
                records,
                ..ChunkSpec::default()
            };
            writer.data(spec, &raw).expect("memory takes anything");
            first = false;
        }
        let spec = ChunkSpec {
            section: RECORDS,
            reset: true,
            group_start: first,
            records: self.records,
            ..ChunkSpec::default()
        };
        writer.data(spec, &self.content).expect("memory takes anything");
        writer.finish(self.records.into()).expect("memory takes anything")
    }
}

/// Returns the records of a trace, and whether they end with an error. The oracle and the runtime must agree.
#[must_use]
pub fn read(schema: &Schema, trace: &[u8]) -> (Vec<Seen>, bool) {
    let whole = of_oracle(schema, trace, None);
    let (seen, result) = runtime::read(schema, trace);
    let same = (records(seen), result.is_err());
    assert!(whole == same, "the oracle and the reader differ");
    whole
}

/// Returns the result of the oracle with a rule broken.
#[must_use]
pub fn of_oracle(schema: &Schema, trace: &[u8], broken: Option<Rule>) -> (Vec<Seen>, bool) {
    let (seen, result) = oracle::read_broken(&schema.dtd, trace, broken);
    (records(seen), result.is_err())
}

fn records(seen: Vec<Seen>) -> Vec<Seen> {
    seen.into_iter().filter(|seen| seen.what == What::Record).collect()
}

/// Returns the records of a trace as JSON lines, up to its end or an error.
#[must_use]
pub fn lines(schema: &Schema, trace: &[u8]) -> Vec<String> {
    let Ok(mut trace) = runtime::open(schema, trace) else { return Vec::new() };
    let mut lines = Vec::new();
    let mut line = Vec::new();
    while let Ok(true) = trace.next_json(&mut line, JsonOptions::default()) {
        lines.push(String::from_utf8(std::mem::take(&mut line)).expect("JSON is UTF-8").trim_end().to_owned());
    }
    lines
}
