//! The report of `stat`.

use super::content::Kind;
use super::{Chunks, Stat};
use crate::fields;
use metatf::container::Order;
use metatf::dynamic::{Schema, Trace};
use metatf::format::METADATA;
use metatf_page::{Column, Facts, Note, Page, Table, Value};
use metatf_parser::schema::{Leaf, LeafId};
use serde::{Serialize, Serializer};
use serde_json::Map;
use std::collections::BTreeMap;

/// Maximum number of named values in a report.
const MOST_NAMES: usize = 12;

/// The statistics of a trace.
#[derive(Serialize)]
pub(super) struct Report {
    trace: String,
    /// The version; `None` for a file without a header.
    version: Option<u8>,
    class: u8,
    order: &'static str,
    dtd: String,
    file_bytes: u64,
    header_bytes: u64,
    records: u64,
    content_bytes: u64,
    metadata: Metadata,
    groups: u64,
    resets: u64,
    sections: Vec<SectionChunks>,
    kinds: Vec<KindCounts>,
    #[serde(skip)]
    is_embedded: bool,
    #[serde(skip)]
    elements: u64,
}

#[derive(Serialize)]
struct Metadata {
    records: u64,
    bytes: u64,
}

/// The chunks of a section.
#[derive(Serialize)]
struct SectionChunks {
    name: Option<String>,
    /// The section number; `None` for chunks without data.
    number: Option<u8>,
    #[serde(flatten)]
    chunks: Chunks,
}

/// The counts of one record type in one section.
#[derive(Serialize)]
struct KindCounts {
    section: Option<String>,
    record: String,
    count: u64,
    bytes: u64,
    leaves: Vec<LeafCounts>,
}

/// The counts of a leaf.
#[derive(Serialize)]
struct LeafCounts {
    path: String,
    bytes: u64,
    values: u64,
    /// The frequency of each counted value, in descending order.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    names: Vec<(String, u64)>,
    #[serde(flatten)]
    predicted: Option<Predicted>,
}

/// For a predicted leaf, the number of values encoded by a code alone, and the number encoded by a code and elements.
#[derive(Clone, Copy, Serialize)]
struct Predicted {
    by_code_alone: u64,
    with_elements: u64,
}

impl Report {
    pub(super) fn new(name: &str, stat: &Stat, trace: &Trace<'_>) -> Self {
        let (reader, Stat { content, schema, chunks, file }) = (trace.reader(), stat);
        let header = reader.container().header();
        let metadata = content.kinds.iter().filter(|((_, record), _)| *record == METADATA).map(|(_, kind)| kind);
        let is_stream = |section: usize| schema.section(section).is_some_and(|section| section.stream.is_some());
        Self {
            trace: name.to_owned(),
            version: reader.container().raw_section().is_none().then_some(header.version),
            class: header.class.number(),
            order: match header.order {
                Order::Little => "little",
                Order::Big => "big",
            },
            dtd: header.dtd_url.clone(),
            file_bytes: file.0,
            header_bytes: file.1,
            records: reader.records_read(),
            content_bytes: content.kinds.values().map(|kind| kind.bytes).sum(),
            metadata: metadata.fold(Metadata { records: 0, bytes: 0 }, |sum, kind| Metadata {
                records: sum.records + kind.count,
                bytes: sum.bytes + kind.bytes,
            }),
            groups: content.groups,
            resets: content.resets,
            sections: chunks.iter().map(|(number, chunks)| SectionChunks::new(schema, *number, chunks)).collect(),
            kinds: content.kinds.iter().map(|(place, kind)| KindCounts::new(schema, *place, kind)).collect(),
            is_embedded: reader.container().dtd_text().is_some(),
            elements: content.kinds.iter().filter(|(place, _)| is_stream(place.0)).map(|(_, kind)| kind.count).sum(),
        }
    }

    fn facts(&self) -> Facts {
        let version = self.version.map_or_else(|| "raw".to_owned(), |version| format!("version {version}"));
        let layout = format!("{version}, class {}, {}-endian", self.class, self.order);
        let dtd = if self.dtd.is_empty() { "unnamed" } else { &self.dtd };
        let embedded = if self.is_embedded { ", embedded" } else { "" };
        let count = Value::Count;
        #[expect(clippy::cast_precision_loss, reason = "a ratio to be read")]
        let ratio = Value::Number(self.content_bytes as f64 / self.file_bytes as f64, 2);
        let content = if self.file_bytes == 0 { "bytes" } else { "bytes, {} times the file" };
        let Metadata { records, bytes } = self.metadata;
        let facts = Facts::new()
            .and("layout", Value::text(layout))
            .and("dtd", Value::text(format!("{dtd}{embedded}")))
            .and_said("file", count(self.file_bytes), Note::new("bytes, header {}").with([count(self.header_bytes)]))
            .and_said("records", count(self.records), Note::new("and {} stream elements").with([count(self.elements)]))
            .and_said("content", count(self.content_bytes), Note::new(content).with([ratio]))
            .and_said(
                "metadata",
                count(records),
                Note::new("records, {} bytes ({})").with([count(bytes), Value::Part(bytes, self.content_bytes)]),
            );
        if self.version != Some(1) {
            return facts;
        }
        facts.and_said("groups", count(self.groups), Note::new("with {} resets").with([count(self.resets)]))
    }

