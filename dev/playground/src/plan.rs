//! Records and fields as declared in the DTD, and the interpretations in effect at a record.

use metatf::dynamic::Schema;
use metatf::format::Interpretation;
use metatf_parser::schema::{Dtd, Leaf, LeafId, Origin, Record};
use serde::Serialize;

/// A kind of record.
#[derive(Serialize)]
pub struct RecordKind {
    /// Record name.
    name: String,
    /// Comment in the DTD.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    /// The leaves, including leaves of groups and nested records.
    leaves: Vec<LeafKind>,
}

/// A leaf as declared in the DTD.
#[derive(Serialize)]
struct LeafKind {
    /// Name, preceded by the names of the enclosing fields.
    name: String,
    /// Width in DTD syntax.
    width: String,
    /// Place that sets the width.
    #[serde(skip_serializing_if = "Option::is_none")]
    width_from: Option<String>,
    /// The interpretation.
    interpretation: String,
    /// Place that sets the interpretation.
    interpretation_from: String,
    /// Whether the leaf is a number.
    number: bool,
    /// Comment in the DTD.
    #[serde(skip_serializing_if = "Option::is_none")]
    doc: Option<String>,
    /// The unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

/// Returns all kinds of records, in the order of the format.
#[must_use]
pub fn kinds(schema: &Schema) -> Vec<RecordKind> {
    let dtd = &schema.dtd;
    let leaf = |record: &Record, leaf: &Leaf| LeafKind {
        name: leaf.path.join("."),
        width: if leaf.is_tag() { dtd.tag_width.to_string() } else { record.width_text(&leaf.width) },
        width_from: leaf.width_origin.as_ref().map(|from| origin(dtd, from)),
        interpretation: dtd.interpretation_text(record, leaf),
        interpretation_from: origin(dtd, &leaf.interpretation_origin),
        number: leaf.is_numeric(),
        doc: leaf.doc.clone(),
        unit: leaf.unit.clone(),
    };
    let kind = |record: &Record| RecordKind {
        name: record.name.clone(),
        doc: record.doc.clone(),
        leaves: record.leaves.iter().map(|of| leaf(record, of)).collect(),
    };
    dtd.records.iter().map(kind).collect()
}

fn origin(dtd: &Dtd, origin: &Origin) -> String {
    match origin {
        Origin::Tag => "the tag".to_owned(),
        Origin::Block(record) => format!("the block of {record}"),
        Origin::Section(id) => {
            let section = dtd.sections.get(usize::from(id.0)).and_then(|section| section.name.as_deref());
            format!("section {}", section.unwrap_or("?"))
        }
        Origin::Global => "all sections".to_owned(),
    }
}

/// Returns an interpretation with its arguments in DTD syntax.
#[must_use]
pub fn in_words(schema: &Schema, record: u16, leaf: u8, interpretation: Interpretation) -> String {
    let section = |number: u8| {
        let section = schema.dtd.section(number).and_then(|section| section.name.as_deref());
        section.map_or_else(|| number.to_string(), str::to_owned)
    };
    match interpretation {
        Interpretation::None => "none".to_owned(),
        Interpretation::BaseOffset(base) => format!("baseOffset {base:#x}"),
        Interpretation::Delta(initial) => format!("delta {initial}"),
        Interpretation::Default(value) => format!("default {value}"),
        Interpretation::Stride(initial, stride) => format!("stride {initial} {}", stride.cast_signed()),
        Interpretation::SectionOffset(number) => format!("sectionOffset {}", section(number)),
        Interpretation::SectionStride(number, stride) => {
            format!("sectionStride {} {}", section(number), stride.cast_signed())
        }
        // Metadata records never set these interpretations, which come from the DTD.
        Interpretation::BaseOffsetOf(..) | Interpretation::Predicted(_) => {
            let of = schema.record(record).and_then(|record| Some((record, record.leaf(LeafId(leaf))?)));
            of.map_or_else(String::new, |(record, leaf)| schema.dtd.interpretation_text(record, leaf))
        }
    }
}
