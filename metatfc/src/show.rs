//! `show`: what a DTD means, leaf by leaf.

use crate::dtd::{self, DtdArgs};
use crate::failure::Result;
use crate::{fields, output};
use clap::ValueEnum;
use metatf_cli::shown;
use metatf_parser::Property;
use metatf_parser::schema::{Dtd, Format, Leaf, Names, Origin, Record, Section};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const MORE: &str = "\
The table has a row for each leaf: its index (which metadata records use), its
name, its width and interpretation and where the DTD sets them (block of a
record, section, global), the leaves that share its previous value, its
annotations and its documentation.

Examples:
  metatfc show spans.dtd
  metatfc show T.mtf                       what the DTD of a trace means
  metatfc show --format dtd T.mtf > T.dtd  the DTD of a trace
  metatfc show --format json spans.dtd | jq '.sections[].records[].name'";

/// Show the fields of all records: width, interpretation, and where the DTD sets them
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A DTD or a trace; `-` is standard input (a DTD)
    file: String,
    /// How to print
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
    #[command(flatten)]
    dtd: DtdArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// A table for every record
    #[default]
    Text,
    /// The same for programs
    Json,
    /// The DTD's own text, as a trace embeds it
    Dtd,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let dtd = dtd::of(&args.file, &args.dtd)?;
    match args.format {
        OutputFormat::Text => output::print(&text(&dtd)),
        OutputFormat::Dtd => output::print_data(&dtd.text),
        OutputFormat::Json => output::print_json(&json(&dtd)),
    }
}

/// Returns the records that a section is shown with: its own, and in the global section the global ones.
fn listed<'d>(dtd: &'d Dtd, index: usize, section: &'d Section) -> Vec<(usize, &'d Record)> {
    let records = section.records.iter().enumerate();
    let records = records.filter_map(|(position, &id)| Some((position, id, dtd.record(id)?)));
    // Without its own, `comment` and the others would be repeated everywhere.
    let own = |r: &Record| r.section.map_or(index == 0, |s| usize::from(s.0) == index);
    records.filter(|(_, id, r)| id.0 > 2 && own(r)).map(|(position, _, r)| (position, r)).collect()
}

fn text(dtd: &Dtd) -> String {
    let mut out = String::new();
    if let Some(doc) = &dtd.doc {
        let _ = writeln!(out, "{doc}\n");
    }
    let _ = writeln!(out, "tag width {}", dtd.tag_width);
    for (index, section) in dtd.sections.iter().enumerate() {
        let records = listed(dtd, index, section);
        if records.is_empty() && index == 0 {
            continue;
        }
        let _ = match &section.name {
            Some(name) => write!(out, "\nsection {name} {}", section.number),
            None => write!(out, "\nglobal records"),
        };
        out.push_str(if section.stream.is_some() { ", a stream\n" } else { "\n" });
        doc(&mut out, section.doc.as_deref(), "  ");
        let sharing = sharing(section);
        for (position, record) in records {
            let was = if record.was.is_empty() { String::new() } else { format!(", was {}", record.was.join(", ")) };
            let _ = match record.tag {
                Some(_) if record.catch_all => writeln!(out, "\n  {}, all other tags{was}", record.name),
                Some(tag) => writeln!(out, "\n  {}, tag {tag}{was}", record.name),
                None => writeln!(out, "\n  {}, without a tag", record.name),
            };
            doc(&mut out, record.doc.as_deref(), "    ");
            let rows: Vec<[String; 8]> = leaves(dtd, section, &sharing, position, record).map(LeafRow::row).collect();
            table(&mut out, &rows);
        }
    }
    out
}

fn doc(out: &mut String, doc: Option<&str>, indent: &str) {
    for line in doc.unwrap_or_default().lines() {
        let _ = writeln!(out, "{indent}// {line}");
    }
}

const HEADINGS: [&str; 8] = [
    "#",
    "field",
    Property::Width.name(),
    Property::Interpretation.name(),
    Property::Previous.name(),
    Property::Format.name(),
    "annotations",
    Property::Doc.name(),
];

/// Other cells are not filled up to one that is longer.
const MOST_WIDTH: usize = 200;

