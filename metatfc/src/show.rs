//! `show`: prints the meaning of a DTD, leaf by leaf.

use crate::dtd::{self, DtdArgs};
use crate::failure::Result;
use crate::raw;
use crate::{fields, input, output, target};
use clap::ValueEnum;
use metatf_cli::{FormatOr, OutputOrArgs};
use metatf_page::{Column, Page, Table, Value};
use metatf_parser::Property;
use metatf_parser::schema::{Bits, Dtd, Format, Leaf, Names, Origin, Record, Section};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

const MORE: &str = "\
The table contains a row for each leaf. A row shows the index used by metadata
records, the name, the width, the interpretation, the leaves that share the
previous value, the annotations and the documentation. Parentheses after a width
or an interpretation show where the DTD sets it: in the block of a record, in a
section, or globally.

--doc writes index.html, a page for each section, and the text of the DTD. The
page of a section describes each record: its comments in the DTD, a drawing of its
bytes, and a table of its fields. With --trace, the page also shows the bytes of
example records. Every record and field has an anchor, such as
section-1.html#malloc.size. The pages work without scripts and without a network.
They replace pages of an earlier run; other files of the same name are an error.

Examples:
  metatfc show spans.dtd
  metatfc show T.mtf                       show the fields of a trace
  metatfc show --format dtd T.mtf > T.dtd  extract the DTD of a trace
  metatfc show capture.pcap                show the fields of the built-in DTD
  metatfc show --format json spans.dtd | jq '.sections[].records[].name'
  metatfc show spans.dtd --doc spans-doc --trace T.mtf
                                           document the format as HTML pages";

/// Show or document the fields of all records: width, interpretation, and where the DTD sets them
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A DTD, a trace, or a file that a built-in DTD describes; `-` reads a DTD from standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    output: OutputOrArgs<Source>,
    /// Write HTML pages that document the format to this directory, which is created if it does not exist
    #[cfg(feature = "doc")]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "format"])]
    pub(crate) doc: Option<PathBuf>,
    /// With --doc: a trace to take example records from
    #[cfg(feature = "doc")]
    #[arg(long, value_name = "TRACE", requires = "doc")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    dtd: DtdArgs,
}

/// An output format other than a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    /// The text of the DTD, as embedded in a trace
    Dtd,
}

impl Args {
    /// Returns the DTD of the file.
    pub(crate) fn dtd(&self) -> Result<Arc<Dtd>> {
        raw::dtd_of(&self.file).map_or_else(|| dtd::of(&self.file, &self.dtd), Ok)
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let dtd = args.dtd()?;
    match args.output.format {
        FormatOr::Report(format) => {
            output::report(&Report::new(&input::name(&args.file), &dtd), &args.output.with(format))
        }
        FormatOr::Other(Source::Dtd) => match &args.output.output {
            Some(path) => target::replace(path, dtd.text.as_bytes()),
            None => output::print_data(&dtd.text),
        },
    }
}

/// A DTD and its meaning.
#[derive(Serialize)]
struct Report<'d> {
    #[serde(skip)]
    name: &'d str,
    doc: Option<&'d str>,
    tag_width: u8,
    fingerprint: String,
    sections: Vec<SectionReport<'d>>,
}

#[derive(Serialize)]
struct SectionReport<'d> {
    name: Option<&'d str>,
    number: u8,
    stream: bool,
    doc: Option<&'d str>,
    records: Vec<RecordReport<'d>>,
}

#[derive(Serialize)]
struct RecordReport<'d> {
    name: &'d str,
    tag: Tag,
    was: &'d [String],
    doc: Option<&'d str>,
    leaves: Vec<LeafReport<'d>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Tag {
    Number(u32),
    /// All tags not used by another record.
    Other(&'static str),
    /// No tag, for an element of a stream.
    None,
}