    fn sections(&self) -> Table {
        let names = ["chunks", "content", "stored", "", "codecs, filters"];
        let mut table = Table::new([Column::key("section")].into_iter().chain(names.map(Column::new)));
        for section in &self.sections {
            let Chunks { count, raw, stored, ways, .. } = &section.chunks;
            let way = |((codec, filter), n): (&(&str, &str), &u64)| match *filter {
                "none" => format!("{codec} {n}"),
                _ => format!("{codec} {filter} {n}"),
            };
            let ways: Vec<String> = ways.iter().map(way).collect();
            table.row([
                Value::text(section.shown()),
                Value::Count(*count),
                Value::Count(*raw),
                Value::Count(*stored),
                Value::Part(*stored, *raw),
                Value::text(ways.join(", ")),
            ]);
        }
        table
    }

    /// Returns a table with a row for each record type and each of its leaves.
    fn kinds(&self) -> Table {
        let has_values = self.kinds.iter().flat_map(|kind| &kind.leaves).any(|leaf| !leaf.said().is_empty());
        let names = ["count", "bytes", "", "each", "values"].into_iter().take(4 + usize::from(has_values));
        let mut table = Table::new([Column::key("record, leaf")].into_iter().chain(names.map(Column::new)));
        for kind in &self.kinds {
            let section = kind.section.as_deref().map_or_else(String::new, |section| format!("{section} "));
            table.sum(self.row(format!("{section}{}", kind.record), kind.count, kind.bytes));
            for leaf in &kind.leaves {
                let row = self.row(format!("  {}", leaf.path), leaf.values, leaf.bytes);
                table.row(row.into_iter().chain([Value::Lines(leaf.said())]));
            }
        }
        table
    }

    fn row(&self, name: String, count: u64, bytes: u64) -> [Value; 5] {
        #[expect(clippy::cast_precision_loss, reason = "an average to be read")]
        let each = bytes as f64 / count.max(1) as f64;
        let part = Value::Part(bytes, self.content_bytes);
        [Value::text(name), Value::Count(count), Value::Count(bytes), part, Value::Number(each, 2)]
    }
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.trace.clone());
        page.push(self.facts());
        if !self.sections.is_empty() {
            page.heading("SECTIONS (chunks and their bytes)");
            page.push(self.sections());
        }
        page.heading("RECORDS (before compression)");
        page.push(self.kinds());
        page
    }
}

impl SectionChunks {
    fn new(schema: &Schema, number: Option<u8>, chunks: &Chunks) -> Self {
        let name = number.and_then(|number| schema.dtd.section(number)?.name.clone());
        Self { name, number, chunks: chunks.clone() }
    }

    fn shown(&self) -> String {
        match (&self.name, self.number) {
            (Some(name), _) => name.clone(),
            (None, None) => "(DTD and others)".to_owned(),
            (None, Some(0)) => "(global)".to_owned(),
            (None, Some(number)) => format!("section {number}"),
        }
    }
}

impl KindCounts {
    fn new(schema: &Schema, (section, record): (usize, u16), kind: &Kind) -> Self {
        let section = schema.section(section).and_then(|section| section.name.clone());
        let record = schema.record(record);
        let leaf = |(id, path): (LeafId, String)| {
            let &(bytes, values) = kind.leaves.get(usize::from(id.0)).filter(|(_, values)| *values > 0)?;
            let counted = kind.value_counts.get(&id.0).zip(record?.leaf(id));
            let predicted = kind.predicted_counts.get(&id.0);
            Some(LeafCounts {
                path,
                bytes,
                values,
                names: counted.map_or_else(Vec::new, |(counts, leaf)| named_counts(counts, leaf)),
                predicted: predicted.map(|&(by_code_alone, with_elements)| Predicted { by_code_alone, with_elements }),
            })
        };
        let leaves = record.map(fields::names).into_iter().flatten().filter_map(leaf).collect();
        let record = record.map_or("?", |record| &record.name).to_owned();
        Self { section, record, count: kind.count, bytes: kind.bytes, leaves }
    }
}

impl LeafCounts {
    /// Returns a description of the values as lines.
    fn said(&self) -> Vec<String> {
        let predicted = self.predicted.map(|Predicted { by_code_alone: codes, with_elements: elements }| {
            format!("{} by code alone, {elements} with elements", Value::Part(codes, codes + elements))
        });
        let mut names: Vec<String> =
            self.names.iter().take(MOST_NAMES).map(|(name, count)| format!("{name} {count}")).collect();
        let more = self.names.len().saturating_sub(MOST_NAMES);
        names.extend((more > 0).then(|| format!("and {more} more values")));
        predicted.into_iter().chain((!names.is_empty()).then(|| names.join(", "))).collect()
    }
}

/// Serializes counts as an object, keyed by name. If several names are equal, the last count is used.
fn as_object<S: Serializer>(counts: &[(String, u64)], to: S) -> Result<S::Ok, S::Error> {
    let members = counts.iter().map(|(name, count)| (name.clone(), (*count).into()));
    members.collect::<Map<_, _>>().serialize(to)
}

/// Returns the counts with the names of the values, as printed by `dump`.
fn named_counts(counts: &BTreeMap<u64, u64>, leaf: &Leaf) -> Vec<(String, u64)> {
    let name = |value: u64| {
        let mut text = String::new();
        fields::number(&mut text, leaf, value);
        text
    };
    let mut named: Vec<(String, u64)> = counts.iter().map(|(&value, &count)| (name(value), count)).collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    named
}
