//! `stat`: what a trace is made of.

mod content;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result};
use crate::input::{self, Reopenable};
use crate::options::ThreadArgs;
use crate::raw::RawArgs;
use crate::{fields, output};
use clap::ValueEnum;
use content::{Content, Counted, Kind, TELL};
use metatf::container::{Codec, Filter, Header, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::parallel::Out;
use metatf_cli::Progress;
use metatf_parser::schema::Leaf;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const MORE: &str = "\
The bytes of a leaf are those that records store before compression: 0 for
default, stride and sectionStride. `metadata` counts the records that change
widths and interpretations. A leaf whose values have names (`values`, `flags`,
format `bool`) has a line with the count of each, and so has the tag of a
record of all other tags (`tag.value = other;`).

Examples:
  metatfc stat T.mtf
  metatfc stat --raw --class 2 --order little --dtd mps mps.log
  metatfc stat --format json T.mtf | jq '.sections[] | {name, stored_bytes}'";

/// Print what a trace holds: records by type, bytes by leaf, compression by section
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` is standard input
    trace: String,
    /// How to print
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    raw: RawArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    #[default]
    Text,
    Json,
}

/// Chunks of one section.
#[derive(Clone, Debug, Default)]
struct Chunks {
    count: u64,
    raw: u64,
    stored: u64,
    codecs: BTreeMap<&'static str, u64>,
    filters: BTreeMap<&'static str, u64>,
    /// Codec and filter.
    ways: BTreeMap<(&'static str, &'static str), u64>,
}

/// All that is counted.
struct Stat {
    content: Content,
    schema: Schema,
    /// Version 1, by section number; `None` for what is no data.
    chunks: BTreeMap<Option<u8>, Chunks>,
    /// Bytes of the whole file, of its header.
    file: (u64, u64),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.trace);
    let is_raw = args.raw.given()?.is_some();
    let file = Reopenable::new(&args.trace, !is_raw)?;
    let (schema, reader) = args.raw.reopen(&file, &args.dtd, false)?;
    let fail = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let mut stat = Stat {
        content: Content::first(&schema),
        chunks: BTreeMap::new(),
        file: (file.bytes(), reader.header().len),
        schema: schema.clone(),
    };
    if !is_raw {
        stat.count_chunks(file.open(false)?);
    }
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| fail(&e))?;
    trace.reader_mut().set_all(true);
    let counted = stat.count(&mut trace, args.threads.number());
    // Counts before an error are printed.
    match args.format {
        OutputFormat::Text => output::print(&stat.text(&args.trace, &trace))?,
        OutputFormat::Json => output::print_json(&stat.json(&args.trace, &trace))?,
    }
    counted.map_err(|e| fail(&e))
}

impl Stat {
    /// Lists the chunks by the index, or by their headers. Errors in them are left to the reader of the trace.
    fn count_chunks(&mut self, mut reader: Reader<'_>) {
        let Ok(chunks) = reader.chunks().map(<[_]>::to_vec) else { return };
        for (n, chunk) in chunks.iter().enumerate() {
            let counts = self.chunks.entry(chunk.is_data().then_some(chunk.section)).or_default();
            counts.count += 1;
            counts.raw += u64::from(chunk.raw_len);
            counts.stored += u64::from(chunk.stored_len);
            let codec = Codec::name_of(chunk.codec).unwrap_or("unknown");
            let filter = reader.filter_of(n).ok().and_then(Filter::name_of).unwrap_or("unknown");
            *counts.codecs.entry(codec).or_default() += 1;
            *counts.filters.entry(filter).or_default() += 1;
            *counts.ways.entry((codec, filter)).or_default() += 1;
        }
    }

    /// Counts records; those before an error count, too.
    fn count(&mut self, trace: &mut Trace<'_>, threads: usize) -> metatf::Result<()> {
        let mut progress = Progress::new("records");
        let schema = self.schema.clone();
        let count = |group: &mut Trace<'_>, out: &mut Out<'_, Counted>| {
            let mut content = Content::new(&schema);
            let counted = content.count(group, &mut || out.send(Counted::Events(TELL)));
            let _ = out.send(Counted::Content(content));
            counted
        };
        let take = |counted| {
            match counted {
                Counted::Events(events) => progress.add(events),
                Counted::Content(content) => self.content.add(content),
            }
            Ok(())
        };
        trace.par_groups().threads(threads).streamed(count, take)
    }

    /// Bytes of all records.
    fn total(&self) -> u64 {
        self.content.kinds.values().map(|k| k.bytes).sum()
    }

    /// Records and bytes of metadata.
    fn metadata(&self) -> (u64, u64) {
        let kinds = self.content.kinds.iter().filter(|((_, record), _)| *record == metatf::format::METADATA);
        kinds.fold((0, 0), |sum, (_, kind)| (sum.0 + kind.count, sum.1 + kind.bytes))
    }

    fn names(&self, section: usize, record: u16) -> (Option<&str>, &str) {
        let section = self.schema.section(section).and_then(|s| s.name.as_deref());
        (section, self.schema.record(record).map_or("?", |r| &r.name))
    }

    fn leaves(&self, record: u16, kind: &Kind) -> Vec<Counts> {
        let Some(r) = self.schema.record(record) else { return Vec::new() };
        let names = fields::names(r).into_iter();
        let counts = |(id, name): (metatf_parser::schema::LeafId, String)| {
            let &(bytes, values) = kind.leaves.get(usize::from(id.0))?;
            let predicted_counts = kind.predicted_counts.get(&id.0).copied();
            let value_counts = kind.value_counts.get(&id.0).zip(r.leaf(id));
            let names = value_counts.map_or_else(Vec::new, |(counts, leaf)| named_counts(counts, leaf));
            (values > 0).then_some(Counts { name, bytes, values, predicted_counts, names })
        };
        names.filter_map(counts).collect()
    }

    fn text(&self, name: &str, trace: &Trace<'_>) -> String {
        let header = trace.reader().container().header();
        let mut out = String::new();
        let total = self.total();
        let (metadata, metadata_bytes) = self.metadata();
        let elements =
            self.content.kinds.iter().filter(|((s, _), _)| self.is_stream(*s)).map(|(_, k)| k.count).sum::<u64>();
        let mut line = |what: &str, value: String| {
            let _ = writeln!(out, "{what:<10} {value}");
        };
        line("trace", input::name(name).to_owned());
        let is_raw = trace.reader().container().raw_section().is_some();
        line("layout", layout(header, is_raw));
        let embedded = if trace.reader().container().dtd_text().is_some() { ", embedded" } else { "" };
        let url = Some(header.dtd_url.as_str()).filter(|u| !u.is_empty());
        line("dtd", format!("{}{embedded}", url.unwrap_or("without a name")));
        line("file", format!("{} bytes, header {}", self.file.0, self.file.1));
        line("records", format!("{}, {elements} stream elements", trace.reader().records_read()));
        line("content", format!("{total} bytes{}", ratio(total, self.file.0)));
        line("metadata", format!("{metadata} records, {metadata_bytes} bytes ({})", percent(metadata_bytes, total)));
        if header.version == 1 {
            line("groups", format!("{}, {} resets inside", self.content.groups, self.content.resets));
        }
        self.chunk_table(&mut out);
        for (&(section, record), kind) in &self.content.kinds {
            let (section, name) = self.names(section, record);
            let name = section.map_or_else(|| name.to_owned(), |s| format!("{s} {name}"));
            let _ = writeln!(
                out,
                "\n{name:<28} {:>12} records {:>14} bytes {:>7}",
                kind.count,
                kind.bytes,
                percent(kind.bytes, total)
            );
            for Counts { name: leaf, bytes, values, predicted_counts, names } in self.leaves(record, kind) {
                #[allow(clippy::cast_precision_loss, reason = "an average to be read")]
                let each = bytes as f64 / values as f64;
                let _ = writeln!(
                    out,
                    "  {leaf:<26} {values:>12} values  {bytes:>14} bytes {:>7}  {each:.2} each{}",
                    percent(bytes, total),
                    predicted_counts.map_or(String::new(), |(codes, elements)| {
                        format!(", {} by a code alone, {elements} with elements", percent(codes, codes + elements))
                    })
                );
                if !names.is_empty() {
                    let shown = names.iter().take(MOST_NAMES).map(|(name, count)| format!("{name} {count}"));
                    let more = names.len().saturating_sub(MOST_NAMES);
                    let more = if more > 0 { format!(", and {more} more values") } else { String::new() };
                    let _ = writeln!(out, "  {:<26} {}{more}", "", shown.collect::<Vec<_>>().join(", "));
                }
            }
        }
        out
    }

    fn chunk_table(&self, out: &mut String) {
        if self.chunks.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "\n{:<20} {:>8} {:>14} {:>14} {:>8}  codecs, filters",
            "section", "chunks", "content", "stored", "share"
        );
        for (number, chunks) in &self.chunks {
            let way = |((codec, filter), n): (&(&str, &str), &u64)| match *filter {
                "none" => format!("{codec} {n}"),
                _ => format!("{codec} {filter} {n}"),
            };
            let ways: Vec<String> = chunks.ways.iter().map(way).collect();
            let _ = writeln!(
                out,
                "{:<20} {:>8} {:>14} {:>14} {:>8}  {}",
                self.section_name(*number),
                chunks.count,
                chunks.raw,
                chunks.stored,
                percent(chunks.stored, chunks.raw),
                ways.join(", ")
            );
        }
    }

    fn section_name(&self, number: Option<u8>) -> String {
        match number {
            None => "(DTD and others)".to_owned(),
            Some(0) => "(global)".to_owned(),
            Some(n) => {
                let section = self.schema.dtd.section(n).and_then(|s| s.name.clone());
                section.unwrap_or_else(|| format!("section {n}"))
            }
        }
    }

    fn is_stream(&self, section: usize) -> bool {
        self.schema.section(section).is_some_and(|s| s.stream.is_some())
    }

    fn json(&self, name: &str, trace: &Trace<'_>) -> Value {
        let header = trace.reader().container().header();
        let (metadata, metadata_bytes) = self.metadata();
        let kinds = self.content.kinds.iter().map(|(&(section, record), kind)| {
            let (section, name) = self.names(section, record);
            let leaves = self.leaves(record, kind).into_iter();
            json!({
                "section": section,
                "record": name,
                "count": kind.count,
                "bytes": kind.bytes,
                "leaves": leaves
                    .map(Counts::json)
                    .collect::<Vec<_>>(),
            })
        });
        let sections = self.chunks.iter().map(|(number, chunks)| {
            json!({
                "name": number.and_then(|n| self.schema.dtd.section(n)).and_then(|s| s.name.clone()),
                "number": number,
                "chunks": chunks.count,
                "raw_bytes": chunks.raw,
                "stored_bytes": chunks.stored,
                "codecs": chunks.codecs,
                "filters": chunks.filters,
            })
        });
        json!({
            "trace": input::name(name),
            "version": trace.reader().container().raw_section().map_or(Some(header.version), |_| None),
            "class": header.class.number(),
            "order": format!("{:?}", header.order).to_lowercase(),
            "dtd": header.dtd_url,
            "file_bytes": self.file.0,
            "header_bytes": self.file.1,
            "records": trace.reader().records_read(),
            "content_bytes": self.total(),
            "metadata": { "records": metadata, "bytes": metadata_bytes },
            "groups": self.content.groups,
            "resets": self.content.resets,
            "sections": sections.collect::<Vec<_>>(),
            "kinds": kinds.collect::<Vec<_>>(),
        })
    }
}

/// Counts of a leaf.
struct Counts {
    name: String,
    bytes: u64,
    values: u64,
    /// Of a predicted one: values that a code alone encodes, and those that take elements.
    predicted_counts: Option<(u64, u64)>,
    /// Of one whose values are counted: how often each occurs, the most frequent first.
    names: Vec<(String, u64)>,
}

/// Names of values that are printed as text.
const MOST_NAMES: usize = 12;

/// Gives the counts of values their names, as `dump` prints them.
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

impl Counts {
    fn json(self) -> Value {
        let mut json = json!({ "path": self.name, "bytes": self.bytes, "values": self.values });
        if let (false, Some(object)) = (self.names.is_empty(), json.as_object_mut()) {
            let names: serde_json::Map<String, Value> =
                self.names.into_iter().map(|(name, n)| (name, n.into())).collect();
            object.insert("names".to_owned(), names.into());
        }
        if let (Some((codes, elements)), Some(object)) = (self.predicted_counts, json.as_object_mut()) {
            object.insert("by_code_alone".to_owned(), codes.into());
            object.insert("with_elements".to_owned(), elements.into());
        }
        json
    }
}

fn layout(header: &Header, is_raw: bool) -> String {
    let order = match header.order {
        Order::Little => "little",
        Order::Big => "big",
    };
    let version = if is_raw { "raw".to_owned() } else { format!("version {}", header.version) };
    format!("{version}, class {}, {order}-endian", header.class.number())
}

#[allow(clippy::cast_precision_loss, reason = "a share to be read")]
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// How much shorter the file is than its content.
#[allow(clippy::cast_precision_loss, reason = "a share to be read")]
fn ratio(content: u64, file: u64) -> String {
    if file == 0 { String::new() } else { format!(", {:.2} times the file", content as f64 / file as f64) }
}
