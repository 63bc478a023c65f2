//! The tables of sections, records and the initial state of fields.

use std::fmt::Write as _;

use metatf_parser::schema::{Dtd, Interpretation, Leaf, LeafId, METADATA, Record, RecordId, SECTION, Section, Width};

use super::decode::signature;
use super::shape::Shape;

/// Writes all tables, and the text of the DTD.
pub(super) fn tables(dtd: &Dtd, shape: &Shape) -> String {
    let mut out = String::new();
    let tag = |id: RecordId| dtd.record(id).and_then(|record| record.tag).unwrap_or(0);
    let _ = writeln!(out, "#define PFX_TAG_WIDTH_ {}u", dtd.tag_width);
    let _ = writeln!(out, "#define PFX_SECTION_TAG_ {}u\n#define PFX_METADATA_TAG_ {}u", tag(SECTION), tag(METADATA));
    let _ = writeln!(out, "#define PFX_SECTION_COUNT_ {}u\n", dtd.sections.len());
    out.push_str("static void pfx_decode_record_comment_(pfx_reader *reader, pfx_leaf_ *leaf, pfx_record *record);\n");
    for of in shape.structs.iter() {
        let _ = writeln!(out, "{};", signature(of));
    }
    let sections: Vec<String> = dtd.sections.iter().map(|section| rows(&mut out, dtd, shape, section)).collect();
    let _ = writeln!(
        out,
        "\nstatic const pfx_section_info_ pfx_sections_[PFX_SECTION_COUNT_] = {{\n{}}};\n",
        sections.concat()
    );
    out.push_str("/* The text of the DTD. */\nstatic const struct {\n    uint32_t length;\n    const char *text;\n");
    out.push_str("} pfx_dtd_[] = @DTD@\n\n");
    out
}

/// Writes the tables of a section, and returns its row in the table of sections.
fn rows(out: &mut String, dtd: &Dtd, shape: &Shape, section: &Section) -> String {
    let number = section.number;
    let places = places(dtd, section);
    let base = |record: RecordId, leaf: LeafId| {
        places.iter().find(|place| place.id == record).map_or(0, |place| place.first + usize::from(leaf.0))
    };
    let name = section.name.as_ref().map_or("NULL".to_owned(), |name| format!("\"{name}\""));
    let _ = writeln!(out, "\n/* The fields, records and previous values of section {name}. */");
    let _ = writeln!(out, "static const pfx_leaf_info_ pfx_leaves_{number}_[] = {{");
    for place in &places {
        let _ = writeln!(out, "    /* {} */", place.record.name);
        for (index, leaf) in place.record.leaves.iter().enumerate() {
            let cell = place.cells.get(index).copied().unwrap_or(0);
            let _ = writeln!(out, "    {},", row(place.record, leaf, index, cell, base));
        }
    }
    let _ = writeln!(out, "}};\nstatic const pfx_record_info_ pfx_records_{number}_[] = {{");
    for place in &places {
        let of = shape.of_record.get(place.id.0 as usize).copied().flatten().and_then(|of| shape.structs.get(of));
        let name = of.map_or("comment", |of| of.name.as_str());
        let Record { name: title, tag, catch_all, leaves, .. } = place.record;
        let _ = writeln!(
            out,
            "    {{\"{title}\", PFX_RECORD_{}, {}u, {catch_all}, {}, {}, pfx_decode_record_{name}_}},",
            name.to_ascii_uppercase(),
            tag.unwrap_or(0),
            place.first,
            leaves.len()
        );
    }
    let cells: Vec<String> = section.cell_initials.iter().map(|value| format!("UINT64_C({value})")).collect();
    let cells = if cells.is_empty() { "0".to_owned() } else { cells.join(", ") };
    let _ = writeln!(out, "}};\nstatic const uint64_t pfx_cells_{number}_[] = {{{cells}}};");
    let single = section.stream.is_some()
        && places.first().is_some_and(|place| {
            matches!(&*place.record.items, [metatf_parser::schema::Item::Leaf(_)])
                && place.record.leaves.iter().all(Leaf::is_numeric)
        });
    let leaves: usize = places.iter().map(|place| place.record.leaves.len()).sum();
    format!(
        "    {{{number}, {name}, {}, {single}, pfx_leaves_{number}_, {leaves}, pfx_records_{number}_, {}, \
         pfx_cells_{number}_, {}}},\n",
        section.stream.is_some(),
        places.len(),
        section.cell_initials.len()
    )
}

/// A record in a section.
struct Place<'d> {
    id: RecordId,
    record: &'d Record,
    cells: &'d [u32],
    /// The index of its first leaf in the section.
    first: usize,
}

/// Returns the records of a section that have state.
fn places<'d>(dtd: &'d Dtd, section: &'d Section) -> Vec<Place<'d>> {
    let mut first = 0;
    let records = section.records.iter().zip(&section.cells).filter(|(id, _)| ![SECTION, METADATA].contains(id));
    let placed = records.filter_map(|(id, cells)| {
        let record = dtd.record(*id)?;
        let place = Place { id: *id, record, cells, first };
        first += record.leaves.len();
        Some(place)
    });
    placed.collect()
}

/// Writes the row of a leaf.
fn row(record: &Record, leaf: &Leaf, index: usize, cell: u32, base: impl Fn(RecordId, LeafId) -> usize) -> String {
    let is_tag_of_catch_all = record.catch_all && index == 0;
    let numeric = leaf.is_numeric();
    let flags = [
        ("PFX_NUMERIC_", numeric),
        ("PFX_SETTABLE_", numeric && !leaf.is_implied() && !is_tag_of_catch_all),
        ("PFX_CONSTANT_", leaf.constant.is_some() && !leaf.is_tag()),
        ("PFX_TAG_", leaf.is_tag()),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
    let flags = if flags.is_empty() { "0".to_owned() } else { flags.join(" | ") };
    let width = match leaf.width {
        Width::Number(width) => width,
        _ => 0,
    };
    let mut of = 0;
    let (name, a, b) = match leaf.interpretation {
        Interpretation::None | Interpretation::Predicted(_) => ("NONE", 0, 0),
        Interpretation::BaseOffset(base) => ("BASE", base, 0),
        Interpretation::BaseOffsetOf(record, leaf) => {
            of = base(record, leaf);
            ("BASE_OF", 0, 0)
        }
        Interpretation::Delta(initial) => ("DELTA", initial, 0),
        Interpretation::Default(value) => ("DEFAULT", value, 0),
        Interpretation::Stride { initial, stride } => ("STRIDE", initial, stride),
        Interpretation::SectionOffset(section) => ("SECTION_OFFSET", section.into(), 0),
        Interpretation::SectionStride { section, stride } => ("SECTION_STRIDE", section.into(), stride),
    };
    let value = if leaf.is_tag() { record.tag.map_or(0, u64::from) } else { leaf.constant.unwrap_or(0) };
    format!(
        "{{\"{}\", \"{}\", {flags}, {width}, PFX_{name}_, {cell}, {of}, UINT64_C({a}), UINT64_C({b}), \
         UINT64_C({value})}}",
        leaf.path.join("."),
        leaf.name
    )
}