/// Names of fields that share a previous value, at most: very many fields may.
const MOST_SHARING: usize = 64;

fn table(out: &mut String, rows: &[[String; 8]]) {
    let used = |column: usize| column < 4 || rows.iter().any(|row| !row[column].is_empty());
    let rows: Vec<[String; 8]> = rows.iter().map(|row| row.each_ref().map(|cell| shown(cell).into_owned())).collect();
    let headings = HEADINGS.map(str::to_owned);
    let width = |column: usize| {
        let lengths = rows.iter().chain([&headings]).map(|row| row[column].chars().count());
        lengths.filter(|length| *length <= MOST_WIDTH).max().unwrap_or(0)
    };
    let columns: Vec<(usize, usize)> = (0..HEADINGS.len()).filter(|&c| used(c)).map(|c| (c, width(c))).collect();
    for row in std::iter::once(&headings).chain(&rows) {
        let mut line = String::from("   ");
        for &(column, width) in &columns {
            let cell = &row[column];
            let fill = width.saturating_sub(cell.chars().count());
            let _ = write!(line, " {cell}{} ", " ".repeat(fill));
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// One leaf, in words.
struct LeafRow<'d> {
    leaf: &'d Leaf,
    index: usize,
    path: String,
    width: String,
    width_origin: Option<String>,
    interpretation: String,
    interpretation_origin: String,
    shares: Vec<String>,
}

fn leaves<'d>(
    dtd: &'d Dtd,
    section: &'d Section,
    sharing: &'d Sharing,
    position: usize,
    record: &'d Record,
) -> impl Iterator<Item = LeafRow<'d>> {
    let names = fields::names(record);
    record.leaves.iter().enumerate().map(move |(index, leaf)| {
        let name = names.iter().find(|(id, _)| usize::from(id.0) == index).map(|(_, name)| name.clone());
        let mut interpretation = dtd.interpretation_text(record, leaf);
        if let Some(value) = leaf.constant.filter(|_| !leaf.is_tag()) {
            let _ = write!(interpretation, ", always {value}");
        }
        LeafRow {
            leaf,
            index,
            path: name.unwrap_or_else(|| leaf.path.join(".")),
            width: if leaf.is_tag() { dtd.tag_width.to_string() } else { record.width_text(&leaf.width) },
            width_origin: leaf.width_origin.as_ref().map(|o| origin(dtd, o)),
            interpretation,
            interpretation_origin: origin(dtd, &leaf.interpretation_origin),
            shares: shares(dtd, section, sharing, (position, index)),
        }
    })
}

impl LeafRow<'_> {
    fn row(self) -> [String; 8] {
        let from = |text: String, origin: Option<String>| match origin {
            Some(origin) if origin != "tag" => format!("{text} ({origin})"),
            _ => text,
        };
        let mut format = self.leaf.format.name().to_owned();
        if let Some(unit) = &self.leaf.unit {
            format = format!("{format} [{unit}]").trim_start().to_owned();
        }
        if !self.leaf.was.is_empty() {
            format = format!("{format} was {}", self.leaf.was.join(", ")).trim_start().to_owned();
        }
        if let Some(names) = names(self.leaf) {
            format = format!("{format} {names}").trim_start().to_owned();
        }
        let annotations: Vec<String> = self.leaf.annotations.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let shares = if self.shares.is_empty() { String::new() } else { format!("with {}", self.shares.join(", ")) };
        [
            self.index.to_string(),
            self.path,
            from(self.width, self.width_origin),
            from(self.interpretation, Some(self.interpretation_origin)),
            shares,
            format,
            annotations.join(", "),
            self.leaf.doc.as_deref().unwrap_or_default().replace('\n', " "),
        ]
    }

    fn json(&self) -> Value {
        let leaf = self.leaf;
        json!({
            "index": self.index,
            "path": self.path,
            "field": leaf.name,
            "width": self.width,
            "width_from": self.width_origin,
            "interpretation": self.interpretation,
            "interpretation_from": self.interpretation_origin,
            "constant": leaf.constant,
            "numeric": leaf.is_numeric(),
            "repeated": leaf.repeated,
            "shares_previous_with": self.shares,
            "format": Some(leaf.format.name()).filter(|f| !f.is_empty()),
            "values": names_json(&leaf.names, true),
            "flags": names_json(&leaf.names, false),
            "unit": leaf.unit,
            "was": leaf.was,
            "doc": leaf.doc,
            "annotations": leaf.annotations,
        })
    }
}