/// A leaf, described as text.
#[derive(Serialize)]
struct LeafReport<'d> {
    index: usize,
    path: String,
    field: &'d str,
    width: String,
    width_from: Option<String>,
    interpretation: String,
    interpretation_from: String,
    constant: Option<u64>,
    numeric: bool,
    repeated: bool,
    shares_previous_with: Vec<String>,
    format: Option<&'static str>,
    values: Option<&'d [(u64, String)]>,
    flags: Option<&'d [(u64, String)]>,
    unit: Option<&'d str>,
    was: &'d [String],
    doc: Option<&'d str>,
    annotations: &'d BTreeMap<String, String>,
    #[serde(skip)]
    leaf: &'d Leaf,
}

impl<'d> Report<'d> {
    fn new(name: &'d str, dtd: &'d Dtd) -> Self {
        let section = |(index, section): (usize, &'d Section)| {
            let sharing = sharing(section);
            let record = |(position, record): (usize, &'d Record)| RecordReport {
                name: &record.name,
                tag: match record.tag {
                    _ if record.catch_all => Tag::Other("other"),
                    Some(tag) => Tag::Number(tag),
                    None => Tag::None,
                },
                was: &record.was,
                doc: record.doc.as_deref(),
                leaves: leaves(dtd, section, &sharing, position, record),
            };
            SectionReport {
                name: section.name.as_deref(),
                number: section.number,
                stream: section.stream.is_some(),
                doc: section.doc.as_deref(),
                records: listed(dtd, index, section).into_iter().map(record).collect(),
            }
        };
        Self {
            name,
            doc: dtd.doc.as_deref(),
            tag_width: dtd.tag_width,
            fingerprint: format!("{:016x}", dtd.fingerprint()),
            sections: dtd.sections.iter().enumerate().map(section).collect(),
        }
    }
}

impl metatf_page::Report for Report<'_> {
    fn page(&self) -> Page {
        let mut page = Page::new(self.name.to_owned());
        doc(&mut page, self.doc);
        page.note(format!("tag width {}", self.tag_width));
        let is_shown = |section: &&SectionReport<'_>| section.number != 0 || !section.records.is_empty();
        for section in self.sections.iter().filter(is_shown) {
            let name = section.name.map(|name| format!("section {name} {}", section.number));
            let stream = if section.stream { ", a stream" } else { "" };
            page.heading(format!("{}{stream}", name.as_deref().unwrap_or("global records")));
            doc(&mut page, section.doc);
            section.records.iter().for_each(|record| record.describe(&mut page));
        }
        page
    }
}

/// Adds documentation to a page, line by line.
fn doc(page: &mut Page, doc: Option<&str>) {
    for line in doc.unwrap_or_default().lines() {
        if line.is_empty() { page.subheading("") } else { page.note(line.to_owned()) }
    }
}

/// Returns the records listed for a section, which are the section's own records or, for the global section, the global
/// records.
pub(crate) fn listed<'d>(dtd: &'d Dtd, index: usize, section: &'d Section) -> Vec<(usize, &'d Record)> {
    let records = section.records.iter().enumerate();
    let records = records.filter_map(|(position, &id)| Some((position, id, dtd.record(id)?)));
    // Without this check, `comment` and the other predefined records would be repeated in every section.
    let own = |r: &Record| r.section.map_or(index == 0, |s| usize::from(s.0) == index);
    records.filter(|(_, id, r)| id.0 > 2 && own(r)).map(|(position, _, r)| (position, r)).collect()
}

/// Maximum number of fields to list for a shared previous value.
const MOST_SHARING: usize = 64;

impl RecordReport<'_> {
    fn describe(&self, page: &mut Page) {
        let was = if self.was.is_empty() { String::new() } else { format!(", was {}", self.was.join(", ")) };
        page.subheading(match self.tag {
            Tag::Other(_) => format!("{}, all other tags{was}", self.name),
            Tag::Number(tag) => format!("{}, tag {tag}{was}", self.name),
            Tag::None => format!("{}, without a tag", self.name),
        });
        doc(page, self.doc);
        let rows: Vec<[Value; 8]> = self.leaves.iter().map(LeafReport::row).collect();
        let is_used = |column: &usize| {
            *column < 4 || rows.iter().filter_map(|row| row.get(*column)).any(|cell| !cell.to_string().is_empty())
        };
        let used: Vec<usize> = (0..HEADINGS.len()).filter(is_used).collect();
        let heading = |name: &str| if name == "field" { Column::key("field") } else { Column::new(name.to_owned()) };
        let mut table = Table::new(used.iter().filter_map(|column| HEADINGS.get(*column).map(|name| heading(name))));
        for row in &rows {
            table.row(used.iter().filter_map(|column| row.get(*column).cloned()));
        }
        page.push(table);
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

fn leaves<'d>(
    dtd: &Dtd,
    section: &Section,
    sharing: &Sharing,
    position: usize,
    record: &'d Record,
) -> Vec<LeafReport<'d>> {
    let names = fields::names(record);
    let leaf = |(index, leaf): (usize, &'d Leaf)| {
        let name = names.iter().find(|(id, _)| usize::from(id.0) == index).map(|(_, name)| name.clone());
        let mut interpretation = dtd.interpretation_text(record, leaf);
        if let Some(value) = leaf.constant.filter(|_| !leaf.is_tag()) {
            let _ = write!(interpretation, ", always {value}");
        }
        let (values, flags) = match &leaf.names {
            Names::None => (None, None),
            Names::Values(list) => (Some(&**list), None),
            Names::Flags(list) => (None, Some(&**list)),
        };
        LeafReport {
            index,
            path: name.unwrap_or_else(|| leaf.path.join(".")),
            field: &leaf.name,
            width: if leaf.is_tag() { dtd.tag_width.to_string() } else { record.width_text(&leaf.width) },
            width_from: leaf.width_origin.as_ref().map(|o| origin(dtd, o)),
            interpretation,
            interpretation_from: origin(dtd, &leaf.interpretation_origin),
            constant: leaf.constant,
            numeric: leaf.is_numeric(),
            repeated: leaf.repeated,
            shares_previous_with: shares(dtd, section, sharing, (position, index)),
            format: Some(leaf.format.name()).filter(|name| !name.is_empty()),
            values,
            flags,
            unit: leaf.unit.as_deref(),
            was: &leaf.was,
            doc: leaf.doc.as_deref(),
            annotations: &leaf.annotations,
            leaf,
        }
    };
    record.leaves.iter().enumerate().map(leaf).collect()
}

impl LeafReport<'_> {
    fn row(&self) -> [Value; 8] {
        let from = |text: &str, origin: Option<&str>| match origin {
            Some(origin) if origin != "tag" => format!("{text} ({origin})"),
            _ => text.to_owned(),
        };
        let format = [
            self.format.map(str::to_owned),
            self.unit.map(|unit| format!("[{unit}]")),
            (!self.was.is_empty()).then(|| format!("was {}", self.was.join(", "))),
            names(self.leaf),
        ];
        let annotations: Vec<String> = self.annotations.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let shares = &self.shares_previous_with;
        let shares = if shares.is_empty() { String::new() } else { format!("with {}", shares.join(", ")) };
        let texts = [
            self.path.clone(),
            from(&self.width, self.width_from.as_deref()),
            from(&self.interpretation, Some(&self.interpretation_from)),
            shares,
            format.into_iter().flatten().collect::<Vec<_>>().join(" "),
            annotations.join(", "),
            self.doc.unwrap_or_default().replace('\n', " "),
        ];
        let [path, width, interpretation, previous, format, annotations, doc] = texts.map(Value::text);
        [Value::Count(self.index as u64), path, width, interpretation, previous, format, annotations, doc]
    }
}

/// Formats the names of values or bits as in a DTD.
fn names(leaf: &Leaf) -> Option<String> {
    let property = match &leaf.names {
        Names::None => return None,
        Names::Values(_) => Property::Values,
        Names::Flags(_) => Property::Flags,
    };
    let number = |n: u64| match property {
        Property::Flags => Bits::of(n).to_string(),
        _ if leaf.format == Format::Signed => n.cast_signed().to_string(),
        _ => n.to_string(),
    };
    let list: Vec<String> = leaf.names.list().iter().map(|(n, name)| format!("{} {name}", number(*n))).collect();
    Some(format!("{}: {}", property.name(), list.join(", ")))
}

/// Maps each previous-value cell to the leaves that share it, as pairs of record position and leaf index.
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

/// Returns the other leaves that share the previous value of the leaf `own`.
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