/// Writes names as a DTD has them.
fn names(leaf: &Leaf) -> Option<String> {
    let property = match &leaf.names {
        Names::None => return None,
        Names::Values(_) => Property::Values,
        Names::Flags(_) => Property::Flags,
    };
    let signed = leaf.format == Format::Signed;
    let number = |n: u64| if signed { n.cast_signed().to_string() } else { n.to_string() };
    let list: Vec<String> = leaf.names.list().iter().map(|(n, name)| format!("{} {name}", number(*n))).collect();
    Some(format!("{}: {}", property.name(), list.join(", ")))
}

fn names_json(names: &Names, values: bool) -> Option<Vec<(u64, &str)>> {
    let wanted = if values { matches!(names, Names::Values(_)) } else { matches!(names, Names::Flags(_)) };
    wanted.then(|| names.list().iter().map(|(n, name)| (*n, name.as_str())).collect())
}

fn json(dtd: &Dtd) -> Value {
    let section = |(index, section): (usize, &Section)| {
        let sharing = sharing(section);
        let record = |(position, record): (usize, &Record)| {
            json!({
                "name": record.name,
                "tag": if record.catch_all { json!("other") } else { json!(record.tag) },
                "was": record.was,
                "doc": record.doc,
                "leaves": leaves(dtd, section, &sharing, position, record).map(|l| l.json()).collect::<Vec<_>>(),
            })
        };
        json!({
            "name": section.name,
            "number": section.number,
            "stream": section.stream.is_some(),
            "doc": section.doc,
            "records": listed(dtd, index, section).into_iter().map(record).collect::<Vec<_>>(),
        })
    };
    json!({
        "doc": dtd.doc,
        "tag_width": dtd.tag_width,
        "fingerprint": format!("{:016x}", dtd.fingerprint()),
        "sections": dtd.sections.iter().enumerate().map(section).collect::<Vec<_>>(),
    })
}

/// The leaves of a section by the cell that holds their previous value: position of the record, index of the leaf.
type Sharing = BTreeMap<u32, Vec<(usize, usize)>>;

fn sharing(section: &Section) -> Sharing {
    let mut sharing = Sharing::new();
    for (position, cells) in section.cells.iter().enumerate() {
        for (index, cell) in cells.iter().enumerate() {
            sharing.entry(*cell).or_default().push((position, index));
        }
    }
    sharing
}

/// Returns the other leaves that hold their previous value in the same cell.
fn shares(dtd: &Dtd, section: &Section, sharing: &Sharing, own: (usize, usize)) -> Vec<String> {
    let cell = section.cells.get(own.0).and_then(|cells| cells.get(own.1));
    let all = cell.and_then(|cell| sharing.get(cell)).map_or(&[][..], Vec::as_slice);
    let name = |&(position, index): &(usize, usize)| {
        let record = section.records.get(position).and_then(|&id| dtd.record(id))?;
        Some(format!("{}.{}", record.name, record.leaves.get(index)?.path.join(".")))
    };
    let others = all.iter().filter(|other| **other != own);
    let mut names: Vec<String> = others.take(MOST_SHARING).filter_map(name).collect();
    let more = all.len().saturating_sub(MOST_SHARING + 1);
    names.extend((more > 0).then(|| format!("{more} more")));
    names
}

fn origin(dtd: &Dtd, origin: &Origin) -> String {
    match origin {
        Origin::Tag => "tag".to_owned(),
        Origin::Block(record) => format!("block of {record}"),
        Origin::Section(id) => {
            let section = dtd.sections.get(usize::from(id.0)).and_then(|s| s.name.as_deref());
            format!("section {}", section.unwrap_or("?"))
        }
        Origin::Global => "global".to_owned(),
    }
}
